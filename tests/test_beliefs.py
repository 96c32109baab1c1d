"""Beliefs against slow twins: who may hold what by trying it in the oracle, layouts one by one, chances as fractions.

Worlds are held to look the same to the seat, to be legal from the first card on, to depend on the view alone, and to
come up as often as their share of all histories, the passes and the kitty included.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from math import comb, factorial
from typing import Any

import numpy as np
import pytest

from agents.beliefs import BeliefError, Beliefs
from agents.layouts import find_places
from agents.worlds import draw_worlds, new_scratch, next_actions, retraced, rewind_all, rewound, take_actions
from dnfh_env.agent import RandomAgent, legal_rows, make_agent
from dnfh_env.cards import CARD_NAMES, DECK, card_id, cards_in, mask_of, names_in
from dnfh_env.engine import NO_CALL, NO_CARD, PICK
from dnfh_env.errors import AgentError, ArgumentError
from dnfh_env.game import Game
from dnfh_env.notation import mask_union, position_to_string, string_to_action
from dnfh_env.rules import CALLS, Rules, compile_rules
from dnfh_env.view import VIEW, views_of
from oracle import Oracle
from positions import ANY_CALL, HEARTS, deal, held, legal, mask, push
from random_rules import deal_with, odd_hand, random_rules
from test_hidden import resampled
from test_kernels import chi_square

ANY_CLUB = ANY_CALL.replace(first_lead="any club")
EACH_CALL = [Rules(calls=(call,), first_lead=lead) for call in CALLS for lead in ("2C", "any club")]


# --- games to look at -------------------------------------------------------------------------------------------


def random_game(rules: Rules, rng: random.Random) -> Game:
    """The start of a deal, often with an odd hand."""
    if rng.random() < 0.4:
        return Game(rules, seed=rng.randrange(1 << 30))
    hands = [mask_of(map(card_id, hand)) for hand in deal_with(rng, [odd_hand(rng)], rng.randrange(4))]
    return Game.from_deal(hands, dealer=rng.randrange(4), rules=rules)


def moments(rules: Rules, rng: random.Random, deals: int = 2) -> Iterator[Game]:
    """The decisions of a game whose players often take the highest id, and so hearts and spades, and its end."""
    game, likes_high = random_game(rules, rng), rng.random()
    while not game.is_over and game.deal < deals:
        yield game
        legal = game.legal_actions()
        game.push(legal[-1] if rng.random() < likes_high else rng.choice(legal))
    if game.is_over:
        yield game


def late(rules: Rules, rng: random.Random, plays: int) -> Game:
    """A first deal after so many plays."""
    return next(game for game in moments(rules, rng) if game.phase == "play" and len(plays_of(game)) == plays)


def plays_of(game: Game) -> list[str]:
    return [CARD_NAMES[card] for card in game.record["plays"][0] if card != NO_CARD]


def full_hands(game: Game) -> list[set[str]]:
    """The hands after the exchange, by seat."""
    return [set(names_in(int(hand))) for hand in (game.record["hand"] | game.record["played"])[0]]


# --- the slow twins ---------------------------------------------------------------------------------------------


def at_play(rules: Rules, hands: list[set[str]], dealer: int) -> Oracle:
    """The oracle at the first lead, with these hands after the pass."""
    return Oracle(rules.replace(calls=("hold",), call_by="rotation", max_deals=9, target=1), hands, dealer)


def may_hold(game: Game, seat: int) -> list[set[str]]:
    """By place, the hidden cards that a seat may hold: no play that it made would have been illegal beside them."""
    oracle = at_play(game.rules, full_hands(game), game.dealer)
    view, first = game.view(seat), oracle.seat
    hidden = set(names_in(DECK)) - set(names_in(int(mask_union([view.hand, *view.played]))))
    may = [set(hidden) if s != seat else set() for s in range(4)]
    for card in plays_of(game):
        mover, kept = oracle.seat, oracle.hands[oracle.seat]
        for other in list(may[mover]):
            oracle.hands[mover] = {card, other}
            if card not in oracle.legal():
                may[mover].remove(other)
        oracle.hands[mover] = kept
        oracle.act(card)
    known = {"2C": first}
    if game.call != "kitty":
        known |= {name: (seat + 1 + d) % 4 for d in range(3) for name in names_in(int(view.given[d]))}
    for card in hidden & known.keys():
        for s in range(4):
            may[s] &= may[s] if s == known[card] else may[s] - {card}
    return may[seat:] + may[:seat]


def lost_cards(game: Game, seat: int) -> set[str]:
    """My cards that others got from the kitty."""
    record = game.record[0]
    return set(names_in(int(record.given[seat, 0] & ~record.kitty[seat]))) if game.call == "kitty" else set()


def kitties(hand: set[str], given: set[str], lost: set[str]) -> int:
    """How many threes of a hand may have come from the kitty, tried one by one."""
    return sum(set(three) & given == hand & lost for three in itertools.combinations(sorted(hand), 3))


def enumerated(game: Game, seat: int) -> Counter[tuple[int, ...]]:
    """Each layout of the hands now, masks by place, with its kitties: dealt out in all ways and played again."""
    view, rules = game.view(seat), game.rules
    played = [set(names_in(int(cards))) for cards in view.played]
    hidden = sorted(set(names_in(DECK)) - set().union(*played) - set(names_in(int(view.hand))))
    sizes = [13 - len(cards) for cards in played]
    lost, given = lost_cards(game, seat), set(names_in(int(view.given[0])))
    found: Counter[tuple[int, ...]] = Counter()
    for one in itertools.combinations(hidden, sizes[1]):
        for two in itertools.combinations(sorted(set(hidden) - set(one)), sizes[2]):
            now = [set(names_in(int(view.hand))), set(one), set(two), set(hidden) - set(one) - set(two)]
            full = [cards | gone for cards, gone in zip(now, played, strict=True)]
            if agrees(rules, full, game, seat):
                ways = [kitties(full[s], given, lost) if game.call == "kitty" else 1 for s in range(1, 4)]
                found[tuple(mask_of(map(card_id, cards)) for cards in now)] += ways[0] * ways[1] * ways[2]
    return found


def agrees(rules: Rules, full: list[set[str]], game: Game, seat: int) -> bool:
    """Whether these hands after the exchange, by place, could have been passed and played as the seat has seen."""
    view = game.view(seat)
    if game.call != "kitty" and any(set(names_in(int(view.given[d]))) - full[d + 1] for d in range(3)):
        return False
    oracle = at_play(rules, full, 0)
    if oracle.seat != (view.leaders[0] if view.num_plays else view.seat):
        return False
    try:
        for card in plays_of(game):
            oracle.act(card)
    except ValueError:
        return False
    return True


def counted(game: Game, seat: int) -> tuple[int, dict[tuple[str, int], int]]:
    """How many layouts, kitties included, and how many of them have a card where, card by card."""
    may, lost = may_hold(game, seat), lost_cards(game, seat)
    played = [set(names_in(int(cards))) for cards in game.view(seat).played]
    hidden = sorted(set().union(*may))
    loose = [card for card in hidden if card in lost]
    total, held_by = 0, Counter[tuple[str, int]]()
    for where in itertools.product((1, 2, 3), repeat=len(loose)):
        at = dict(zip(loose, where, strict=True))
        ways = 1
        for s in (1, 2, 3) if game.call == "kitty" else ():
            j = len(lost & played[s]) + where.count(s)
            ways *= comb(13 - j, 3 - j)
        options = [[s for s in ((at[card],) if card in at else (1, 2, 3)) if card in may[s]] for card in hidden]
        count, each = dealt_out(options, tuple(13 - len(played[s]) for s in (1, 2, 3)))
        total += ways * count
        for (i, s), number in each.items():
            held_by[hidden[i], s] += ways * number
    return total, held_by


def dealt_out(options: list[list[int]], room: tuple[int, ...]) -> tuple[int, dict[tuple[int, int], int]]:
    """Ways to deal cards to places 1 to 3 with options for each card, and those in which a card is at a place."""

    def less(left: tuple[int, ...], s: int) -> tuple[int, ...]:
        return tuple(n - (place == s) for place, n in enumerate(left, start=1))

    before = [Counter({room: 1})]
    for places in options:
        before.append(Counter())
        for left, n in before[-2].items():
            for s in places:
                if left[s - 1]:
                    before[-1][less(left, s)] += n
    after: Counter[tuple[int, ...]] = Counter({(0, 0, 0): 1})
    each: dict[tuple[int, int], int] = Counter()
    for i in range(len(options) - 1, -1, -1):
        earlier: Counter[tuple[int, ...]] = Counter()
        for left, n in before[i].items():
            for s in options[i]:
                more = after[less(left, s)] if left[s - 1] else 0
                earlier[left] += more
                each[i, s] += n * more
        after = earlier
    return after[room], each


def assert_as_counted(beliefs: Beliefs, game: Game, seat: int) -> None:
    """Layouts, chances, and what is possible and certain, all as counted slowly."""
    total, held_by = counted(game, seat)
    assert beliefs.layouts == pytest.approx(total, rel=1e-13)
    expected = np.zeros((52, 4))
    for name in names_in(int(game.view(seat).hand)):
        expected[card_id(name), 0] = 1.0
    for (name, place), number in held_by.items():
        expected[card_id(name), place] = number / total
    assert np.abs(beliefs.places() - expected).max() < 1e-12
    may = [mask_of(cards_in_column(expected[:, place] > 0)) for place in range(4)]
    sure = [mask_of(cards_in_column(np.abs(expected[:, place] - 1) < 1e-14)) for place in range(4)]
    assert [int(cards) for cards in beliefs.possible()] == may
    assert [int(cards) for cards in beliefs.certain()] == sure


def cards_in_column(column: Any) -> list[int]:
    return [int(card) for card in np.flatnonzero(column)]


# --- what is known and how likely -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_layouts_and_chances_are_those_counted_card_by_card(number: int) -> None:
    rng, narrowed = random.Random(number), 0
    for _ in range(25):
        rules = rng.choice([random_rules(rng), rng.choice(EACH_CALL)])
        games = [game.copy() for game in moments(rules, rng, deals=1) if game.phase == "play"]
        game, seat = rng.choice(games), rng.randrange(4)
        assert_as_counted(Beliefs(game.view(seat), rules), game, seat)
        may = may_hold(game, seat)
        narrowed += any(cards != set().union(*may) for cards in may[1:])
    assert narrowed > 8


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_layouts_and_chances_are_those_enumerated(number: int) -> None:
    rng = random.Random(number)
    for _ in range(6):
        game = late(rng.choice(EACH_CALL), rng, rng.randrange(42, 52))
        seat = rng.randrange(4)
        found = enumerated(game, seat)
        total = sum(found.values())
        beliefs = Beliefs(game.view(seat), game.rules)
        assert beliefs.layouts == total
        expected = np.zeros((52, 4))
        for hands, ways in found.items():
            for place in range(4):
                expected[cards_in(hands[place]), place] += ways
        assert np.abs(beliefs.places() - expected / total).max() < 1e-12


@pytest.mark.small
def test_before_play_nothing_is_known_of_hidden_hands() -> None:
    game = Game(Rules(calls=("111",)), seed=4)
    everything = factorial(39) / factorial(13) ** 3
    while game.phase != "play":
        for seat in range(4):
            beliefs, own = Beliefs(game.view(seat), game.rules), int(game.record["hand"][0, seat])
            mine = own | int(mask_union(game.record["given"][0, seat]))
            assert beliefs.layouts == pytest.approx(everything, rel=1e-14)
            assert np.abs(beliefs.places()[cards_in(DECK & ~mine)] - [0, 1 / 3, 1 / 3, 1 / 3]).max() < 1e-15
            assert (beliefs.places()[cards_in(mine)] == [1, 0, 0, 0]).all()
            assert [int(cards) for cards in beliefs.certain()] == [mine, 0, 0, 0]
            assert [int(cards) for cards in beliefs.possible()] == [mine, *[DECK & ~mine] * 3]
        game.push(game.legal_actions()[0])


def sure_of(game: Game, seat: int) -> list[set[str]]:
    """What each place surely holds, by name."""
    return [set(names_in(int(cards))) for cards in Beliefs(game.view(seat), game.rules).certain()]


def possible_for(game: Game, seat: int, place: int) -> set[str]:
    return set(names_in(int(Beliefs(game.view(seat), game.rules).possible()[place])))


@pytest.mark.small
def test_r07_who_is_to_lead_first_holds_the_two_of_clubs() -> None:
    game = held("5432.432.432.432")
    assert sure_of(game, 1)[3] == {"2C"} == sure_of(game, 3)[1]
    assert sure_of(push(game, "2C"), 1)[3] == set()
    assert sure_of(push(held("5432.432.432.432", rules=ANY_CLUB), "5C"), 2)[2] == {"2C"}


@pytest.mark.small
def test_r08_who_does_not_follow_has_none_of_the_suit() -> None:
    game = push(held("5432.432.432.432", ".AKQ5.AKQ.AKQJT9"), "2C 5D")
    hidden = set(names_in(DECK)) - set(game.hands[0]) - {"2C", "5D"}
    assert possible_for(game, 0, 1) == {card for card in hidden if card[1] != "C"}
    assert possible_for(game, 0, 2) == possible_for(game, 0, 3) == hidden


@pytest.mark.small
@pytest.mark.parametrize("first_trick", ["no scoring", "jack free", "any"])
def test_r09_who_throws_a_banned_card_on_the_first_trick_has_nothing_else(first_trick: Any) -> None:
    rules = ANY_CALL.replace(first_trick=first_trick)
    game = push(held("AKQJT98765432...", "..AKQJT9876543.Q", rules=rules), "2C KH")
    banned = {*HEARTS, "QS", "QD", "JD"} - ({"JD"} if first_trick == "jack free" else set()) - {"KH"}
    everything = set(names_in(DECK)) - set(game.hands[0]) - {"2C", "KH"}
    assert possible_for(game, 0, 1) == (everything if first_trick == "any" else banned)
    assert possible_for(game, 0, 2) == possible_for(game, 0, 3) == everything


@pytest.mark.small
def test_r10_who_leads_an_unbroken_heart_has_nothing_else() -> None:
    for changes, beside in (
        ({}, set()),
        ({"hearts_broken_by": "heart"}, set()),
        ({"hearts_with_qs": True}, {"QS"}),
        ({"hearts_broken_by": "no need"}, {"QS", "AD", "KC", "AS"}),
    ):
        game = held("5432.5432.2.5432", "A..AKQJT9876543.", rules=ANY_CALL.replace(**changes))
        push(game, "2C AC 7C KD")
        assert {"4H", "QS", "AD"} <= possible_for(game, 0, 1)
        push(game, "4H")
        others = {card for card in possible_for(game, 0, 1) if card[1] != "H"}
        assert others >= beside and (others == beside or len(beside) > 1)


@pytest.mark.small
def test_r04_what_i_passed_is_with_its_taker_until_it_is_played() -> None:
    game = Game.from_deal(deal("AKQJ.AKQ.AKQ.AKQ"), dealer=0, call="111", rules=ANY_CALL)
    while game.seat != 0:
        game.push(game.legal_actions()[-1])
    push(game, "AC KC QC")
    assert all(card in sure_of(game, 0)[place] for place, card in enumerate(["AC", "KC", "QC"], start=1))
    while "KC" not in plays_of(game):
        game.push(next(iter({"KC"} & legal(game)), game.legal_actions()[0]))
    assert "AC" in sure_of(game, 0)[1] and "KC" not in possible_for(game, 0, 2)


@pytest.mark.small
def test_counting_alone_makes_cards_certain() -> None:
    """The last trick: who is void in what leaves one place for a card that two might hold."""
    rng = random.Random(3)
    found = 0
    for _ in range(12):
        game = late(ANY_CALL, rng, 46)
        for seat in range(4):
            beliefs = Beliefs(game.view(seat), game.rules)
            may = may_hold(game, seat)
            sure = [set(names_in(int(cards))) for cards in beliefs.certain()]
            alone = [may[s] - set().union(*(may[k] for k in (1, 2, 3) if k != s)) for s in (1, 2, 3)]
            found += sum(len(more) > len(less) for more, less in zip(sure[1:], alone, strict=True))
            assert all(more >= less for more, less in zip(sure[1:], alone, strict=True))
    assert found


# --- worlds -----------------------------------------------------------------------------------------------------


def assert_worlds_agree(game: Game, seat: int, worlds: Any) -> None:
    """Each looks the same to the seat, is one deal, and can be written down and read again, play by play."""
    rules = compile_rules(game.rules)
    assert (
        views_of(worlds, rules, np.zeros(len(worlds), np.int64)).tobytes() == game.views([seat] * len(worlds)).tobytes()
    )
    for world in worlds[:, None]:
        again = Game.from_notation(position_to_string(world, game.rules)).record
        for name in world.dtype.names:
            if name not in ("best_card", "best_seat") or world["num_plays"][0] & 3:
                assert (again[name] == world[name]).all(), name


def test_worlds_look_the_same_and_are_legal_from_the_start() -> None:
    rng, seen = random.Random(5), Counter[Any]()
    for _ in range(40):
        rules = rng.choice([random_rules(rng), rng.choice(EACH_CALL), Rules(calls=("kitty",), max_deals=1)])
        for game in moments(rules, rng):
            if rng.random() < {"call": 1, "pick": 0.2, "play": 0.06, "over": 1}[game.phase]:
                seat = rng.randrange(4)
                worlds = Beliefs(game.view(seat), rules).worlds(3, rng.randrange(1 << 40))
                assert_worlds_agree(game, seat, worlds)
                seen[game.phase, game.call == "kitty"] += 1
                seen["to move" if game.seat == seat else "waiting"] += 1
    assert len(seen) == 9 and min(seen.values()) > 10, seen


@pytest.mark.small
def test_worlds_of_a_few_moments() -> None:
    rng = random.Random(2)
    for call in ("kitty", "201"):
        for game in itertools.islice(moments(Rules(calls=(call,)), rng, deals=1), 3, None, 15):
            for seat in (0, 2):
                assert_worlds_agree(game, seat, Beliefs(game.view(seat), game.rules).worlds(2, 7))


@pytest.mark.parametrize("agent", ["greedy", "heuristic"])
def test_worlds_of_games_between_players(agent: str) -> None:
    rng = random.Random(11)
    for rules in (Rules(), Rules(calls=("kitty",)), Rules.standard_hearts(), Rules.omnibus()):
        game = Game(rules, seed=rng.randrange(1 << 30))
        for _ in range(100):
            if rng.random() < 0.2:
                seat = rng.randrange(4)
                assert_worlds_agree(game, seat, Beliefs(game.view(seat), rules).worlds(2, 1))
            game.push(game.choose(agent))


def test_worlds_depend_on_the_view_alone_and_hidden_truths_are_possible() -> None:
    rng, changed = random.Random(8), 0
    for rules in (Rules(), Rules(calls=("kitty",)), Rules(calls=("111", "hold"), first_lead="any club")):
        for game in itertools.islice(moments(rules, rng), 0, None, 4):
            seat = rng.randrange(4)
            before = Beliefs(game.view(seat), rules)
            for other in resampled(game, seat, rng, steps=4):
                after = Beliefs(other.view(seat), rules)
                assert after.worlds(3, 5).tobytes() == before.worlds(3, 5).tobytes()
                assert after.places().tobytes() == before.places().tobytes()
                hands = np.roll(other.record["hand"][0], -seat)
                assert not (hands & ~before.possible()).any()
                changed += (hands != np.roll(game.record["hand"][0], -seat)).any()
    assert changed > 60


@pytest.mark.small
def test_worlds_are_numbered_and_fresh() -> None:
    beliefs = Beliefs(Game(seed=1).view())
    worlds = beliefs.worlds(6, 3)
    assert worlds[:2].tobytes() == beliefs.worlds(2, 3).tobytes() != beliefs.worlds(2, 4).tobytes()
    assert len({world.seed for world in worlds}) == len({tuple(world.hand) for world in worlds}) == 6
    assert len(beliefs.worlds(0, 3)) == 0


@pytest.mark.small
def test_the_kernel_draws_for_many_views() -> None:
    rules = Rules(calls=("kitty", "120"))
    games = [game.copy() for game in itertools.islice(moments(rules, random.Random(6), deals=1), 5, 60, 11)]
    views = np.concatenate([game.views([2]) for game in games])
    views["hand"][1] = 0
    worlds, layouts = np.concatenate([game.record for game in games]).repeat(3), np.empty(len(games))
    kept = worlds[3:6].tobytes()
    draw_worlds(views, compile_rules(rules), np.arange(len(games), dtype=np.uint64), new_scratch(), worlds, layouts)
    for i, game in enumerate(games):
        if i != 1:
            beliefs = Beliefs(game.view(2), rules)
            assert layouts[i] == beliefs.layouts
            assert worlds[3 * i : 3 * i + 3].tobytes() == beliefs.worlds(3, i).tobytes()
    assert layouts[1] == 0.0 and worlds[3:6].tobytes() == kept


# --- worlds, as often as they should come -----------------------------------------------------------------------


def deviate(observed: Any, shares: Any) -> float:
    """Pearson's statistic against shares that sum to 1, as a normal deviate: above 5 only by a fault."""
    observed, shares = np.asarray(observed, float), np.asarray(shares, float)
    assert abs(shares.sum() - 1) < 1e-9 and not observed[shares == 0].any()
    observed, shares = observed[shares > 0], shares[shares > 0]
    freedom = len(shares) - 1
    if not freedom:
        return 0.0
    return float((chi_square(observed, observed.sum() * shares) - freedom) / (2 * freedom) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["kitty", "hold", "300", "111", "021"])
def test_layouts_come_as_often_as_they_should(call: str) -> None:
    rng, sizes, uneven = random.Random(len(call)), list[int](), 0
    while len(sizes) < 8 or max(sizes) < 50 or (call == "kitty" and uneven < 2):
        game, seat = late(Rules(calls=(call,)), rng, rng.randrange(42, 46)), rng.randrange(4)
        found = enumerated(game, seat)
        total = sum(found.values())
        worlds = Beliefs(game.view(seat), game.rules).worlds(40 * len(found), len(sizes))
        counts = Counter(map(tuple, worlds["hand"].tolist()))
        assert counts.keys() <= found.keys()
        assert deviate([counts[hands] for hands in found], [ways / total for ways in found.values()]) < 5
        sizes.append(len(found))
        uneven += len(set(found.values())) > 1


PARTS = 7


def part(cards: int) -> int:
    """One of a few numbers for a set of cards."""
    return ((cards * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 40) % PARTS


def together(parts: list[Counter[int]]) -> list[float]:
    """The shares of the sum of independent parts, modulo `PARTS`."""
    shares = np.eye(PARTS)[0]
    for each in parts:
        total = sum(each.values())
        shares = sum(n / total * np.roll(shares, k) for k, n in each.items())
    return list(shares)


def takings(hand: set[str], counts: list[int]) -> Iterator[list[int]]:
    """All ways to get so many cards of a hand from each of several givers."""
    if not counts:
        yield []
        return
    for three in itertools.combinations(sorted(hand), counts[0]):
        for rest in takings(hand - set(three), counts[1:]):
            yield [mask_of(map(card_id, three)), *rest]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["111", "300", "021", "102"])
def test_passes_come_as_often_as_they_should(call: str) -> None:
    """All cards are played: the passes of the others to each other are what is left open."""
    rng = random.Random(9)
    game = next(game for game in moments(Rules(calls=(call,), max_deals=1), rng) if game.is_over)
    beliefs, view = Beliefs(game.view(1), game.rules), game.view(1)
    assert beliefs.layouts == 1
    full = [set(names_in(int(cards))) for cards in view.played]
    directions = {
        (giver, taker): (taker - giver - 1) % 4 for giver in (1, 2, 3) for taker in (1, 2, 3) if giver != taker
    }
    parts = []
    for taker in (1, 2, 3):
        givers = [giver for giver in (1, 2, 3) if giver != taker]
        counts = [int(call[directions[giver, taker]]) for giver in givers]
        free = full[taker] - set(names_in(int(view.given[taker - 1])))
        parts.append(
            Counter(
                sum((giver + 3) * part(cards) for giver, cards in zip(givers, each, strict=True)) % PARTS
                for each in takings(free, counts)
            )
        )
    worlds = beliefs.worlds(20_000, 1)
    seen = Counter(
        sum((giver + 3) * part(int(world.given[giver, d])) for (giver, _), d in directions.items()) % PARTS
        for world in worlds
    )
    assert deviate([seen[k] for k in range(PARTS)], together(parts)) < 5
    for (giver, taker), d in directions.items():  # and each card is as likely as any other
        if int(call[d]):
            free = sorted(full[taker] - set(names_in(int(view.given[taker - 1]))))
            got = Counter(name for world in worlds for name in names_in(int(world.given[giver, d])))
            assert deviate([got[name] for name in free], [1 / len(free)] * len(free)) < 5


@pytest.mark.slow
def test_kitties_come_as_often_as_they_should() -> None:
    """What came back to whom, and who put it in, in layouts of different numbers of kitties."""
    rng, uneven = random.Random(4), 0
    while uneven < 3:
        game, seat = late(Rules(calls=("kitty",)), rng, rng.choice((43, 44))), rng.randrange(4)
        if not lost_cards(game, seat) & set().union(*game.hands):
            continue
        found, view = enumerated(game, seat), game.view(seat)
        given, lost = set(names_in(int(view.given[0]))), lost_cards(game, seat)
        total = sum(found.values())
        shares = np.zeros(PARTS)
        for hands, ways in found.items():
            full = [set(names_in(int(hands[s] | int(view.played[s])))) for s in range(4)]
            parts = [
                Counter(
                    (s + 1) * part(mask_of(map(card_id, three))) % PARTS
                    for three in itertools.combinations(sorted(full[s]), 3)
                    if set(three) & given == full[s] & lost
                )
                for s in (1, 2, 3)
            ]
            shares += ways / total * np.array(together(parts))
        worlds = Beliefs(view, game.rules).worlds(20_000, 1)
        seen = Counter(sum((s + 1) * part(int(world.kitty[s])) for s in (1, 2, 3)) % PARTS for world in worlds)
        assert deviate([seen[k] for k in range(PARTS)], shares) < 5
        uneven += len(set(found.values())) > 1
        orders = Counter(order_of(world) for world in worlds)
        assert len(orders) == 1680 and deviate(list(orders.values()), [1 / 1680] * 1680) < 5


@pytest.mark.slow
def test_kitties_of_a_finished_deal_are_any_that_hold_what_i_lost() -> None:
    rng = random.Random(6)
    game = next(game for game in moments(Rules(calls=("kitty",), max_deals=1), rng) if game.is_over)
    worlds = Beliefs(game.view(2), game.rules).worlds(20_000, 3)
    lost, record = mask_of(map(card_id, lost_cards(game, 2))), game.record[0]
    for place in (1, 2, 3):
        j = (lost & int(record.played[(2 + place) % 4])).bit_count()
        kitties_got = Counter(worlds["kitty"][:, place].tolist())
        assert len(kitties_got) == comb(13 - j, 3 - j)
        assert deviate(list(kitties_got.values()), [1 / len(kitties_got)] * len(kitties_got)) < 5


def order_of(world: Any) -> tuple[int, ...]:
    """Who of places 1 to 3 put in the lowest of the nine cards that are not mine, the next, and so on."""
    pile = sorted(cards_in(int(mask_union(world.given[1:, 0]))))
    return tuple(next(s for s in (1, 2, 3) if int(world.given[s, 0]) >> card & 1) for card in pile)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["kitty", "111"])
def test_hands_and_picks_before_the_exchange_come_as_often_as_they_should(call: str) -> None:
    game = Game.from_deal(deal("AKQJ.AKQ.AKQ.AKQ"), dealer=0, call=call, rules=ANY_CALL)
    for _ in range(8):
        game.push(game.legal_actions()[0])
    worlds = Beliefs(game.view(0), ANY_CALL).worlds(60_000, 2)
    dealt = worlds["hand"] | np.bitwise_or.reduce(worlds["given"], axis=2)
    hidden = cards_in(int(DECK & ~int(dealt[0, 0])))
    some = [hidden[k] for k in (0, 1, 17, 30, 38)]
    where = np.stack([(dealt >> np.uint64(card) & np.uint64(1)).argmax(axis=1) for card in some], axis=1)
    counts = Counter(map(tuple, where.tolist()))
    places = list(itertools.product((1, 2, 3), repeat=len(some)))
    shares = [hypergeometric([each.count(s) for s in (1, 2, 3)], len(some)) for each in places]
    assert deviate([counts[each] for each in places], shares) < 5
    for s, picked in ((1, 3), (2, 3), (3, 2)):
        given = np.bitwise_or.reduce(worlds["given"][:, s], axis=1)
        ranks = Counter(
            tuple(rank for rank, card in enumerate(cards_in(int(hand))) if int(cards) >> card & 1)
            for hand, cards in zip(dealt[:, s], given, strict=True)
        )
        assert len(ranks) == comb(13, picked)
        assert deviate(list(ranks.values()), [1 / len(ranks)] * len(ranks)) < 5
    if call == "111":
        assert (np.bitwise_count(worlds["given"][:, 1]) == 1).all()
        higher = (worlds["given"][:, 1, 0] > worlds["given"][:, 1, 1]).mean()
        assert abs(higher - 0.5) < 5 * 0.5 / len(worlds) ** 0.5


def hypergeometric(counts: list[int], size: int) -> float:
    """The chance that these cards lie so, in order, with 13 of 39 for each place."""
    ways = factorial(39 - size)
    for n in counts:
        ways //= factorial(13 - n)
    return ways / (factorial(39) // factorial(13) ** 3)


# --- views that cannot be ---------------------------------------------------------------------------------------


def changed(view: Any, **fields: Any) -> Any:
    """A view with fields set, ``name=value`` or ``name={index: value}``."""
    one = np.zeros(1, VIEW)
    one[0] = view
    for name, value in fields.items():
        if isinstance(value, dict):
            for index, item in value.items():
                one[name][0][index] = item
        else:
            one[name][0] = value
    return one[0]


def in_mid_deal(call: str = "111") -> Game:
    game = Game(Rules(calls=(call,)), seed=5)
    rng = random.Random(5)
    while len(plays_of(game)) < 18:
        game.push(rng.choice(game.legal_actions()))
    return game


@pytest.mark.small
def test_impossible_views_are_refused() -> None:
    game = in_mid_deal()
    view, rules = game.view(0), game.rules
    Beliefs(view, rules)
    mine, theirs = names_in(int(view.hand))[0], next(names_in(int(hand))[0] for hand in game.record["hand"][0, 1:])
    early = Game.from_deal(deal("2"), dealer=0, call="hold", rules=ANY_CALL).view(1)
    no_hands = "no hands of the other seats agree"
    for wrong, words in (
        (changed(view, voids={1: 15}), no_hands),
        (changed(view, hand=int(view.hand) | mask(theirs)), no_hands),
        (changed(view, hand=int(view.hand) & ~mask(mine)), no_hands),
        (changed(view, given={0: int(view.received[0])}), no_hands),
        (changed(view, received={0: mask(theirs)}), no_hands),
        (changed(view, received={0: 0}), no_hands),
        (changed(view, num_plays=53), no_hands),
        (changed(view, num_picks=11), no_hands),
        (changed(view, plays={0: 77}), no_hands),
        (changed(view, leaders={2: 9}), no_hands),
        (changed(view, phase=PICK), no_hands),
        (changed(view, call=NO_CALL), no_hands),
        (changed(early, seat=0), no_hands),
        (changed(view, taken={0: int(view.taken[0]) ^ 1}), "taken: not what the deal's decisions lead to"),
        (changed(view, points={2: 99}), "points: not what"),
        (changed(view, broken=1 - int(view.broken), best_card=3), "best_card, broken: not what"),
        (changed(view, leaders={2: (int(view.leaders[2]) + 1) % 4}), "leaders: not what"),
        (changed(view, call=string_to_action("kitty")), "call|no hands"),
    ):
        with pytest.raises(BeliefError, match=words):
            Beliefs(wrong, ANY_CALL if wrong.call == early.call else rules)
    swapped = list(map(int, view.plays))
    swapped[0], swapped[4] = swapped[4], swapped[0]
    with pytest.raises(BeliefError, match=r"at place \d after 12 picks and 0 plays cannot be legal"):
        Beliefs(changed(view, plays=swapped), rules)
    assert issubclass(BeliefError, ArgumentError)


@pytest.mark.small
def test_rotations_and_ends_are_told_apart() -> None:
    standard = Rules.standard_hearts()
    view = Game(standard, seed=2).view(0)
    Beliefs(view, standard)
    with pytest.raises(BeliefError, match="view: "):
        Beliefs(changed(view, deal=3), standard)
    single = standard.replace(max_deals=1)
    for number in range(4):
        game = Game(single, seed=2, game=number)
        assert_worlds_agree(game, 1, Beliefs(game.view(1), single).worlds(2, 0))


@pytest.mark.small
def test_only_one_view_is_taken() -> None:
    game = Game(seed=1)
    assert Beliefs(game.views([0])).layouts == Beliefs(game.view(0)).layouts
    for wrong in (game.views([0, 1]), game.record, None, 3, np.zeros(0, VIEW)):
        with pytest.raises(ArgumentError, match="view: expected one VIEW record"):
            Beliefs(wrong)
    beliefs = Beliefs(game.view(0))
    for count, seed in ((-1, 0), (1.5, 0), (1, -1), (1, 1 << 64), ("1", 0)):
        with pytest.raises(ArgumentError):
            beliefs.worlds(count, seed)  # type: ignore[arg-type]


# --- weights ----------------------------------------------------------------------------------------------------


class Biased:
    """Takes an action in proportion to its id plus one."""

    def act(self, views: Any, rng: Any) -> Any:
        raise AssertionError("its odds are asked for, never its action")

    def probabilities(self, views: Any) -> Any:
        shares = legal_rows(views["legal"]) * np.arange(1.0, 65.0)
        return shares / shares.sum(axis=1, keepdims=True)


def likelihood(world: Any, rules: Rules, agent: Any) -> float:
    """The chance of what others did in a world, decision by decision through its position in text."""
    text = position_to_string(world, rules)
    head, moves = text.partition(" ;")[0].split(" ")[:3], text.partition(" ;")[0].split(" ")[3:]
    game, product = Game.from_notation(" ".join([*head, ";", text.partition("; ")[2]])), 1.0
    for k, move in enumerate(moves):
        if move.startswith("="):
            game = Game.from_notation(" ".join([*head, *moves[: k + 1], ";", text.partition("; ")[2]]))
            continue
        if game.seat:
            product *= agent.probabilities(game.views([game.seat]))[0, string_to_action(move)]
        game.push(move)
    return product


@pytest.mark.small
@pytest.mark.parametrize(
    ("call", "agents"), [("111", [Biased(), RandomAgent()]), ("hold", [Biased()]), ("kitty", [RandomAgent()])]
)
def test_weights_are_the_chances_of_what_others_did(call: str, agents: list[Any]) -> None:
    """Where the order of picks, which is drawn, makes no difference."""
    rng = random.Random(2)
    for seat, plays in ((0, 0), (2, 9)):
        game = late(Rules(calls=(call, "030")), rng, plays)
        while game.call != call:
            game = late(Rules(calls=(call, "030")), rng, plays)
        for agent in agents:
            worlds, weights, ess = Beliefs(game.view(seat), game.rules).weighted(5, 3, agent)
            expected = np.array([likelihood(world, game.rules, agent) for world in worlds[:, None]])
            assert np.abs(weights - expected / expected.sum()).max() < 1e-12
            assert ess == pytest.approx(expected.sum() ** 2 / (expected**2).sum())
            assert worlds.tobytes() == Beliefs(game.view(seat), game.rules).worlds(5, 3).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("call", ["300", "kitty"])
def test_weights_sum_over_the_orders_of_picks(call: str) -> None:
    """Before the exchange: the weighted share of worlds in which the dealer's left passed a card, against all picks."""
    game = Game.from_deal(deal("AKQJ.AKQ.AKQ.AKQ"), dealer=0, call=call, rules=ANY_CALL)
    for _ in range(3):
        game.push(game.legal_actions()[0])
    worlds, weights, ess = Beliefs(game.view(0), ANY_CALL).weighted(40_000, 1, Biased())
    assert 1000 < ess < len(worlds)
    picked = worlds["given"][:, 1, 0]
    dealt = worlds["hand"][:, 1] | picked
    top = np.array([cards_in(int(hand))[-1] for hand in dealt])
    share = float((weights * (picked >> top.astype(np.uint64) & np.uint64(1))).sum())
    expected = np.mean([chance_of_highest(cards_in(int(hand))) for hand in dealt[:400]])
    assert abs(share - expected) < 0.03
    unweighted = float((picked >> top.astype(np.uint64) & np.uint64(1)).mean())
    assert abs(unweighted - 3 / 13) < 0.02 < expected - unweighted
    rules = compile_rules(ANY_CALL)
    picks = np.array([actions.copy() for actions in retraced(worlds, rewound(worlds, rules), rules, 1)])[1:4]
    orders = Counter(map(tuple, picks.argsort(axis=0).T.tolist()))
    assert len(orders) == 6 and deviate(list(orders.values()), [1 / 6] * 6) < 5


def chance_of_highest(hand: list[int]) -> float:
    """That `Biased` has the highest of a hand among its three picks."""
    missed = 0.0
    for three in itertools.permutations(hand[:-1], 3):
        left, chance = sum(hand) + len(hand), 1.0
        for card in three:
            chance *= (card + 1) / left
            left -= card + 1
        missed += chance
    return 1.0 - missed


class Never(Biased):
    """Takes the lowest action alone."""

    def probabilities(self, views: Any) -> Any:
        legal = legal_rows(views["legal"])
        return (np.cumsum(legal, axis=1) == 1) * legal * 1.0


@pytest.mark.small
def test_weights_that_cannot_be() -> None:
    game = in_mid_deal()
    beliefs = Beliefs(game.view(0), game.rules)
    with pytest.raises(BeliefError, match="Never would have let none of 4 worlds come about"):
        beliefs.weighted(4, 0, Never())
    with pytest.raises(AgentError, match=r"heuristic: Heuristic has no method probabilities"):
        beliefs.weighted(4, 0, "heuristic")
    with pytest.raises(ArgumentError, match="count"):
        beliefs.weighted(0, 0, "random")
    for wrong, words in (
        (lambda views: np.zeros((1, 64)), "of shape"),
        (lambda views: -np.ones((4, 64)), "from 0 up"),
        (lambda views: 1 / 0, "raised ZeroDivisionError"),
    ):
        agent = Biased()
        agent.probabilities = wrong  # type: ignore[method-assign]
        with pytest.raises(AgentError, match=words):
            beliefs.weighted(4, 0, agent)
    assert beliefs.weighted(3, 0, make_agent("random"))[2] <= 3 + 1e-9


# --- the kernels ------------------------------------------------------------------------------------------------


def test_each_kernel_is_compiled_once() -> None:
    game = in_mid_deal("kitty")
    beliefs = Beliefs(game.view(0), game.rules)
    beliefs.weighted(2, 1, "random")
    for _ in retraced(game.record, rewound(game.record, compile_rules(game.rules)), compile_rules(game.rules), 0):
        pass
    for kernel in (find_places, draw_worlds, rewind_all, next_actions, take_actions):
        assert len(kernel.signatures) <= 1  # none with the JIT off
