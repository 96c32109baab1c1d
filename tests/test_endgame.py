"""Endings: the solver beside a plain recursion over the engine, equal cards beside their definition, known answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import config
from numpy.typing import NDArray

from agents.search import endgame
from agents.search.endgame import QUARTERS, Solution, helped, paranoid, shot_forced, shot_of, solve
from agents.search.equal import alike_cards, equal_cards, representatives
from dnfh_env import Game, Rules
from dnfh_env._bits import indices
from dnfh_env.cards import (
    CARD_NAMES,
    DECK,
    HEARTS,
    JACK_OF_DIAMONDS,
    NUM_CARDS,
    TWO_OF_CLUBS,
    card_id,
    cards_in,
    mask_of,
)
from dnfh_env.engine import GAME, PLAY
from dnfh_env.errors import ArgumentError
from dnfh_env.notation import act, legal_of
from dnfh_env.objective import POINTS, SHOT_VALUE, standings_of
from dnfh_env.rules import HOLD, card_points, compile_rules
from positions import ALL_BUT_THE_JACK, ALL_CLUBS, ANY_CALL, held, mask
from random_rules import random_rules

Values = tuple[int, ...]
Order = Callable[[int, Values], Any]
"""How much a mover likes values, the greatest wins."""

# --- endings ----------------------------------------------------------------------------------------------------


def ending(
    hands: list[int], taken: list[int], leader: int, rules: Rules, broken: bool = True, deal: int = 0
) -> NDArray[Any]:
    """A game between two tricks of a deal, from sets of cards."""
    game = np.zeros(1, GAME)
    game["hand"] = hands
    game["taken"] = taken
    game["points"] = [sum(rules.points[card] for card in cards_in(cards)) for cards in taken]
    game["num_plays"] = NUM_CARDS - mask_of(card for hand in hands for card in cards_in(hand)).bit_count()
    game["seat"], game["broken"], game["phase"], game["call"], game["deal"] = leader, broken, PLAY, HOLD, deal
    return game


def written(*hands: str, leader: int = 0, taken: tuple[str, ...] = ("",) * 4) -> NDArray[Any]:
    """An ending under default rules by the names of cards; what is named nowhere seat 3 has taken."""
    held_, took = list(map(mask, hands)), list(map(mask, taken))
    took[3] |= DECK & ~(sum(held_) + sum(took))
    return ending(held_, took, leader, Rules())


def random_ending(rng: random.Random, rules: Rules, tricks: int) -> NDArray[Any]:
    """A position with this many tricks left, the one under way included; often with points and shots at stake."""
    left = rng.sample(range(NUM_CARDS), 4 * tricks)
    if rng.random() < 0.5:  # the scoring cards first, and tops
        left = sorted(range(NUM_CARDS), key=lambda card: (rules.points[card] == 0) + rng.random() * 1.5)[: 4 * tricks]
        rng.shuffle(left)
    if rng.random() < 0.4:  # high cards in one hand
        left.sort(key=lambda card: card % 13 + 6 * rng.random())
    hands = [mask_of(left[s * tricks : (s + 1) * tricks]) for s in range(4)]
    gone = [card for card in range(NUM_CARDS) if card not in left]
    shooter = rng.choice((None, 3, rng.randrange(4)))  # seat 3 has the high cards
    needed = rules.shot_cards if shooter is not None else 0
    takers = [shooter if needed >> card & 1 else rng.randrange(4) for card in gone]
    taken = [mask_of(card for card, taker in zip(gone, takers, strict=True) if taker == s) for s in range(4)]
    game = ending(hands, taken, rng.randrange(4), rules, rng.random() < 0.7, rng.randrange(rules.max_deals or 3))
    game["scores"] = [rng.randrange(-20, 20) for _ in range(4)]
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        game = after(game, rules, rng.choice(indices(legal_of(game, compile_rules(rules)))))
    return game


def after(game: NDArray[Any], rules: Rules, action: int) -> NDArray[Any]:
    game = copy_of(game)
    act(game, compile_rules(rules), action)
    return game


def copy_of(game: NDArray[Any]) -> NDArray[Any]:
    """Numpy takes twenty times as long to copy records."""
    return np.frombuffer(bytearray(game.tobytes()), GAME)


# --- the plain recursion ----------------------------------------------------------------------------------------


def outcome(game: NDArray[Any], rules: Rules) -> Values:
    """What the deal that has just ended comes to: four times the mean of the entries minus one's own (or a shot)."""
    shooter, entered = int(game["shooter"][0]), list(map(int, game["entered"][0]))
    if rules.shot == "game" and shooter >= 0:
        return tuple(4 * (3 * SHOT_VALUE if s == shooter else -SHOT_VALUE) for s in range(4))
    return tuple(sum(entered) - 4 * entered[s] for s in range(4))


def shots(game: NDArray[Any], rules: Rules) -> Values:
    """1 for the seat that has shot the deal that has just ended."""
    return tuple(int(game["shooter"][0] == s) for s in range(4))


def brute(
    game: NDArray[Any], rules: Rules, order: Order, worth: Callable[[NDArray[Any], Rules], Values] = outcome
) -> tuple[Values, dict[int, Values]]:
    """The value of a position, and of its actions, by playing out every line: no merging, no table."""
    compiled = compile_rules(rules)

    def best(game: NDArray[Any], values: dict[int, Values]) -> Values:
        mover = int(game["seat"][0])
        return max(values.values(), key=lambda found: order(mover, found))

    def after(game: NDArray[Any], action: int) -> Values:
        then = copy_of(game)
        legal = act(then, compiled, action)
        if game["num_plays"][0] == NUM_CARDS - 1:
            return worth(then, rules)
        return best(then, {action: after(then, action) for action in indices(legal)})

    values = {action: after(game, action) for action in indices(legal_of(game, compiled))}
    return best(game, values), values


def own(mover: int, values: Values) -> Any:
    return values[mover], -values[(mover + 1) % 4], -values[(mover + 2) % 4]


def against(seat: int) -> Order:
    def order(mover: int, values: Values) -> Any:
        mine = values[seat] if mover == seat else -values[seat]
        return mine, -values[(seat + 1) % 4], -values[(seat + 2) % 4]

    return order


def with_help(seat: int) -> Order:
    return lambda mover, values: own(seat, values)


def found(solution: Solution) -> tuple[Values, dict[int, Values]]:
    values = map(tuple, solution.values.tolist())
    return tuple(solution.value.tolist()), dict(zip(solution.actions.tolist(), values, strict=True))


def check(game: NDArray[Any], rules: Rules) -> None:
    """The solver agrees with the recursion about a position, whatever the size of its table."""
    before = game.tobytes()
    expected = brute(game, rules, own)
    assert found(solve(game, rules)) == found(solve(game, rules, places=1)) == expected
    best = solve(game, rules).best.tolist()
    mover = int(game["seat"][0])
    assert best == [action for action, values in expected[1].items() if values[mover] == expected[0][mover]]
    assert all(sum(values) == 0 for values in expected[1].values())
    assert game.tobytes() == before


def check_bounds(game: NDArray[Any], rules: Rules, seat: int) -> None:
    low, high = paranoid(game, rules, seat), helped(game, rules, seat)
    assert found(low) == found(paranoid(game, rules, seat, places=1)) == brute(game, rules, against(seat))
    assert found(high) == brute(game, rules, with_help(seat))
    assert low.value[seat] <= solve(game, rules).value[seat] <= high.value[seat]


def check_shot(game: NDArray[Any], rules: Rules, seat: int) -> str:
    shot = shot_of(game, rules, seat)
    least = brute(game, rules, against(seat), shots)[0][seat]
    most = brute(game, rules, with_help(seat), shots)[0][seat]
    if least:
        has_all = int(game["taken"][0, seat]) & rules.shot_cards == rules.shot_cards
        assert shot == ("certain" if has_all else "forced")
    else:
        assert shot == ("open" if most else "impossible")
    assert shot_forced(game, rules, seat) == bool(least)
    return shot


def drawn(seed: int, most: int) -> tuple[random.Random, Rules, NDArray[Any]]:
    """Rules, half the time the default ones, and an ending of up to ``most`` tricks."""
    rng = random.Random(seed)
    rules = random_rules(rng) if seed % 2 else Rules()
    return rng, rules, random_ending(rng, rules, rng.randint(min(2, most), most))


# --- against the recursion --------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("seed", range(6))
def test_few_small_endings(seed: int) -> None:
    rng, rules, game = drawn(seed, 2)
    seat = rng.randrange(4)
    check(game, rules)
    check_bounds(game, rules, seat)
    check_shot(game, rules, seat)


def test_endings() -> None:
    for seed in range(300):
        _, rules, game = drawn(seed, 3)
        check(game, rules)


CANCELLING = Rules(points=card_points(hearts=0, AS=5, KS=-5, AH=7, KH=-7, AD=1), shot="others", max_deals=9)
JACK_ASIDE = Rules(shot_needs_jack=False)


@pytest.mark.parametrize("rules", [CANCELLING, JACK_ASIDE], ids=["points that cancel", "the jack is not needed"])
def test_the_table_tells_apart_who_may_still_shoot_and_for_what(rules: Rules) -> None:
    """Though the same cards are left, and the points taken say nothing of the shot, or the shot nothing of them."""
    for seed in range(800):
        rng = random.Random(seed)
        tricks = 4 if seed % 8 else 3
        names = ["AS", "KS", "AH", "KH", "AD", "JD", "2D", "KD", "4D"]
        names += rng.sample([name for name in CARD_NAMES if name not in names], 4 * tricks - len(names))
        rng.shuffle(names)
        hands = [mask(" ".join(names[s * tricks : (s + 1) * tricks])) for s in range(4)]
        gone, shooter = DECK & ~sum(hands), rng.randrange(4)
        game = ending(hands, [gone * (s == shooter) for s in range(4)], shooter, rules)
        expected = brute(game, rules, own) if tricks == 3 else found(solve(game, rules, places=1))
        assert all(found(solve(game, rules, places)) == expected for places in (None, 2, 8))


def test_bounds() -> None:
    for seed in range(150):
        rng, rules, game = drawn(seed, 3)
        check_bounds(game, rules, rng.randrange(4))


def test_shots() -> None:
    seen = []
    for seed in range(300):
        rng, rules, game = drawn(seed, 2 + (seed % 5 == 0))
        ahead = max(range(4), key=lambda s: (int(game["taken"][0, s]) & rules.shot_cards).bit_count())
        seen.append(check_shot(game, rules, rng.choice((ahead, ahead, ahead, rng.randrange(4)))))
    assert min(map(seen.count, ("certain", "forced", "open", "impossible"))) >= 8


@pytest.mark.slow
def test_ten_thousand_endings() -> None:
    for seed in range(10_000):
        _, rules, game = drawn(1000 + seed, 3)
        expected = brute(game, rules, own)
        assert found(solve(game, rules)) == expected


@pytest.mark.parametrize("tricks", [4, 5])
def test_longer_endings_come_to_what_their_successors_do(tricks: int) -> None:
    for seed in range(60 if tricks == 4 else 20):
        rng = random.Random(seed)
        rules = random_rules(rng) if seed % 2 else Rules()
        game = random_ending(rng, rules, tricks)
        value, values = found(solve(game, rules))
        mover = int(game["seat"][0])
        assert value == max(values.values(), key=lambda found: own(mover, found))
        for action in values:
            assert found(solve(after(game, rules, action), rules))[0] == values[action]


def test_the_size_of_the_table_changes_nothing() -> None:
    for seed in range(6):
        rng = random.Random(seed)
        rules = random_rules(rng) if seed % 2 else Rules()
        game = random_ending(rng, rules, 4)
        expected = found(solve(game, rules))
        for places in (1, 2, 64, 1 << 16):
            assert found(solve(game, rules, places)) == expected


def test_turning_the_seats_turns_the_values() -> None:
    for seed in range(60):
        _, rules, game = drawn(seed, 3)
        turned = copy_of(game)
        for name in ("hand", "taken", "points", "scores"):
            turned[name] = np.roll(game[name], 1, axis=1)
        for name in ("seat", "best_seat"):
            turned[name] = (game[name] + 1) % 4
        value, values = found(solve(game, rules))
        assert found(solve(turned, rules)) == (
            tuple(np.roll(value, 1)),
            {action: tuple(np.roll(found_, 1)) for action, found_ in values.items()},
        )


def test_values_are_the_standing_of_the_deal() -> None:
    for seed in range(100):
        _, rules, game = drawn(seed, 1)
        scores = game["scores"][0].astype(np.int64)
        before = scores.mean() - scores
        (value, _), compiled = found(solve(game, rules)), compile_rules(rules)
        deal = int(game["deal"][0])
        while game["phase"][0] == PLAY and game["deal"][0] == deal and game["num_plays"][0] >= 48:
            game = after(game, rules, indices(legal_of(game, compiled))[0])
        assert value == tuple(QUARTERS * (standings_of(game, compiled, POINTS)[0] - before))


# --- known answers ----------------------------------------------------------------------------------------------


@pytest.mark.small
def test_the_queen_goes_to_whom_it_harms_most_by_the_order_of_the_docs() -> None:
    """Seat 1 is rid of the queen either way: led at once it falls to seat 2, thrown on the last trick to seat 0."""
    game = written("3S 5C", "QS 2S", "AS 3C", "KS 4C", leader=1, taken=("2H", "", "3H", ""))
    points = np.array([1, 0, 1, 39])
    solution = solve(game, Rules())
    for action, taker in (("QS", 2), ("2S", 0)):
        final = points + 26 * np.eye(4, dtype=int)[taker]
        values = solution.values[solution.actions.tolist().index(card_id(action))]
        assert values.tolist() == (final.sum() - 4 * final).tolist()
    assert solution.best.tolist() == [card_id("2S"), card_id("QS")]
    assert solution.value.tolist() == solution.values[1].tolist()  # of equal ones that which hurts the left neighbour


@pytest.mark.small
def test_the_queen_is_thrown_while_that_is_possible() -> None:
    """Seat 2 is last to a club and void: QS thrown now is another's, kept it takes the last trick itself."""
    game = written("2C 2S", "9C 3S", "QS AD", "8C 4S", leader=3, taken=("2H", "", "3H", ""))
    game = after(after(after(game, Rules(), card_id("8C")), Rules(), card_id("2C")), Rules(), card_id("9C"))
    solution = solve(game, Rules())
    assert int(game["seat"][0]) == 2 and solution.best.tolist() == [card_id("QS")]
    assert solution.value.tolist() == [67 - 4, 67 - 4 * 26, 67 - 4, 67 - 4 * 39]
    kept = solution.values[solution.actions.tolist().index(card_id("AD"))]
    assert kept.tolist() == [67 - 4, 67, 67 - 4 * 27, 67 - 4 * 39]


SHOTS = [
    ("the top hearts draw all that are left, the last trick may go", "AH KH 2C", "2H 3H 3C", "5C 6C 7C", "forced"),
    ("a third heart stays and goes to a club", "AH KH 2C", "2H 3H 4H", "5C 6C 7C", "impossible"),
    ("unless seat 2 throws its only club", "AH KH 2C", "2H 3H 4H", "5C 6S 7S", "open"),
    ("or has none", "AH KH 2C", "2H 3H 4H", "5S 6S 7S", "forced"),
]


@pytest.mark.small
@pytest.mark.parametrize(("seat_0", "seat_1", "seat_2", "expected"), [s[1:] for s in SHOTS], ids=[s[0] for s in SHOTS])
def test_a_shot_at_trick_eleven(seat_0: str, seat_1: str, seat_2: str, expected: str) -> None:
    gone = mask_of(set(cards_in(Rules().shot_cards)) - set(cards_in(mask(f"{seat_0} {seat_1} {seat_2}"))))
    others = ("2D 3D 4D", "2S 3S 4S")["S" not in seat_1 + seat_2]
    hands = [mask(hand) for hand in (seat_0, seat_1, seat_2, others)]
    game = ending(hands, [gone, 0, 0, DECK & ~(gone | sum(hands))], 0, Rules())
    assert shot_of(game, Rules(), 0) == expected
    assert shot_forced(game, Rules(), 0) == (expected == "forced")
    assert shot_of(game, Rules(), 1) == "impossible"
    shot = [QUARTERS * 3 * SHOT_VALUE, *[-QUARTERS * SHOT_VALUE] * 3]
    assert (paranoid(game, Rules(), 0).value.tolist() == shot) == (expected == "forced")
    assert (helped(game, Rules(), 0).value.tolist() == shot) == (expected != "impossible")


def test_shots_from_the_first_trick_on() -> None:
    for hands, expected in ((ALL_CLUBS, "forced"), (ALL_BUT_THE_JACK, "open")):
        game = held(*hands)
        assert [shot_of(game.record, ANY_CALL, seat) for seat in range(4)] == [expected, *["impossible"] * 3]
    play_until(game, 48, but="JD")
    assert shot_of(game.record, ANY_CALL, 0) == "impossible"  # the two of diamonds loses to the jack


def test_a_position_in_notation() -> None:
    """After nine tricks of clubs seat 0 has every scoring card, and what is left is worth a shot to it."""
    game = play_until(held(*ALL_CLUBS), 36)
    again = Game.from_notation(game.to_notation())
    assert shot_of(again.record, again.rules, 0) == "certain"
    solution = solve(again.record, again.rules)
    assert (solution.values == [624, -208, -208, -208]).all() and len(solution.actions) == 4


def play_until(game: Game, plays: int, but: str = "QS") -> Game:
    """All throw what scores as soon as they can, ``but`` last; seat 0 leads its clubs from the top."""
    while game.record["num_plays"][0] < plays:
        scoring = [action for action in game.legal_actions() if game.rules.points[action]]
        game.push(max(scoring or game.legal_actions(), key=lambda action: (action != card_id(but), action)))
    return game


# --- equal cards ------------------------------------------------------------------------------------------------


def alike(a: int, b: int, rules: Rules) -> bool:
    """By the words of the rules: the same points, and alike where hearts are broken, tricks opened, shots counted."""
    points = rules.points
    asked = [HEARTS, 1 << TWO_OF_CLUBS, rules.shot_cards, compile_rules(rules)[0].first_ban]
    if rules.hearts_broken_by == "heart or QS" or rules.hearts_with_qs:
        asked.append(1 << card_id("QS"))
    return a // 13 == b // 13 and points[a] == points[b] and all(int(m) >> a & 1 == int(m) >> b & 1 for m in asked)


def equals(card: int, hand: int, gone: int, rules: Rules) -> int:
    """By walking through the suit to both sides as far as there is nothing but one's own or what is gone."""
    same = {card}
    for step in (-1, 1):
        other = card + step
        while 0 <= other < NUM_CARDS and other // 13 == card // 13 and (hand | gone) >> other & 1:
            if hand >> other & 1 and alike(card, other, rules):
                same.add(other)
            other += step
    return mask_of(same)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(20))
def test_equal_cards_agree_with_their_definition(seed: int) -> None:
    rng = random.Random(seed)
    rules = random_rules(rng) if seed % 2 else Rules()
    cards = rng.sample(range(NUM_CARDS), NUM_CARDS)
    hand = mask_of(cards[: rng.randint(1, 13)])
    gone = mask_of(cards[13 : 13 + rng.randint(0, 39)])
    words = np.uint64(hand), np.uint64(gone)
    expected = {card: equals(card, hand, gone, rules) for card in cards_in(hand)}
    assert {card: int(equal_cards(card, *words, alike_cards(rules))) for card in cards_in(hand)} == expected
    for allowed in (hand, hand & rng.getrandbits(52)):
        # a set that holds all or none of each class, as legal sets do
        legal = mask_of(c for c in cards_in(hand) if any(expected[c] >> o & 1 for o in cards_in(allowed)))
        lowest = {min(cards_in(expected[card])) for card in cards_in(legal)}
        assert int(representatives(words[0], np.uint64(legal), words[1], alike_cards(rules))) == mask_of(lowest)


@pytest.mark.small
def test_which_cards_are_alike() -> None:
    def classes(rules: Rules, suit: int) -> set[frozenset[int]]:
        return {frozenset(cards_in(int(cards))) for cards in alike_cards(rules)[13 * suit : 13 * suit + 13]}

    by_default = [classes(Rules(), suit) for suit in range(4)]
    assert list(map(len, by_default)) == [3, 3, 2, 2]
    assert frozenset([TWO_OF_CLUBS]) in by_default[0] and frozenset([JACK_OF_DIAMONDS]) in by_default[1]
    flat = Rules(points=card_points(QH=1, QS=0), hearts_broken_by="heart")
    assert list(map(len, (classes(flat, suit) for suit in range(4)))) == [2, 1, 1, 1]


TENS_LIKE_JACK = card_points(JD=5, TD=5)
QUIET = card_points(QS=0)
UNLIKE = [
    ("points", Rules(points=card_points(JD=5, TD=4)), "JD TD"),
    ("the shot", Rules(points=TENS_LIKE_JACK, shot_needs_jack=False), "JD TD"),
    ("the first trick", Rules(points=TENS_LIKE_JACK, first_trick="jack free"), "JD TD"),
    ("what breaks hearts", Rules(points=QUIET), "QS JS"),
    ("what may be led with hearts", Rules(points=QUIET, hearts_broken_by="heart", hearts_with_qs=True), "QS JS"),
    ("who leads first", Rules(points=QUIET, first_lead="any club"), "2C 3C"),
]


@pytest.mark.small
@pytest.mark.parametrize(("rules", "pair"), [case[1:] for case in UNLIKE], ids=[case[0] for case in UNLIKE])
def test_two_cards_are_unlike_by_one_thing_alone(rules: Rules, pair: str) -> None:
    a, b = map(card_id, pair.split())
    sets = alike_cards(rules)
    assert not int(sets[a]) >> b & 1 and not int(sets[b]) >> a & 1
    assert int(sets[b]).bit_count() == (1 if pair == "JD TD" else 12)
    with_all_else_equal = Rules(points=TENS_LIKE_JACK if pair == "JD TD" else QUIET, hearts_broken_by="heart")
    assert pair == "2C 3C" or int(alike_cards(with_all_else_equal)[a]) >> b & 1


def test_exchanging_equal_cards_changes_no_value() -> None:
    """By the plain recursion, which knows nothing of them."""
    pairs = 0
    for seed in range(600):
        _, rules, game = drawn(seed, 2)
        hand = int(game["hand"][0, game["seat"][0]])
        in_hands = int(np.bitwise_or.reduce(game["hand"][0]))
        table = 1 << int(game["best_card"][0]) if game["num_plays"][0] & 3 else 0
        _, values = brute(game, rules, own)
        for card in values:
            same = equals(card, hand, DECK & ~(in_hands | table), rules)
            assert len({values[other] for other in cards_in(same)}) == 1
            pairs += same.bit_count() > 1
    assert pairs > 100


@pytest.mark.small
@pytest.mark.parametrize("seed", range(10))
def test_the_table_takes_two_sets_for_one_if_holders_and_kinds_follow_each_other_alike(seed: int) -> None:
    rng = random.Random(seed)
    rules = random_rules(rng) if seed % 2 else Rules()
    game = random_ending(rng, rules, 4)
    hands = [int(hand) for hand in game["hand"][0]]
    kin = np.zeros(NUM_CARDS, np.uint64)
    endgame.set_kin(game[0], alike_cards(rules), kin)
    everything = sum(hands)
    by_sequence: dict[Any, set[int]] = {}
    packed = set()
    for _ in range(40):
        cards = everything & rng.getrandbits(52) if rng.random() < 0.7 else everything
        holders = {card: next(s for s in range(4) if hands[s] >> card & 1) for card in cards_in(cards)}
        sequence = tuple((int(alike_cards(rules)[card]), holder) for card, holder in holders.items())
        key = int(endgame.packed(np.uint64(cards), kin))
        by_sequence.setdefault(sequence, set()).add(key)
        packed.add(key)
        assert key & ~everything == 0 and key.bit_count() == cards.bit_count()
    assert all(len(keys) == 1 for keys in by_sequence.values()) and len(packed) == len(by_sequence)


# --- what is asked ----------------------------------------------------------------------------------------------


@pytest.mark.small
def test_errors() -> None:
    game = written("2C", "3C", "4C", "5C")
    for wrong in (Game().record, np.zeros(2, GAME), np.zeros(1), None):
        with pytest.raises(ArgumentError, match=r"^game: expected"):
            solve(wrong, Rules())  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"^game: expected"):
            shot_of(wrong, Rules(), 0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^game: expected at most 8 tricks left, got 9"):
        solve(play_until(held(*ALL_CLUBS), 16).record, ANY_CALL)
    for seat in (-1, 4, "0", True):
        for ask in (paranoid, helped, shot_of, shot_forced):
            with pytest.raises(ArgumentError, match=r"^seat: .* is not a whole number from 0 to 3"):
                ask(game, Rules(), seat)  # type: ignore[arg-type, operator]
    for places in (0, 3, -1, "4"):
        with pytest.raises(ArgumentError, match=r"^places: .* is not a power of two"):
            solve(game, Rules(), places)  # type: ignore[arg-type]


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")  # type: ignore[attr-defined]
def test_the_search_is_compiled_once() -> None:
    for seed in range(8):
        rng, rules, game = drawn(seed, 2)
        solve(game, rules)
        paranoid(game, rules, rng.randrange(4))
        shot_of(game, rules, rng.randrange(4))
    assert len(endgame.search.signatures) == 1
