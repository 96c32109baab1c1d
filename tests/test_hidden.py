"""What a seat cannot know it cannot see: hidden cards exchanged, every byte stays; and ``full`` forgets nothing known.

A game is taken as its position in text, two cards that the seat has never seen are exchanged wherever they stand (in
dealt hands, picks, the kitty), and the deal is played again through the engine: if its plays are still legal, both
games have told the seat the same.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dnfh_env.cards import CARD_NAMES, names_in
from dnfh_env.errors import NotationError
from dnfh_env.game import Game
from dnfh_env.notation import hand_to_string, string_to_hand
from dnfh_env.observation import COMPACT, FULL, PLACES, STATE, pack, pack_state
from dnfh_env.render.text import seat_view
from dnfh_env.rules import CALLS, Rules, compile_rules
from positions import ANY_CALL, deal, decisions, push, turn

RULES = {
    "default": Rules(target=150),
    "kitty": Rules(calls=("kitty",), target=100),
    "standard": Rules.standard_hearts(target=40),
    "odd": Rules(calls=CALLS, first_lead="any club", first_trick="any", shot="none", target=90),
}
EACH_RULES = pytest.mark.parametrize("name", RULES)


# --- what a seat sees -------------------------------------------------------------------------------------------


def seen(game: Game, seat: int) -> dict[str, Any]:
    """All that the package tells ``seat`` of a game, by where it is told."""
    view = game.view(seat)
    return {
        "view": view.tobytes(),
        "compact": pack(game.views([seat]), game.rules.target, COMPACT).tobytes(),
        "full": pack(game.views([seat]), game.rules.target, FULL).tobytes(),
        "observe": game.observe(seat).tobytes() + game.observe(seat, "full").tobytes(),
        "mask": int(view.legal),
        "text": seat_view(view, game.rules),
        "public": (game.phase, game.seat, game.dealer, game.deal, game.call, game.trick, game.scores, game.points),
        "end": (game.is_over, game.winners, game.truncated, game.shooter),
    }


def known_cards(game: Game, seat: int) -> set[str]:
    """Every card whose way through this deal ``seat`` knows: what it has seen, and 2C, whose holder goes first."""
    record = game.record[0]
    masks = [record.hand[seat], *record.given[seat], *record.played]
    if game.phase in ("play", "over"):
        masks += [record.kitty[seat], 1 << CARD_NAMES.index("2C")]
    return {name for mask in masks for name in names_in(int(mask))}


# --- other games that have told the seat the same ---------------------------------------------------------------


def exchanged(game: Game, one: str, two: str) -> Game | None:
    """The game with two cards exchanged wherever they stand, or None where that breaks a rule."""
    other = {one: two, two: one}
    dealer, scores, hands, *rest = game.to_notation().split(" ")
    masks = [string_to_hand(hand) for hand in hands.split("/")]
    renamed = [[other.get(name, name) for name in names_in(mask)] for mask in masks]
    hands = "/".join(hand_to_string(sum(1 << CARD_NAMES.index(name) for name in hand)) for hand in renamed)
    rest = [_renamed_kitty(word, other) if word.startswith("=") else other.get(word, word) for word in rest]
    return read(" ".join([dealer, scores, hands, *rest]))


def _renamed_kitty(word: str, other: dict[str, str]) -> str:
    piles = [[pile[i : i + 2] for i in range(0, len(pile), 2)] for pile in word[1:].split("/")]
    return "=" + "/".join("".join(other.get(name, name) for name in pile) for pile in piles)


def read(text: str) -> Game | None:
    try:
        return Game.from_notation(text)
    except NotationError:
        return None


def exchanged_in_kitty(game: Game, seat: int, rng: random.Random) -> Game | None:
    """Two others got back each other's card from the kitty, so that what I put in may lie elsewhere."""
    text = game.to_notation()
    word = next(word for word in text.split() if word.startswith("="))
    piles = [[pile[i : i + 2] for i in range(0, len(pile), 2)] for pile in word[1:].split("/")]
    first, second = rng.sample([s for s in range(4) if s != seat], 2)
    i, j = rng.randrange(3), rng.randrange(3)
    piles[first][i], piles[second][j] = piles[second][j], piles[first][i]
    changed = "=" + "/".join("".join(sorted(pile, key=CARD_NAMES.index)) for pile in piles)
    other = read(text.replace(word, changed))
    return other if other is not None and other.to_notation() != text else None


def resampled(game: Game, seat: int, rng: random.Random, steps: int) -> Iterator[Game]:
    """A walk through games that differ from this one in cards that ``seat`` has not seen."""
    at = game
    for _ in range(steps):
        if at.call == "kitty" and at.phase in ("play", "over") and rng.random() < 0.5:
            other = exchanged_in_kitty(at, seat, rng)
        else:
            hidden = sorted(set(CARD_NAMES) - known_cards(at, seat))
            other = exchanged(at, *rng.sample(hidden, 2)) if len(hidden) > 1 else None
        if other is not None:
            at = other
            yield at


def moments(rules: Rules, share: float, rng: random.Random) -> Iterator[Game]:
    """Some decisions of a random game, calls and picks more often than plays."""
    for game in decisions(Game(rules, seed=rng.randrange(1 << 30)), rng):
        if rng.random() < share * (1 if game.phase == "play" else 4):
            yield game


@EACH_RULES
def test_hidden_cards_exchanged_change_nothing_that_a_seat_sees(name: str) -> None:
    rng, changed = random.Random(1), 0
    for game in itertools.chain.from_iterable(moments(RULES[name], 0.05, rng) for _ in range(3)):
        seat = rng.randrange(4)
        before = seen(game, seat)
        for other in resampled(game, seat, rng, steps=6):
            changed += other.record.tobytes() != game.record.tobytes()
            after = seen(other, seat)
            assert after == before, [part for part in before if before[part] != after[part]]
    assert changed > 150


@pytest.mark.small
def test_exchanged_cards_are_seen_by_those_who_know_them() -> None:
    """The comparison above can fail: another seat, and the layout for critics, see the same exchange."""
    game = Game(seed=3)
    while game.phase != "play":
        game.push(game.legal_actions()[0])
    rng = random.Random(2)
    for seat in range(4):
        others = [other for other in resampled(game, seat, rng, steps=8) if other.hands != game.hands]
        assert len(others) > 4
        for other in others:
            assert any(seen(other, s)["view"] != seen(game, s)["view"] for s in range(4))
            states = [pack_state(g.record, compile_rules(g.rules), np.array([seat])) for g in (game, other)]
            assert states[0].tobytes() != states[1].tobytes() and states[0].shape == (1, STATE.words)


@pytest.mark.small
def test_views_have_no_place_for_what_is_hidden() -> None:
    """A seat that is not to move has an empty mask, and its view names no card that it has not seen."""
    rng = random.Random(3)
    for name in RULES:
        for game in moments(RULES[name], 0.03, rng):
            for seat in range(4):
                view = game.view(seat)
                assert (view.legal == 0) == (game.is_over or seat != game.seat)
                masks = [view.hand, *view.given, *view.received, *view.played, *view.taken]
                shown = {name for mask in masks for name in names_in(int(mask))}
                assert shown <= known_cards(game, seat)


# --- picks ------------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("call", CALLS[:-1])
def test_r04_picks_of_others_do_not_show_before_the_exchange(call: str) -> None:
    """Whatever the seats before me pick, I see the same until the twelfth pick; and they see their own."""
    hands = deal("AKQJT98765432", ".AKQJT98765432", "..AKQJT98765432")
    games = [Game.from_deal(hands, dealer=0, call=call, rules=ANY_CALL) for _ in range(2)]
    for number in range(11):
        for game, rng in zip(games, (random.Random(number), random.Random(number + 100)), strict=True):
            game.push(rng.choice(game.legal_actions()))
        for seat in range(4):
            own = [game.record["given"][0][seat].tolist() for game in games]
            assert (seen(games[0], seat) == seen(games[1], seat)) == (own[0] == own[1])


@pytest.mark.small
@pytest.mark.parametrize("call", CALLS[:-1])
def test_r04_the_order_of_picks_for_one_neighbour_never_shows(call: str) -> None:
    hands = deal("AKQJT98765432", ".AKQJT98765432", "..AKQJT98765432")
    groups = [3] if call == "kitty" else [int(digit) for digit in call if digit != "0"]
    rng = random.Random(6)
    games = [Game.from_deal(hands, dealer=1, call=call, rules=ANY_CALL, seed=5) for _ in range(2)]
    while games[0].phase == "pick":
        for size in groups:
            picks = rng.sample(games[0].legal_actions(), size)
            for game, order in zip(games, (picks, sorted(picks)), strict=True):
                for card in order:
                    game.push(card)
            for seat in range(4):
                assert seen(games[0], seat) == seen(games[1], seat)
    assert games[0].record.tobytes() == games[1].record.tobytes()
    assert (games[0].history == games[1].history) == (call == "111")


# --- full: the same bytes if and only if the same information ----------------------------------------------------


def information(game: Game, seat: int) -> tuple[Any, ...]:
    """What ``seat`` has learnt in this deal, told in order from the game's text; places for seats."""
    place = {(seat + k) % 4: name for k, name in enumerate(PLACES)}
    dealer, scores, hands, *rest = game.to_notation().split(" ")
    words = rest[: rest.index(";")]
    call, words = words[:1], words[1:]
    picks = words[:12] if call and call != ["hold"] else []
    words = words[len(picks) :]
    kitty = words[0][1:].split("/") if words and words[0].startswith("=") else None
    plays = words[1:] if kitty else words
    first = (int(dealer) + 1) % 4
    mine = picks[3 * ((seat - first) % 4) :][:3]
    gave = _by_direction(call, mine)
    got: Any = None
    if len(picks) == 12:
        got = kitty[seat] if kitty else [_got_from(call, picks, first, seat, d) for d in range(3)]
    totals = [scores.split(",")[(seat + k) % 4] for k in range(4)]
    leader = _first_leader(game) if plays or game.phase == "play" else None
    return (
        place[int(dealer)],
        tuple(totals),
        game.deal,
        bool(game.record["latched"][0]),
        hands.split("/")[seat],
        tuple(call),
        len(picks),
        str(gave),
        str(got),
        place.get(leader, ""),
        tuple(plays),
    )


def _by_direction(call: list[str], picks: list[str]) -> list[list[str]]:
    """Own picks by neighbour, the order within one forgotten."""
    if not call or not call[0].isdigit():
        return [sorted(picks)]
    ends = list(itertools.accumulate(map(int, call[0]), initial=0))
    return [sorted(picks[a:b]) for a, b in itertools.pairwise(ends)]


def _got_from(call: list[str], picks: list[str], first: int, seat: int, direction: int) -> list[str]:
    giver = (seat + 1 + direction) % 4
    return _by_direction(call, picks[3 * ((giver - first) % 4) :][:3])[2 - direction]


def _first_leader(game: Game) -> int:
    record = game.record[0]
    return next(s for s in range(4) if (int(record.hand[s]) | int(record.played[s])) & 1)


def situations(rules: Rules, rng: random.Random) -> Iterator[tuple[Game, int]]:
    """Games and seats, among them many that tell a seat the same, or almost."""
    for game in moments(rules, 0.04, rng):
        seat = rng.randrange(4)
        yield game, seat
        for other in itertools.islice(resampled(game, seat, rng, steps=3), 2):
            yield other, seat
            yield other, (seat + 1) % 4
        yield from ((other, seat) for other in neighbours(game))
        yield from ((other, (seat + k) % 4) for k, other in turned(game))


def turned(game: Game) -> Iterator[tuple[int, Game]]:
    """The same at a table turned by ``k`` seats."""
    dealer, scores, hands, *rest = game.to_notation().split(" ")
    for k in range(1, 4):
        words = ["=" + "/".join(turn(word[1:].split("/"), k)) if word.startswith("=") else word for word in rest]
        parts = [",".join(turn(scores.split(","), k)), "/".join(turn(hands.split("/"), k))]
        yield k, Game.from_notation(" ".join([str((int(dealer) + k) % 4), *parts, *words]))


def neighbours(game: Game) -> Iterator[Game]:
    """Games that differ in one public fact."""
    dealer, scores, hands, *rest = game.to_notation().split(" ")
    first = int(scores.split(",")[0])
    changes = [
        " ".join([str((int(dealer) + 1) % 4), scores, hands, *rest]),
        " ".join([dealer, ",".join([str(first - 1), *scores.split(",")[1:]]), hands, *rest]),
        " ".join([dealer, ",".join([str(first - 256), *scores.split(",")[1:]]), hands, *rest]),
        " ".join([dealer, scores, hands, *rest]).replace(f"deal={game.deal}", f"deal={game.deal + 4}"),
        " ".join([dealer, scores, hands, *rest]).replace(f"deal={game.deal}", f"deal={game.deal + 256}"),
    ]
    yield from (other for other in map(read, changes) if other is not None)


@EACH_RULES
def test_full_has_the_same_bytes_if_and_only_if_the_seat_knows_the_same(name: str) -> None:
    rng, count = random.Random(8), 0
    by_information, by_full, by_view = (defaultdict(set) for _ in range(3))
    while count < 600:
        for game, seat in situations(RULES[name], rng):
            told, view = information(game, seat), game.views([seat])
            full = pack(view, game.rules.target, FULL).tobytes()
            by_information[told].add(full)
            by_full[full].add(told)
            by_view[view.tobytes()].add(told)
            count += 1
    for grouped in (by_information, by_full, by_view):
        assert max(map(len, grouped.values())) == 1
    assert len(by_information) == len(by_full) == len(by_view)
    assert 200 < len(by_full) < count - 200  # many know the same, and many do not


EASY = ["AKQ2.AKQ.AK.AK43", "JT9.JT9.QJT9.QJT", "876.876.8765.987", "543.5432.432.652"]
"""Seat 0 leads 2C, seat 1 takes it, and the lead comes back; then it holds every top card."""


@pytest.mark.small
def test_the_order_of_past_tricks_is_in_full_alone() -> None:
    first = "2C 9C 8C 5C"
    diamonds = ("JD 8D 5D AD", "TD 7D 4D KD")
    spades = "AS TS 9S 6S"
    start = Game.from_deal(deal(*EASY), dealer=0, call="hold", rules=ANY_CALL)
    one = push(start.copy(), " ".join([first, *diamonds[:1], "KD TD 7D 4D", spades]))
    two = push(start.copy(), " ".join([first, *diamonds[:1], spades, "KD TD 7D 4D"]))
    assert one.hands == two.hands and one.seat == two.seat == 0
    for seat in range(4):
        parts = [seen(game, seat) for game in (one, two)]
        assert parts[0]["compact"] == parts[1]["compact"]
        assert parts[0]["full"] != parts[1]["full"] and parts[0]["view"] != parts[1]["view"]


@pytest.mark.small
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("0 0,0,0,0 H 300 ; deal=0", "0 0,0,0,0 H 300 ; deal=1"),
        ("0 0,0,0,0 H 300 ; deal=1", "0 0,0,0,0 H 300 ; deal=257"),
        ("0 0,0,0,0 H 300 ; deal=1", "0 0,0,0,1 H 300 ; deal=1"),
        ("0 0,0,0,0 H 300 ; deal=1", "0 -1,0,0,0 H 300 ; deal=1"),
        ("0 0,0,0,0 H 300 ; deal=1", "0 -256,0,0,0 H 300 ; deal=1"),
        ("0 0,0,0,0 H 300 ; deal=1", "1 0,0,0,0 H 300 ; deal=1"),
        ("0 0,0,0,0 H 300 ; deal=1", "0 0,0,0,0 H 210 ; deal=1"),
        ("0 0,0,0,0 H 300 ; deal=1", "0 0,0,0,0 H ; deal=1"),
        ("0 0,0,0,0 H 300 JC TC ; deal=1", "0 0,0,0,0 H 300 JC ; deal=1"),
        ("0 0,0,0,0 H 111 JC TC 9C ; deal=1", "0 0,0,0,0 H 111 TC JC 9C ; deal=1"),
    ],
)
def test_full_tells_apart_what_differs_in_one_fact(one: str, two: str) -> None:
    games = [Game.from_notation(text.replace("H", "/".join(EASY))) for text in (one, two)]
    assert information(games[0], 1) != information(games[1], 1)
    parts = [seen(game, 1) for game in games]
    assert parts[0]["full"] != parts[1]["full"] and parts[0]["view"] != parts[1]["view"]
