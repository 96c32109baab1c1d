"""`Heuristic`, registered as ``heuristic``: a rule player that weighs each card, and goes for the shot when it can.

A reason a helper: each says in its first line what it advises, and the advice is added up in points. Points and shot
cards, and what a shot does, are read from the rules, so every preset can be played; no randomness is used. The weights
are `Parameters`, found by ``benchmarks/tune_heuristic.py`` for the default rules.

In the kernels ``v`` is a view, ``r`` the rules, ``p`` the `PARAMETERS`, a record each. What is the same for all cards
is found once and handed on: ``o``, the cards `Outside`, and ``f`` or ``t``, what matters of a `Pass` or a `Trick`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import comb, isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.facts import (
    LEVELS,
    above,
    below,
    cheapest_lower,
    dearest,
    dearest_lower,
    higher,
    holders,
    is_void,
    later_seats,
    lower,
    may_win,
    negative,
    outside,
    set_levels,
    suit_of,
    sum_of_suit,
    sums_of_suits,
    theirs,
    unseen,
    winners,
)
from agents.greedy import points_of
from dnfh_env._bits import U0, U1, bit, highest, lowest, plain, popcount
from dnfh_env.agent import play_with
from dnfh_env.cards import HAND_SIZE
from dnfh_env.engine import EACH, PICK, PLAY, SUIT_SETS
from dnfh_env.errors import ArgumentError, shown
from dnfh_env.objective import SHOT_VALUE
from dnfh_env.rules import CALLS, FIRST_CALL, SHOT_CODES, Rules, checked_rules, compile_rules
from dnfh_env.view import table_cards


@dataclass(frozen=True)
class Parameters:
    """The weights of the advice, in card points unless something else is said."""

    # --- why a card is feared while it is held
    trick: float = 0.82
    """A trick taken with it later, against one's will."""
    exposure: float = 0.1
    """Share of the dearest card outside that it would have to take."""
    own: float = 0.23
    """Share of its own points, taken with it."""
    guard: float = 0.33
    """How much each lower card of its suit, to be played in its stead, allays all that."""
    guarded: float = 5.0
    """Lower cards of its suit with which it is not feared at all: a queen, king or ace of spades stays with five."""
    jack: float = 0.3
    """Share of its gain, if its points are negative: it is kept to win a trick."""
    catch: float = 0.12
    """Share of such a gain outside that it might take."""
    void: float = 1.57
    """Holding a suit by this card alone."""
    # --- the pass
    pick_trick: float = 4.3
    """As ``trick``, with all thirteen still to come, in proportion to the others."""
    pick_void: float = 1.35
    """Being rid of a suit of which all cards can still be passed, for each of them."""
    pick_stopper: float = 0.43
    """Keeping the highest card of the suit of most shot cards, so that nobody else takes them all."""
    # --- what a trick costs
    ducking: float = 0.86
    """How many times likelier a lower card outside is to be played to the trick than a higher one."""
    throw: float = 0.6
    """Share of the dearest card outside that a void seat is expected to throw."""
    fall: float = 0.2
    """Chance that a later seat plays the dearest card of the led suit, if it holds it."""
    usual: float = 1.0
    """The most that any other card of the led suit is expected to cost."""
    lead: float = 0.5
    """Having to lead to the next trick."""
    # --- my shot, measured in losers: cards expected to lose a trick
    shot_pick: float = 3.25
    """Losers after the pass up to which a hand keeps its high cards and passes its losers."""
    shot_rank: float = 0.01
    """What each rank of a card that such a hand passes counts in losers."""
    shot_try: float = 2.05
    """Losers up to which a hand tries while nobody else has taken a shot card."""
    shot_held: float = 5.6
    """How many more are dared as the share of the shot cards taken comes to all."""
    shot_lead: float = 0.45
    """How many more are dared with the lead."""
    shot_jack: float = 0.3
    """How many fewer while a card with negative points is outside: others hold on to it."""
    shot_points: float = 0.31
    """Share of all these that is dared where a shot ends no game but moves points."""
    minor_loser: float = 0.9
    """What a loser counts in a suit with no more than three shot cards left, beside one in hearts."""
    plain_loser: float = 0.6
    """What a loser counts in a suit without shot cards."""
    # --- another's shot
    threat: float = 0.16
    """Share of the shot cards in one hand from which on it is feared."""
    stop: float = 22.0
    """Having a shot card go to another seat then, times the share beyond that."""
    feed: float = 7.3
    """Throwing a shot card to that seat, times the share beyond that."""
    stopper: float = 50.0
    """Holding the highest card of a suit then, times the share beyond that."""


_NO_SHOT = SHOT_CODES["none"]
_SHOT_GAME = SHOT_CODES["game"]
_ACROSS = FIRST_CALL + CALLS.index("030")
_OTHERS = 3
"""Other seats, among whom the cards outside lie."""
_MINOR = 3
"""The most shot cards in a suit other than hearts under the default rules."""


def _holds_more() -> NDArray[np.float64]:
    """[seats, n, i]: the chance that one of ``seats`` hands has more than ``i`` of ``n`` cards dealt among them."""
    ways = np.zeros((_OTHERS + 1, HAND_SIZE + 1, HAND_SIZE + 1))  # in which no hand has more than i
    ways[0, 0] = 1
    for seats in range(1, _OTHERS + 1):
        for n in range(HAND_SIZE + 1):
            for i in range(HAND_SIZE + 1):
                ways[seats, n, i] = sum(comb(n, k) * ways[seats - 1, n - k, i] for k in range(min(n, i) + 1))
    all_ways = ways[:, :, -1:]
    return 1 - np.divide(ways, all_ways, out=np.ones_like(ways), where=all_ways > 0)


_HOLDS_MORE = _holds_more()
_SUIT = (1 << HAND_SIZE) - 1


def _dealt_losers() -> NDArray[np.float64]:
    """[mine]: `suit_losers` before a card is played, for each set of cards of a suit as 13 bits."""
    holds = np.arange(_SUIT + 1)[:, None] >> np.arange(HAND_SIZE) & 1  # [mine, rank]
    theirs = HAND_SIZE - holds.sum(axis=1)
    lost = np.zeros(len(holds))
    for rank in reversed(range(HAND_SIZE)):
        mine = holds[:, rank + 1 :].sum(axis=1)
        over = HAND_SIZE - 1 - rank - mine - lost
        lost += holds[:, rank] * over.clip(0.0, 1.0) * _HOLDS_MORE[_OTHERS, theirs, mine]
    return lost


_DEALT_LOSERS = _dealt_losers()
_VOID = np.cumprod([1.0] + HAND_SIZE * [(_OTHERS - 1) / _OTHERS])
"""[n]: the chance that a seat has none of ``n`` cards of three hands."""
_SHARE = np.array([[k / n if n else 1.0 for k in range(HAND_SIZE + 1)] for n in range(HAND_SIZE + 1)])
"""[n, k]: ``k`` of ``n`` cards as a share, 1 if there are none."""

PARAMETERS: np.dtype[Any] = np.dtype((np.record, np.dtype([(f.name, np.float64) for f in fields(Parameters)] + LEVELS)))
"""`Parameters` as the kernels read them, and the levels of the rules that they are to be used under."""


def compile_parameters(parameters: Parameters, rules: Rules | None = None) -> NDArray[Any]:
    """`Parameters` to be used under ``rules``, `Rules()` if not given, as an array of one `PARAMETERS` record.

    Of the rules only the points matter here. Raises `ArgumentError` for what cannot be weighed.
    """
    record = np.zeros(1, PARAMETERS)
    for name, value in vars(parameters).items():
        if not _is_finite(value):
            raise ArgumentError(f"{name}: expected a finite number, got {shown(value)}")
        if name in ("guard", "ducking") and value < 0:
            raise ArgumentError(f"{name}: expected at least 0, got {shown(value)}")
        record[name] = value
    set_levels(record, checked_rules(rules))
    return record


def _is_finite(value: Any) -> bool:
    """Whether this is a number that a ``float64`` can hold; True and False are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:
        return False


class Heuristic:
    """Duck what costs, take what pays, and shoot with a hand that may take everything."""

    def __init__(self, *, rules: Rules | None = None, **changes: float) -> None:
        """Play under ``rules``, `Rules()` if not given, with some `Parameters` changed."""
        known = [field.name for field in fields(Parameters)]
        unknown = sorted(changes.keys() - set(known))
        if unknown:
            raise ArgumentError(f"heuristic: {unknown[0]!r} is no parameter; they are {', '.join(known)}")
        self.parameters = Parameters(**changes)
        self._rules = compile_rules(checked_rules(rules))
        self._parameters = compile_parameters(self.parameters, rules)

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `dnfh_env.agent.Agent.act`; ``rng`` is not used."""
        actions = np.empty(len(views), np.int64)
        choose_all(plain(views), self._rules, self._parameters, actions)
        return actions

    def play_fused(self, games: NDArray[Any], rules: NDArray[Any], decisions: int) -> int:
        """See `dnfh_env.agent.FusedAgent.play_fused`."""
        return int(play_all(games, rules, self._rules, self._parameters, decisions))


@njit(cache=True, nogil=True)
def play_all(games: Any, rules: Any, own: Any, parameters: Any, decisions: Any) -> Any:
    """`play_with` this player, which was made for the rules ``own``."""
    return play_with(games, rules, decisions, choose, (own[0], parameters[0]))


@njit(cache=True)
def choose_all(views: Any, rules: Any, parameters: Any, actions: Any) -> None:
    """`choose` for each record of a `VIEW` array into ``actions``, ``int64[B]``; ``parameters`` is one record too."""
    for i in range(views.shape[0]):
        actions[i] = choose(views[i], rules[0], parameters[0])


@njit
def choose(v: Any, r: Any, p: Any) -> Any:
    """The action for one view of a seat that is to move; what is forced is not weighed."""
    if v.legal & (v.legal - U1) == U0:
        return lowest(v.legal)
    if v.phase == PICK:
        return pick(v, r, p)
    if v.phase == PLAY:
        return shoot(v, r, p) if goes_for_shot(v, r, p) else best(v.legal, v, r, p, trick_of(v, r, p), worth)
    return call(v)


@njit(forceinline=True)  # or else ``value`` would be a pointer, and no kernel with a pointer can be cached
def best(cards: Any, v: Any, r: Any, p: Any, facts: Any, value: Any) -> Any:
    """The card of a non-empty set with the greatest ``value(v, r, p, facts, card)``, the last by id of equal ones."""
    found = lowest(cards)
    most = -np.inf
    while cards:
        card = lowest(cards)
        cards &= cards - U1
        at = value(v, r, p, facts, card)
        found = card if at >= most else found
        most = at if at > most else most
    return found


# --- the call and the pass --------------------------------------------------------------------------------------


@njit
def call(v: Any) -> Any:
    """All three across, to the seat that plays neither right before nor right after me, or else the first allowed.

    The hand is not looked at.
    """
    return _ACROSS if v.legal & bit(_ACROSS) else lowest(v.legal)


@njit
def pick(v: Any, r: Any, p: Any) -> Any:
    """Pass what is dangerous; with a hand that may take everything, what would lose tricks."""
    dealt = v.hand | v.given[0] | v.given[1] | v.given[2]  # what is decided at the first pick holds for the others
    if can_shoot(r) and dealt_losers(r, p, dealt) <= dares(r, p) * (p.shot_pick + EACH):
        return best(v.legal, v, r, p, None, shot_pass)
    return best(v.legal, v, r, p, pass_of(v, r, p), pass_worth)


class Pass(NamedTuple):
    """What matters for a pass, whichever card is picked."""

    outside: Any
    """An `Outside`."""
    short: Any
    """The suits of which all cards can still be passed, as a mask."""
    major: Any
    """The suits of most shot cards, as a mask."""


@njit
def pass_of(v: Any, r: Any, p: Any) -> Any:
    """The `Pass` of a view."""
    left = EACH - np.int64(v.num_picks) % EACH
    short = major = U0
    for suit in range(4):
        cards = SUIT_SETS[suit]
        short |= cards if popcount(v.hand & cards) <= left else U0
        major |= cards if popcount(r.shot_cards & cards) > _MINOR else U0
    return Pass(outside(v, p), short, major)


@njit
def pass_worth(v: Any, r: Any, p: Any, f: Any, card: Any) -> Any:
    """Be rid of danger, finish a suit, but keep what stops others' shots."""
    return danger(v, r, p, f.outside, card, p.pick_trick) + passed_void(p, f, card) - stopper_kept(p, f, card)


@njit
def passed_void(p: Any, f: Any, card: Any) -> Any:
    """Finish a suit of which all cards can still be passed."""
    return p.pick_void if f.short & bit(card) else 0.0


@njit
def stopper_kept(p: Any, f: Any, card: Any) -> Any:
    """Keep the highest card of the suit of most shot cards: nobody else takes them all while it is held."""
    return p.pick_stopper if f.major & bit(card) and higher(f.outside, card) == U0 else 0.0


@njit
def shot_pass(v: Any, r: Any, p: Any, f: Any, card: Any) -> Any:
    """Fewest losers in what stays, and high cards among it."""
    return -dealt_losers(r, p, v.hand & ~bit(card)) - p.shot_rank * (card % 13)


# --- a card in the hand -----------------------------------------------------------------------------------------


@njit
def danger(v: Any, r: Any, p: Any, o: Any, card: Any, trick: Any) -> Any:
    """What keeping a card may cost, which lower cards of the suit allay, less what it may bring."""
    feared = forced(o, card) * (trick + own_points(r, p, card)) + queen_under(r, p, o, card)
    return jack_kept(r, p, card) + jack_under(r, p, o, card) + feared / guards(v, p, card)


@njit
def guards(v: Any, p: Any, card: Any) -> Any:
    """Lower cards of its suit are played in its stead, and enough of them dispel all fear: a divisor of at least 1."""
    count = popcount(v.hand & suit_of(card) & below(card))
    return np.inf if count >= p.guarded else 1.0 + p.guard * count


@njit
def forced(o: Any, card: Any) -> Any:
    """The higher a card among those outside, the likelier it takes a trick against one's will: a chance."""
    return _SHARE[popcount(theirs(o, card)), popcount(lower(o, card))]


@njit
def own_points(r: Any, p: Any, card: Any) -> Any:
    """A card that costs points itself is worse to take a trick with."""
    return p.own * max(0, np.int64(r.points[card]))


@njit
def queen_under(r: Any, p: Any, o: Any, card: Any) -> Any:
    """A dear card outside may fall under it."""
    return p.exposure * dearest_lower(r, o, card)


@njit
def jack_kept(r: Any, p: Any, card: Any) -> Any:
    """A card with negative points is kept to win a trick."""
    return p.jack * min(0, np.int64(r.points[card]))


@njit
def jack_under(r: Any, p: Any, o: Any, card: Any) -> Any:
    """A card that may catch such a one is kept too."""
    return p.catch * cheapest_lower(r, o, card)


# --- a trick ----------------------------------------------------------------------------------------------------


class Trick(NamedTuple):
    """What matters of a trick, whichever card is played to it."""

    outside: Any
    """An `Outside`."""
    points: Any
    """Of the cards that lie in it."""
    dearest: Any
    """The most points of a card in other hands, at least 0."""
    sums: Any
    """`sums_of_suits` of the cards in other hands."""
    rival: Any
    """The seat whose shot is feared, or 0."""
    beyond: Any
    """The share of the shot cards that it has taken, beyond what is not feared."""


@njit
def trick_of(v: Any, r: Any, p: Any) -> Any:
    """The `Trick` of a view."""
    rival = rival_of(v, r)
    beyond = share_taken(v, r, rival) - p.threat if rival else 0.0
    o = outside(v, p)
    points = points_of(table_cards(v) & r.scoring, r)
    return Trick(o, points, dearest(r, o), sums_of_suits(p, o.cards), rival if beyond > 0.0 else 0, beyond)


@njit
def worth(v: Any, r: Any, p: Any, t: Any, card: Any) -> Any:
    """Be rid of danger, do not take what costs, finish a suit, and stop another's shot: the gain in playing a card."""
    takes = chance_to_take(v, p, t.outside, card)
    gain = danger(v, r, p, t.outside, card, p.trick)
    if takes != 0.0:
        gain -= takes * (trick_points(v, r, p, t, card) + p.lead)
    return gain + last_of_suit(v, p, card) + stopping(v, r, p, t, card, takes)


@njit
def last_of_suit(v: Any, p: Any, card: Any) -> Any:
    """Finish a suit, to throw what is dangerous on it later."""
    return p.void if v.hand & suit_of(card) == bit(card) else 0.0


@njit
def chance_to_take(v: Any, p: Any, o: Any, card: Any) -> Any:
    """That no later seat plays higher: they duck if they can, so lower cards outside help."""
    if v.num_plays & 3 and (card < v.best_card or card // 13 != v.best_card // 13):
        return 0.0
    over = popcount(higher(o, card))
    stays = 1.0 - over / max(1.0, over + p.ducking * (popcount(theirs(o, card)) - over))
    chance = 1.0
    for s in range(1, 4):
        chance *= 1.0 if s > later_seats(v) or is_void(v, s, card // 13) else stays
    return chance


@njit
def trick_points(v: Any, r: Any, p: Any, t: Any, card: Any) -> Any:
    """What the trick is expected to cost its taker: what lies there, what has to fall, what void seats throw."""
    total = np.float64(t.points + np.int64(r.points[card]))
    if later_seats(v) == 0:
        return total
    return total + expected_falls(v, r, p, t, card) + expected_throws(v, r, p, t, card // 13)


@njit
def expected_falls(v: Any, r: Any, p: Any, t: Any, card: Any) -> Any:
    """What later seats play of the suit: an ordinary card each, or the dearest that ``card`` beats."""
    usual = usual_fall(p, t, card // 13)
    return later_seats(v) * (usual + into_a_queen(r, p, t.outside, card, usual))


@njit
def usual_fall(p: Any, t: Any, suit: Any) -> Any:
    """The mean of a suit outside, within bounds that keep one dear card from making all of them dear."""
    count = popcount(t.outside.cards & SUIT_SETS[suit])
    return min(p.usual, sum_of_suit(t.sums, suit) / count) if count else 0.0


@njit
def into_a_queen(r: Any, p: Any, o: Any, card: Any, usual: Any) -> Any:
    """Do not play above a queen outside: what it costs beyond the usual, from one seat that has it in one of three."""
    return p.fall * max(0.0, dearest_lower(r, o, card) - usual) / _OTHERS


@njit
def expected_throws(v: Any, r: Any, p: Any, t: Any, suit: Any) -> Any:
    """What later seats throw that are void, or may be with few cards outside; nothing where the first trick bans it."""
    if v.num_plays < 4 and r.first_ban:
        return 0.0
    void = _VOID[popcount(t.outside.cards & SUIT_SETS[suit])]
    seats = 0.0
    for s in range(1, 4):
        seats += 0.0 if s > later_seats(v) else 1.0 if is_void(v, s, suit) else void
    return seats * p.throw * t.dearest


# --- another's shot ---------------------------------------------------------------------------------------------


@njit
def stopping(v: Any, r: Any, p: Any, t: Any, card: Any, takes: Any) -> Any:
    """While one seat has all shot cards that are taken: see that it misses one, the more it has the more urgently."""
    if t.rival == 0:
        return 0.0
    cost = shot_cost(r)
    fear = t.beyond * cost / SHOT_VALUE
    if gives_to_a_third(v, r, card, takes, t.rival):
        return fear * p.stop
    won = p.stop * wins_a_shot_card(v, r, card, takes, t.rival)
    lost = p.feed * feeds(v, r, card, takes, t.rival) + p.stopper * spends_stopper(t.outside, card, takes)
    return fear * (won - lost) - cost * completes(v, r, card, takes, t.rival)


@njit(inline="always")
def shot_cost(r: Any) -> Any:
    """What another's shot costs in card points, as the reward ``"points"`` has it."""
    return np.float64(SHOT_VALUE) if r.shot == _SHOT_GAME else np.int64(r.positive_total) / 4


@njit
def gives_to_a_third(v: Any, r: Any, card: Any, takes: Any, rival: Any) -> Any:
    """A shot card thrown on a trick that neither the rival nor I can win ends its shot at no cost."""
    mine = takes == 0.0 and bit(card) & r.shot_cards and table_cards(v) & r.shot_cards == U0
    return mine and not may_win(v, rival)


@njit
def wins_a_shot_card(v: Any, r: Any, card: Any, takes: Any, rival: Any) -> Any:
    """The chance that I win a trick with a shot card that the rival might have won."""
    return takes if (table_cards(v) | bit(card)) & r.shot_cards and may_win(v, rival) else 0.0


@njit
def feeds(v: Any, r: Any, card: Any, takes: Any, rival: Any) -> Any:
    """A shot card thrown on a trick that the rival leads brings it nearer."""
    return 1.0 if takes == 0.0 and bit(card) & r.shot_cards and v.best_seat == rival else 0.0


@njit
def spends_stopper(o: Any, card: Any, takes: Any) -> Any:
    """The highest card of a suit that others still hold is kept to win a trick of it."""
    return 1.0 if takes == 0.0 and higher(o, card) == U0 and theirs(o, card) else 0.0


@njit
def completes(v: Any, r: Any, card: Any, takes: Any, rival: Any) -> Any:
    """Last to a trick that leaves the rival all shot cards, nothing is dearer than not to win it."""
    missing = r.shot_cards & ~(v.taken[rival] | table_cards(v) | bit(card))
    return 1.0 if takes == 0.0 and later_seats(v) == 0 and v.best_seat == rival and missing == U0 else 0.0


@njit
def rival_of(v: Any, r: Any) -> Any:
    """The one seat that has taken shot cards, if it is another and misses some; else 0."""
    found = count = 0
    for s in range(1, 4):
        has = v.taken[s] & r.shot_cards != U0
        found = s if has else found
        count += has
    alone = (count == 1) & (v.taken[0] & r.shot_cards == U0) & (r.shot_cards & ~v.taken[found] != U0)
    return found if alone and can_shoot(r) else 0


# --- my shot ----------------------------------------------------------------------------------------------------


@njit
def goes_for_shot(v: Any, r: Any, p: Any) -> Any:
    """Try with few losers, dare more the more is taken, and give up once another has, or must get, a shot card."""
    if not can_shoot(r) or (v.taken[1] | v.taken[2] | v.taken[3]) & r.shot_cards:
        return False
    if table_cards(v) & r.shot_cards and winners(v) == U0:
        return False
    dared = p.shot_try + p.shot_held * share_taken(v, r, 0)
    if v.num_plays & 3 == 0:
        dared += p.shot_lead
    if negative(p, unseen(v) & r.shot_cards):
        dared -= p.shot_jack
    return loses_at_most(v, r, p, dares(r, p) * dared)


@njit(inline="always")
def dares(r: Any, p: Any) -> Any:
    """Dare less where a shot pays less."""
    return 1.0 if r.shot == _SHOT_GAME else p.shot_points


@njit
def shoot(v: Any, r: Any, p: Any) -> Any:
    """Lead winners; take each trick with a shot card; lose what must be lost on tricks without."""
    o = outside(v, p)
    if v.num_plays & 3 == 0:
        return best(v.legal, v, r, p, o, shot_lead)
    harmless = v.legal & ~r.shot_cards
    lose = best(harmless if harmless else v.legal, v, r, p, o, shot_throw)
    over = winners(v)
    if over == U0:
        return lose
    last = later_seats(v) == 0
    take = lowest(over) if last else highest(over)
    if table_cards(v) & r.shot_cards or higher(o, lose if last else take) == U0:
        return take
    return lose


@njit
def shot_lead(v: Any, r: Any, p: Any, o: Any, card: Any) -> Any:
    """The surest winner, of equal ones that of the suit of which the fewest are outside."""
    return -(HAND_SIZE + 1) * popcount(higher(o, card)) - popcount(theirs(o, card))


@njit
def shot_throw(v: Any, r: Any, p: Any, o: Any, card: Any) -> Any:
    """The surest loser."""
    return popcount(higher(o, card))


@njit
def loses_at_most(v: Any, r: Any, p: Any, limit: Any) -> Any:
    """Whether no more than ``limit`` cards of the hand are expected to lose a trick, as `loser` counts them."""
    others = unseen(v)
    only_more = p.minor_loser >= 0.0 and p.plain_loser >= 0.0
    total = 0.0
    for suit in range(4):
        mine = v.hand & SUIT_SETS[suit]
        theirs = others & SUIT_SETS[suit]
        total += loser(p, (mine | theirs) & r.shot_cards) * suit_losers(mine, theirs, holders(v, suit))
        if total > limit and only_more:
            return False
    return total <= limit


@njit
def dealt_losers(r: Any, p: Any, hand: Any) -> Any:
    """How many cards of a hand are expected to lose one, while all that it lacks are in three other hands."""
    total = 0.0
    for suit in range(4):
        mine = np.int64(hand >> np.uint64(HAND_SIZE * suit)) & _SUIT
        total += loser(p, SUIT_SETS[suit] & r.shot_cards) * _DEALT_LOSERS[mine]
    return total


@njit
def loser(p: Any, at_stake: Any) -> Any:
    """What a loser counts in a suit with these shot cards: less if it may lose a trick without any."""
    count = popcount(at_stake)
    return 1.0 if count > _MINOR else p.minor_loser if count else p.plain_loser


@njit
def suit_losers(mine: Any, theirs: Any, seats: Any) -> Any:
    """Losers when a suit is led from the top: a card loses to a higher one that is not yet spent or drawn."""
    count = popcount(theirs)
    lost = 0.0
    i = 0
    while mine:
        card = highest(mine)
        mine &= below(card)
        over = popcount(theirs & above(card)) - lost
        lost += min(1.0, max(0.0, over)) * _HOLDS_MORE[seats, count, i]
        i += 1
    return lost


@njit(inline="always")
def can_shoot(r: Any) -> Any:
    """Whether a shot does anything under these rules."""
    return r.shot != _NO_SHOT and r.shot_cards != U0


@njit(inline="always")
def share_taken(v: Any, r: Any, seat: Any) -> Any:
    """Share of the shot cards that a seat has taken."""
    return popcount(v.taken[seat] & r.shot_cards) / popcount(r.shot_cards)
