"""The layouts: each bit against a slow restatement from the game and the label, and digests that weights bind to."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dnfh_env._bits import unpack
from dnfh_env.batch import Batch
from dnfh_env.cards import CARD_NAMES, names_in
from dnfh_env.game import Game
from dnfh_env.observation import COMPACT, FULL, LAYOUTS, PLACES, STATE, Layout, check_observation, pack, pack_state
from dnfh_env.rules import CALLS, Rules, compile_rules
from dnfh_env.view import VIEW
from positions import ALL_CLUBS, deal, decisions, held

ALL_LAYOUTS = (COMPACT, FULL, STATE)
EACH_LAYOUT = pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=lambda layout: layout.name)

pytestmark = pytest.mark.small


# --- the layouts as data ----------------------------------------------------------------------------------------


@EACH_LAYOUT
def test_sizes_and_digests_are_pinned(layout: Layout) -> None:
    """Weights bind to these: a change needs a new version, and breaks every checkpoint."""
    assert (layout.name, layout.version, layout.bits, layout.words, layout.digest()) == {
        "compact": ("compact", 1, 960, 15, "a687211962827645"),
        "full": ("full", 1, 1792, 28, "bc2c81b8b57b9295"),
        "state": ("state", 1, 2560, 40, "b807fe248fa5d857"),
    }[layout.name]


@EACH_LAYOUT
def test_each_feature_has_a_description_of_its_own(layout: Layout) -> None:
    texts = [layout.describe(index) for index in range(layout.bits)]
    assert len(set(texts)) == layout.bits
    assert texts[0] == "hand: 2C" and texts[51] == "hand: AS"
    assert layout.describe(layout.offset("taken by left") + CARD_NAMES.index("QS")) == "taken by left: QS"
    for index in (-1, layout.bits, layout.bits + 5):
        with pytest.raises(IndexError, match=f"feature {index} is outside layout '{layout.name}'"):
            layout.describe(index)
    with pytest.raises(KeyError, match="no field 'nothing' in layout"):
        layout.offset("nothing")


@EACH_LAYOUT
def test_words_hold_one_set_of_cards_and_twelve_bits(layout: Layout) -> None:
    names = [field.name for field in layout.fields]
    assert len(set(names)) == len(names)
    for word in range(layout.words):
        index = next(k for k, field in enumerate(layout.fields) if layout.offset(field.name) == 64 * word)
        assert layout.fields[index].labels == CARD_NAMES


def test_layouts_extend_each_other() -> None:
    assert FULL.fields[: len(COMPACT.fields)] == COMPACT.fields
    assert STATE.fields[: len(FULL.fields)] == FULL.fields
    assert LAYOUTS == {"compact": COMPACT, "full": FULL}  # what an agent may ask for


def test_a_digest_notices_every_change() -> None:
    field = COMPACT.fields[3]
    for other in (
        replace(COMPACT, version=2),
        replace(COMPACT, fields=COMPACT.fields[::-1]),
        replace(COMPACT, fields=(*COMPACT.fields[:3], replace(field, meaning="?"), *COMPACT.fields[4:])),
        replace(COMPACT, fields=(*COMPACT.fields[:3], replace(field, labels=field.labels[::-1]), *COMPACT.fields[4:])),
    ):
        assert other.digest() != COMPACT.digest()


# --- a slow restatement -----------------------------------------------------------------------------------------


def past_tricks(game: Game) -> list[list[tuple[int, str]]]:
    """All tricks of the deal, the current one last, as (seat, card), played out from the first leader on."""
    record = game.record[0]
    cards = [CARD_NAMES[card] for card in record.plays[: int(record.num_plays)]]
    holder = next((s for s in range(4) if cards[:1] and cards[0] in names_in(int(record.played[s]))), game.seat)
    tricks: list[list[tuple[int, str]]] = []
    leader = holder
    for k in range(0, len(cards), 4):
        trick = [((leader + i) % 4, card) for i, card in enumerate(cards[k : k + 4])]
        tricks.append(trick)
        leader = taker(trick)
    return tricks


def taker(trick: list[tuple[int, str]]) -> int:
    following = [(CARD_NAMES.index(card), seat) for seat, card in trick if card[1] == trick[0][1][1]]
    return max(following)[1]


def true_labels(game: Game, seat: int) -> dict[str, set[str]]:
    """For each field of every layout the labels whose bits are to be 1, in sets and fractions."""
    place = {(seat + k) % 4: name for k, name in enumerate(PLACES)}
    tricks = past_tricks(game)
    done = [trick for trick in tricks if len(trick) == 4]
    current = tricks[-1] if tricks and len(tricks[-1]) < 4 else []
    facts: dict[str, set[str]] = {"hand": set(game.hands[seat]), "table": {card for _, card in current}}
    for s, name in place.items():
        facts[f"played by {name}"] = {card for trick in tricks for who, card in trick if who == s}
        facts[f"taken by {name}"] = {card for trick in done if taker(trick) == s for _, card in trick}
        facts[f"hand of {name}"] = set(game.hands[s])
    facts |= _pass_labels(game, seat) | _score_labels(game, seat) | _trick_labels(game, seat, tricks)
    return facts | _situation_labels(game, seat, tricks, current)


def _pass_labels(game: Game, seat: int) -> dict[str, set[str]]:
    given = [[set(names_in(int(cards))) for cards in row] for row in game.record["given"][0]]
    kitty = [set(names_in(int(cards))) for cards in game.record["kitty"][0]]
    exchanged = game.phase in ("play", "over")
    facts = {}
    for k, name in enumerate(PLACES[1:]):
        facts[f"given to {name}"] = given[seat][k]
        got = kitty[seat] if game.call == "kitty" else given[(seat + 1 + k) % 4][2 - k]
        facts[f"got from {name}"] = got if exchanged else set()
        for d, taker_name in enumerate(PLACES[1:]):
            facts[f"given by {name} to its {taker_name}"] = given[(seat + 1 + k) % 4][d]
    return facts


def _score_labels(game: Game, seat: int) -> dict[str, set[str]]:
    facts = {}
    parts = {k: Fraction(game.rules.target * k, 18) for k in range(-6, 18)}
    leads = {k: Fraction(game.rules.target * k, 24) for k in range(-11, 13, 2)}
    for k, name in enumerate(PLACES):
        score = game.scores[(seat + k) % 4]
        reached = {f">= {part}/18 of the target" for part, value in parts.items() if score >= value}
        facts[f"low score of {name}"] = facts[f"high score of {name}"] = reached
        lead = score - game.scores[seat]
        facts[f"lead over {name}"] = {f">= {part}/24 of the target" for part, value in leads.items() if lead >= value}
        facts |= _bytes(f"the score of {name}", score)
    return facts | _bytes("the deal", game.deal)


def _bytes(what: str, value: int) -> dict[str, set[str]]:
    digits = {k for k in range(16) if value >> k & 1}
    return {
        f"{half} byte of {what}": {f"bit {k - first}" for k in digits if first <= k < first + 8}
        for half, first in (("low", 0), ("high", 8))
    }


def _trick_labels(game: Game, seat: int, tricks: list[list[tuple[int, str]]]) -> dict[str, set[str]]:
    facts = {}
    for number in range(13):
        trick = tricks[number] if number < len(tricks) else []
        facts[f"trick {number + 1}"] = {card for _, card in trick}
        facts[f"leader of trick {number + 1}"] = {PLACES[(trick[0][0] - seat) % 4]} if trick else set()
    return facts


def _situation_labels(game: Game, seat: int, tricks: Any, current: Any) -> dict[str, set[str]]:
    record = game.record[0]
    leader = current[0][0] if current else game.seat
    voids = {
        f"{PLACES[(who - seat) % 4]} void in {trick[0][1][1]}"
        for trick in tricks
        for who, card in trick
        if card[1] != trick[0][1][1]
    }
    picks = int(record.num_picks)
    to_move = game.seat is not None and PLACES[(game.seat - seat) % 4]
    goes = _pick_goes_to(game.call or "", picks % 3) if game.phase == "pick" and game.seat == seat else set()
    broken = {card for trick in tricks for _, card in trick if card[1] == "H" or (card == "QS" and _qs_breaks(game))}
    return {
        "call": {game.call} if game.call else set(),
        "dealer": {f"dealer is {PLACES[(game.dealer - seat) % 4]}"},
        "to move": {f"to move is {to_move}"} if to_move else set(),
        "leader": {f"leader is {PLACES[(leader - seat) % 4]}"} if game.phase == "play" else set(),
        "phase": {game.phase},
        "pick goes to": goes,
        "led suit": {current[0][1][1]} if current else set(),
        "hearts broken": {"hearts may be led"} if broken else set(),
        "target reached": {"a total has reached the target"} if bool(record.latched) else set(),
        "voids": voids,
        "picks made": {f"bit {k}" for k in range(8) if picks >> k & 1},
    }


def _qs_breaks(game: Game) -> bool:
    return game.rules.hearts_broken_by == "heart or QS"


def _pick_goes_to(call: str, number: int) -> set[str]:
    if call == "kitty":
        return set(PLACES[1:])
    return {[name for name, count in zip(PLACES[1:], call, strict=True) for _ in range(int(count))][number]}


def expected_bits(layout: Layout, facts: dict[str, set[str]]) -> list[int]:
    bits = []
    for field in layout.fields:
        labels = set() if field.name.startswith("unused") else facts[field.name]
        bits += [int(label in labels) for label in field.labels]
    return bits


def encoded(game: Game, seat: int, layout: Layout) -> list[int]:
    if layout is STATE:
        words = pack_state(game.record, compile_rules(game.rules), np.array([seat]))
    else:
        words = pack(game.views([seat]), game.rules.target, layout)
    return [int(bit) for bit in unpack(words)[0]]


RULES = {
    "default": Rules(),
    "kitty": Rules(calls=("kitty",), first_lead="any club", target=77),
    "standard": Rules.standard_hearts(),
    "odd": Rules(
        calls=CALLS, hearts_broken_by="heart", shot="shooter", ties="play on", target=50, max_deals=9, first_trick="any"
    ),
}


def moments(rules: Rules, count: int, seed: int) -> Iterator[Game]:
    """Some decisions of random games, and their ends."""
    rng = random.Random(seed)
    found = 0
    while found < count:
        for game in decisions(Game(rules, seed=rng.randrange(1000)), rng):
            if game.is_over or rng.random() < 0.03 or (game.phase != "play" and rng.random() < 0.03):
                found += 1
                yield game


@EACH_LAYOUT
@pytest.mark.parametrize("name", RULES)
def test_the_encoder_says_what_the_labels_say(name: str, layout: Layout) -> None:
    for game in moments(RULES[name], count=25, seed=7):
        for seat in range(4):
            bits, expected = encoded(game, seat, layout), expected_bits(layout, true_labels(game, seat))
            wrong = [layout.describe(k) for k in range(layout.bits) if bits[k] != expected[k]]
            assert wrong == [], (game.to_notation(), seat)


def test_the_restatement_sees_every_field_at_work() -> None:
    """Each field is 1 somewhere and 0 somewhere in the games above, or the comparison would say little."""
    seen = np.zeros((2, STATE.bits), bool)
    for rules in RULES.values():
        for game in moments(rules, count=25, seed=7):
            for seat in range(4):
                bits = np.array(encoded(game, seat, STATE), bool)
                seen |= np.array([bits, ~bits])
    for field in STATE.fields:
        start = STATE.offset(field.name)
        on, off = seen[:, start : start + field.bits]
        assert off.any() or field.name == "low byte of the deal", field.name
        never = field.name.startswith("unused") or field.name == "high byte of the deal"
        assert on.any() != never, field.name


@pytest.mark.parametrize("target", [1, 7, 50, 300, 15_999])
def test_thermometers_of_scores_at_and_beside_each_step(target: int) -> None:
    rules = Rules(target=target, ties="play on", max_deals=1)
    steps = {target * k // 18 + d for k in range(-7, 19) for d in (-1, 0, 1)}
    bound = rules.target + rules.score_limit
    for score in sorted({step for step in steps if abs(step) <= bound} | {-bound, bound}):
        low = min(score, 0)  # tied lowest, so that the game goes on past the target too
        game = held(*ALL_CLUBS, scores=(score, score // 2, low, low), rules=rules.replace(calls=("hold",)))
        for seat in (0, 1):
            assert encoded(game, seat, FULL) == expected_bits(FULL, true_labels(game, seat)), score


# --- the ways to ask --------------------------------------------------------------------------------------------


def test_games_and_batches_ask_the_same() -> None:
    batch = Batch(8, seed=4)
    batch.play("random", 100)
    for name, layout in LAYOUTS.items():
        bits = batch.observe(name)
        assert bits.dtype == np.float32 and bits.shape == (8, layout.bits)
        assert (unpack(batch.packed(name)) == bits).all()
    assert (batch.states()[:, : FULL.bits] == batch.observe("full")).all()
    game = Game.from_deal(deal(*ALL_CLUBS), dealer=1)
    for name in LAYOUTS:
        assert game.observe(2, name).tolist() == encoded(game, 2, LAYOUTS[name])
        assert game.observe(observation=name).tolist() == game.observe(1, name).tolist()


def test_fresh_arrays_each_time() -> None:
    game = Game(seed=1)
    first = game.observe()
    assert not np.shares_memory(first, game.observe())
    view = game.views([0])
    view["hand"] = 0
    assert game.view(0).hand != 0
    batch = Batch(3)
    assert not np.shares_memory(batch.packed(), batch.packed())
    assert not np.shares_memory(batch.views()["hand"], batch.games["hand"])


def test_other_layouts_are_refused() -> None:
    views = np.zeros(1, VIEW)
    with pytest.raises(ValueError, match="observation: 'state' is not one of 'compact', 'full'"):
        pack(views, 300, STATE)
    for ask in (check_observation, Game().observe, Batch(1).observe, Batch(1).packed):
        with pytest.raises(ValueError, match="observation: 'fuller' is not one of 'compact', 'full'"):
            ask(observation="fuller")
    assert (pack(views, 300, copy.deepcopy(FULL)) == pack(views, 300, FULL)).all()


def test_nothing_is_asked_of_no_views() -> None:
    for layout in LAYOUTS.values():
        assert pack(np.zeros(0, VIEW), 300, layout).shape == (0, layout.words)
