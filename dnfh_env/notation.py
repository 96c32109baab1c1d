"""Positions as one line of text, and actions as words.

A position is the dealer, the scores before the deal, the four hands as dealt, and what has happened since::

    2 0,0,0,0 AQ7.K9.T8765.A42/…/…/… 300 AC QC 7C … 2C 5C …

Hands stand seat by seat, parted by ``/``; suits in the order clubs, diamonds, hearts, spades, parted by ``.``. A call
is written as in `dnfh_env.rules.CALLS`, a pick or play as a card. After the last pick for a kitty stands what each
seat got back from it: ``=2C7DQS/…/…/…``. Further facts follow a ``;`` as ``name=value``: ``deal`` (number of the deal
in its game), ``seed`` and ``game`` (which fix the deals to come), ``latched`` (the target has been reached in an
earlier deal), ``rules`` (JSON, the fields that differ from the default).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import bit, indices, plain
from dnfh_env.cards import (
    CARD_NAMES,
    DECK,
    HAND_SIZE,
    NUM_CARDS,
    NUM_SEATS,
    RANKS,
    SUITS,
    TWO_OF_CLUBS,
    card_id,
    cards_in,
    mask_of,
    names_in,
)
from dnfh_env.engine import GAME, NO_CALL, NUM_ACTIONS, OVER, PICK, PLAY, apply, begin_deals, legal, legal_masks
from dnfh_env.errors import ArgumentError, DealError, DnfhError, IllegalActionError, NotationError, is_whole, shown
from dnfh_env.rules import CALLS, KITTY, MAX_SCORE, Rules, compile_rules

_ACTION_NAMES = (*CARD_NAMES, *CALLS)
_ACTIONS = {name: action for action, name in enumerate(_ACTION_NAMES)}
_FACTS = ("deal", "seed", "game", "latched", "rules")
_MAX_DEAL = 10_000
_DEFAULT_RULES = Rules().to_dict()


def action_to_string(action: int) -> str:
    """``"QS"`` for a card, ``"300"``, ``"kitty"`` or ``"hold"`` for a call."""
    if not _is_action(action):
        raise NotationError(f"action {shown(action)} is not one of 0 to {len(_ACTION_NAMES) - 1}")
    return _ACTION_NAMES[action]


def _is_action(value: Any) -> bool:
    return is_whole(value, 0, len(_ACTION_NAMES) - 1)


def describe_illegal(action: Any, legal: int) -> str:
    """What is wrong with an action outside the legal set, given as a mask, and what is in it."""
    given = f"{int(action)} ({_ACTION_NAMES[action]})" if _is_action(action) else shown(action)
    allowed = " ".join(_ACTION_NAMES[a] for a in indices(legal)) or "none, the seat is not to move"
    return f"action {given} is illegal, allowed are: {allowed}"


def whole_numbers(name: str, values: Any, count: int | None = None) -> NDArray[np.int64]:
    """A row of whole numbers, ``count`` of them if that is given, as the kernels take it; else `IllegalActionError`."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise IllegalActionError(f"{name}: expected a row of whole numbers, got {shown(values)}") from error
    if array.ndim != 1 or (count is not None and len(array) != count) or (len(array) and array.dtype.kind not in "iu"):
        wanted = "a row of" if count is None else str(count)
        raise IllegalActionError(f"{name}: expected {wanted} whole numbers, got {array.dtype}{list(array.shape)}")
    found: NDArray[np.int64] = plain(array, np.int64)
    return found


def string_to_action(text: str) -> int:
    """The inverse of `action_to_string`."""
    try:
        return _ACTIONS[text]
    except (KeyError, TypeError):
        raise NotationError(
            f"unknown action {shown(text)}: write a card as in 'QS', or a call of {', '.join(CALLS)}"
        ) from None


def hand_to_string(mask: int) -> str:
    """A set of cards as four suits, high to low: ``"AQ7.K9.T8765.A42"``."""
    suits = [[RANKS[card % 13] for card in reversed(cards_in(mask)) if card // 13 == suit] for suit in range(4)]
    return ".".join("".join(ranks) for ranks in suits)


def string_to_hand(text: str) -> int:
    """The inverse of `hand_to_string`; raises `NotationError`."""
    suits = text.split(".")
    if len(suits) != len(SUITS):
        raise NotationError(f"hand {shown(text)} has {len(suits)} suits, parted by '.'; write all four of {SUITS}")
    names = [rank + suit for suit, ranks in zip(SUITS, suits, strict=True) for rank in ranks]
    return _mask_of_names(names, f"hand {shown(text)}")


def _mask_of_names(names: Iterable[str], where: str) -> int:
    mask = 0
    for name in names:
        try:
            card = 1 << card_id(name)
        except ValueError as error:
            raise NotationError(f"{where}: {error}") from None
        if mask & card:
            raise NotationError(f"{where}: {name} stands there twice")
        mask |= card
    return mask


def check_deal(hands: Sequence[int]) -> None:
    """Raise `DealError` unless four masks deal the whole deck, thirteen cards each."""
    if len(hands) != NUM_SEATS:
        raise DealError(f"hands: expected {NUM_SEATS}, got {len(hands)}")
    seen = 0
    for seat, hand in enumerate(hands):
        if hand & ~DECK or hand < 0:
            raise DealError(f"hands: seat {seat} holds something that is not a card")
        if hand & seen:
            raise DealError(f"hands: {names_in(hand & seen)[0]} is dealt twice, the second time to seat {seat}")
        if hand.bit_count() != HAND_SIZE:
            raise DealError(f"hands: seat {seat} has {hand.bit_count()} cards instead of {HAND_SIZE}")
        seen |= hand


def check_seat(name: str, seat: Any) -> int:
    """``seat`` as an int; raises `DealError` unless it is 0 to 3."""
    if not is_whole(seat, 0, NUM_SEATS - 1):
        raise DealError(f"{name}: {shown(seat)} is not a seat, 0 to {NUM_SEATS - 1}")
    return int(seat)


def check_counter(name: str, value: Any) -> int:
    """``value`` as an int; raises `ArgumentError` unless it is a whole number below 2**64."""
    if not is_whole(value, 0, 2**64 - 1):
        raise ArgumentError(f"{name}: {shown(value)} is not a whole number from 0 to 2**64 - 1")
    return int(value)


def check_scores(scores: Any, rules: Rules) -> list[int]:
    """Four whole numbers that a game under way can stand at; raises `DealError`."""
    values = _listed("scores", scores)
    bound = rules.target + rules.score_limit  # more than any game reaches
    low, high = -bound, rules.target - 1 if rules.ties == "share" else bound
    if len(values) != NUM_SEATS or not all(is_whole(value, low, high) for value in values):
        raise DealError(f"scores: expected {NUM_SEATS} whole numbers from {low} to {high}, got {shown(scores)}")
    totals = [int(value) for value in values]
    if max(totals) >= rules.target and totals.count(min(totals)) == 1:
        raise DealError(f"scores: at {shown(scores)} the game is over, one player alone being lowest")
    return totals


def legal_of(game: NDArray[Any], rules: NDArray[Any]) -> int:
    """The legal actions of one game, a `GAME` array of length 1, as a mask; ``rules`` are of `compile_rules`."""
    out = np.zeros(1, np.uint64)
    legal_masks(game, rules, out)
    return int(out[0])


def act(game: NDArray[Any], rules: NDArray[Any], action: Any) -> int:
    """Apply one action to a `GAME` array of length 1 and return what is legal next as a mask, 0 once it is over.

    ``rules`` are of `compile_rules`, ``action`` is a name or a whole number. Raises `IllegalActionError`, or for an
    unknown name `NotationError`, and leaves the game as it was.
    """
    number = as_int(action)
    follows: int = decide(game, rules, number) if number >= 0 else ILLEGAL
    if follows == ILLEGAL:
        raise refusal(game, rules, action if number < 0 else number)
    return follows


def as_int(action: Any) -> int:
    """An action, given as a name or as a whole number of any kind, as an int; -1 for what is none."""
    if type(action) is int:  # by far the commonest
        return action if 0 <= action < NUM_ACTIONS else -1
    if isinstance(action, str):
        return string_to_action(action)
    return int(action) if _is_action(action) else -1


def refusal(game: NDArray[Any], rules: NDArray[Any], action: Any) -> IllegalActionError:
    """The error for an illegal action: it names the seat, the action and the legal set."""
    allowed = legal_of(game, rules)
    if not allowed:
        return IllegalActionError(f"action {shown(action)}: the game is over, nobody is to move")
    return IllegalActionError(f"seat {game['seat'][0]}: {describe_illegal(action, allowed)}")


ILLEGAL = 2**64 - 1
"""What `decide` answers to an illegal action: no legal set holds cards and calls both."""


@njit(cache=True)
def decide(games: Any, rules: Any, action: Any) -> Any:
    """Make a decision, 0 to 63, of the first game and return what is legal next, or `ILLEGAL` with nothing changed."""
    g = games[0]
    r = rules[0]
    if not legal(g, r) & bit(action):
        return np.uint64(ILLEGAL)
    apply(g, r, action)
    return legal(g, r)


def set_deal(
    game: NDArray[Any],
    rules: Rules,
    hands: Sequence[int],
    dealer: int,
    scores: Sequence[int] = (0, 0, 0, 0),
    call: str | None = None,
) -> None:
    """Put a `GAME` array of length 1 at the start of a given deal, after ``call`` if one is given.

    Raises `DealError` for hands, dealer, scores or call that cannot be, before anything is changed.
    """
    check_deal(hands)
    seat = check_seat("dealer", dealer)
    totals = check_scores(scores, rules)
    if call is not None and (rules.call_by == "rotation" or call not in rules.calls):
        allowed = "none, the rotation calls" if rules.call_by == "rotation" else ", ".join(rules.calls)
        raise DealError(f"call: {shown(call)} is not among the calls of these rules: {allowed}")
    game["hand"][0] = hands
    game["dealer"] = seat
    game["scores"][0] = totals
    game["entered"] = 0
    game["latched"] = max(totals) >= rules.target
    game["winners"] = 0
    game["shooter"] = -1
    begin_deals(game, compile_rules(rules))
    if call is not None:
        act(game, compile_rules(rules), call)


POSITION_OPTIONS = ("hands", "dealer", "scores", "call")
"""What ``reset(options=…)`` understands in every environment, see `set_options`."""


def set_options(game: NDArray[Any], rules: Rules, options: Mapping[str, Any]) -> None:
    """Put a `GAME` array of length 1, just dealt, at the position that ``reset(options=…)`` asks for.

    Args:
        game: what is not asked for stays as it was dealt here.
        rules: the rules it is played under.
        options: ``hands`` (four, see `parse_hand`), ``dealer`` (a seat), ``scores`` (four totals before the deal) and
            ``call`` (what the dealer has called), each of them or none. Options of other names alone, none of
            them nearly one of these, are meant for somebody else and left alone.

    Raises `DealError` or `NotationError` for anything else, before the game is changed.
    """
    if not isinstance(options, Mapping):
        raise DealError(f"options: expected a mapping, got {shown(options)}")
    unknown = sorted(set(options) - set(POSITION_OPTIONS), key=str)
    if len(unknown) == len(options) and not any(get_close_matches(str(name), POSITION_OPTIONS) for name in unknown):
        return
    if unknown:
        raise DealError(f"options: {shown(unknown[0])} is not one of {', '.join(POSITION_OPTIONS)}")
    dealt = {name: game[field][0].tolist() for name, field in (("hands", "hand"), ("dealer",) * 2, ("scores",) * 2)}
    position = dealt | dict(options)
    hands = parse_hands(position["hands"])
    set_deal(game, rules, hands, position["dealer"], position["scores"], position.get("call"))


# --- positions --------------------------------------------------------------------------------------------------


def dealt_hands(game: NDArray[Any]) -> list[int]:
    """The four hands as dealt, of a `GAME` array of length 1."""
    g = game[0]
    hands = []
    for s in range(NUM_SEATS):
        given = int(g.given[s, 0] | g.given[s, 1] | g.given[s, 2])
        hands.append((int(g.hand[s] | g.played[s]) & ~_received(g, s)) | given)
    return hands


def _received(g: Any, seat: int) -> int:
    if g.phase == PICK:
        return 0
    if g.call == KITTY:
        return int(g.kitty[seat])
    return int(np.bitwise_or.reduce([g.given[(seat + 1 + d) % 4, 2 - d] for d in range(3)]))


def _picks(g: Any) -> list[str]:
    """Picks in the order made; within one direction, whose order is forgotten, by rising id."""
    names: list[str] = []
    directions = 1 if g.call == KITTY else 3
    for k in range(NUM_SEATS):
        seat = (int(g.dealer) + 1 + k) % 4
        for d in range(directions):
            names += names_in(g.given[seat, d])
    return names


def moves_of(game: NDArray[Any]) -> list[str]:
    """What has happened in the current deal, as the words of a position."""
    g = game[0]
    if g.call == NO_CALL:
        return []
    words = [_ACTION_NAMES[g.call], *_picks(g)]
    if g.call == KITTY and g.phase in (PLAY, OVER):
        words.append("=" + "/".join("".join(names_in(cards)) for cards in g.kitty))
    return words + [CARD_NAMES[card] for card in g.plays[: int(g.num_plays)]]


def position_to_string(game: NDArray[Any], rules: Rules) -> str:
    """One line for a `GAME` array of length 1.

    `string_to_position` gives the same record back, but for what is past: the entries and shooter of an earlier deal.
    """
    g = game[0]
    before = [int(g.scores[s]) - (int(g.entered[s]) if g.phase == OVER else 0) for s in range(NUM_SEATS)]
    head = [str(g.dealer), ",".join(map(str, before)), "/".join(map(hand_to_string, dealt_hands(game)))]
    facts = [f"deal={g.deal}", f"seed={g.seed}", f"game={g.game}"]
    if g.latched and rules.ties == "play on":
        facts.append("latched=1")
    changed = {name: value for name, value in rules.to_dict().items() if value != _DEFAULT_RULES[name]}
    if changed:
        facts.append("rules=" + json.dumps(changed, separators=(",", ":")).replace(" ", "\\u0020"))
    return " ".join([*head, *moves_of(game), ";", *facts])


def string_to_position(text: str) -> tuple[NDArray[Any], Rules]:
    """A `GAME` array of length 1 and its rules; raises `NotationError` that names the token at fault."""
    if not isinstance(text, str):
        raise NotationError(f"position: expected text, got {shown(text)}")
    head, _, tail = text.partition(";")
    tokens, facts = head.split(), _facts(tail)
    if len(tokens) < 3:
        raise NotationError(f"position {shown(text)}: expected dealer, scores and hands, got {len(tokens)} tokens")
    rules = _rules(facts.get("rules", "{}"))
    game = np.zeros(1, GAME)
    game["seed"] = _number("seed", facts.get("seed", "0"), 2**64 - 1)
    game["game"] = _number("game", facts.get("game", "0"), 2**64 - 1)
    game["deal"] = _number("deal", facts.get("deal", "0"), (rules.max_deals or _MAX_DEAL) - 1)
    latched = _number("latched", facts.get("latched", "0"), int(rules.ties == "play on"))
    dealer = _number("dealer", tokens[0], NUM_SEATS - 1)
    scores = [_number("scores", part, 2 * MAX_SCORE, signed=True) for part in tokens[1].split(",")]
    hands = [string_to_hand(part) for part in tokens[2].split("/")]
    moves = tokens[3:]
    try:
        set_deal(game, rules, hands, dealer, scores)
        if latched:
            game["latched"] = 1
    except DealError as error:
        raise NotationError(f"position: {error}") from None
    for number, move in enumerate(moves, start=4):
        try:
            _make(game, rules, move, first=number == 4)
        except DnfhError as error:
            raise NotationError(f"token {number} ({move}): {error}") from None
    return game, rules


def _make(game: NDArray[Any], rules: Rules, move: str, first: bool) -> None:
    if first and rules.call_by == "rotation":
        expected = _ACTION_NAMES[int(game["call"][0])]
        if move != expected:
            raise NotationError(f"the rotation's call for this deal is {expected}")
    elif move.startswith("="):
        set_kitty(game, _kitty(move))
    else:
        act(game, compile_rules(rules), move)


def _kitty(move: str) -> list[int]:
    return [
        _mask_of_names((part[i : i + 2] for i in range(0, len(part), 2)), f"kitty of seat {seat}")
        for seat, part in enumerate(move[1:].split("/"))
    ]


def set_kitty(game: NDArray[Any], received: Sequence[int]) -> None:
    """Let the kitty of a `GAME` array of length 1, just dealt out, have given each seat ``received`` instead."""
    g = game[0]
    if g.phase != PLAY or g.call != KITTY or g.num_plays:
        raise NotationError("a kitty is dealt out after the twelfth pick for it, and before play")
    pile = int(np.bitwise_or.reduce(g.given[:, 0]))
    if len(received) != NUM_SEATS or any(cards.bit_count() != 3 for cards in received) or mask_union(received) != pile:
        raise NotationError(f"expected three for each seat of the twelve cards {' '.join(names_in(pile))}")
    for s, cards in enumerate(received):
        hand = (int(g.hand[s]) & ~int(g.kitty[s])) | cards
        game["hand"][0, s] = hand
        game["kitty"][0, s] = cards
        if hand >> TWO_OF_CLUBS & 1:  # R7
            game["seat"] = s


def mask_union(masks: Iterable[int]) -> int:
    """The cards that are in any of the masks."""
    union = 0
    for mask in masks:
        union |= int(mask)
    return union


def _facts(tail: str) -> dict[str, str]:
    facts: dict[str, str] = {}
    for token in tail.split():
        name, sign, value = token.partition("=")
        if not sign or name not in _FACTS or name in facts:
            raise NotationError(
                f"{token!r} after ';' is not one of {', '.join(f'{fact}=…' for fact in _FACTS)}, each once"
            )
        facts[name] = value
    return facts


def _rules(text: str) -> Rules:
    try:
        return Rules.from_dict(json.loads(text))
    except (ValueError, RecursionError) as error:  # of JSON or of `Rules`
        raise NotationError(f"rules={shown(text)}: {error}") from None


def _number(name: str, text: str, high: int, *, signed: bool = False) -> int:
    digits = text.removeprefix("-") if signed else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(high)) or int(digits) > high:
        low = -high if signed else 0
        raise NotationError(f"{name}: {shown(text)} is not a whole number from {low} to {high}")
    return int(text)


def _listed(name: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise DealError(f"{name}: expected a sequence, got {shown(values)}") from None


def parse_hands(hands: Any) -> list[int]:
    """Hands as masks, each given in a way of `parse_hand`."""
    return [parse_hand(hand) for hand in _listed("hands", hands)]


def parse_hand(hand: Any) -> int:
    """A hand given as a mask, as text like ``"AQ7.K9.T8765.A42"``, or as a sequence of card names or ids."""
    if isinstance(hand, str):
        return string_to_hand(hand)
    if isinstance(hand, int | np.integer):
        return int(hand)
    cards = _listed("hand", hand)
    if all(is_whole(card, 0, NUM_CARDS - 1) for card in cards):
        if len(set(cards)) < len(cards):
            raise DealError(f"hand {shown(cards)}: a card stands there twice")
        return mask_of(map(int, cards))
    return _mask_of_names(cards, f"hand {shown(cards)}")
