"""The engine with its presets against OpenSpiel's hearts, a program written elsewhere: same legal sets, same points.

``make interop`` plays 5,000 deals with a pass, and those without between them, over all settings of the flags that
`Rules` can express. OpenSpiel plays single deals, whose pass is drawn by chance, so chance is told to deal and to pass
as our games do.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from typing import Any

import pytest

from dnfh_env import Game, Rules
from random_rules import TOPS, deal_with, odd_hand

pytestmark = pytest.mark.interop

DEALS = int(os.environ.get("DNFH_INTEROP_DEALS", "5000"))

# Of OpenSpiel's flags only avoid_all_tricks_bonus (-5 for a seat without a trick) has no counterpart; it stays off.
FLAGS = (
    "pass_cards",
    "no_pts_on_first_trick",
    "can_lead_any_club",
    "jd_bonus",
    "must_break_hearts",
    "qs_breaks_hearts",
    "can_lead_hearts_instead_of_qs",
)
SETTINGS = [dict(zip(FLAGS, values, strict=True)) for values in itertools.product((True, False), repeat=len(FLAGS))]

SPIEL_CARDS = [rank + suit for rank in "23456789TJQKA" for suit in "CDHS"]
"""OpenSpiel's cards are numbered rank by rank, ours suit by suit."""
SPIEL_PASSES = ["hold", "300", "030", "003"]
SPIEL_UPPER_BOUND = 26
"""OpenSpiel returns this minus the points entered."""


def rules_for(flags: dict[str, bool]) -> Rules:
    """Our rules for a setting of OpenSpiel's flags: a preset, and what differs from it."""
    changes: dict[str, Any] = {
        "first_lead": "any club" if flags["can_lead_any_club"] else "2C",
        "hearts_with_qs": flags["can_lead_hearts_instead_of_qs"],
        "hearts_broken_by": "heart or QS" if flags["qs_breaks_hearts"] else "heart",
    }
    if not flags["pass_cards"]:
        changes["calls"] = ("hold",)
    if not flags["no_pts_on_first_trick"]:  # on, it bans hearts and QS alone: the jack is free, as in `omnibus`
        changes["first_trick"] = "any"
    if not flags["must_break_hearts"]:
        changes["hearts_broken_by"] = "no need"
    return Rules.omnibus(**changes) if flags["jd_bonus"] else Rules.standard_hearts(**changes)


def player_at(seat: int, dealer: int) -> int:
    """OpenSpiel's player 0 is dealt to and passes first, as our dealer's left neighbour."""
    return (seat - dealer - 1) % 4


def spiel_deal(spiel: Any, game: Game) -> Any:
    """OpenSpiel's state of the deal that ``game`` is at the start of."""
    state = spiel.new_initial_state()
    state.apply_action(SPIEL_PASSES.index(game.call))
    for k in range(52):
        card = game.hands[(game.dealer + 1 + k) % 4][k // 4]
        state.apply_action(SPIEL_CARDS.index(card))
    return state


def choose(legal: set[str], rng: random.Random, wish: int | None) -> str:
    """Any card, or the highest or lowest in rank if ``wish`` is 1 or -1."""
    cards = sorted(legal)
    rng.shuffle(cards)
    return cards[0] if wish is None else max(cards, key=lambda card: wish * SPIEL_CARDS.index(card))


def play_deal(game: Game, state: Any, rng: random.Random, shooter: int | None) -> None:
    """Play one deal in both; ``shooter``, if any, is helped to take all tricks."""
    dealer = game.dealer
    while not state.is_terminal():
        legal = set(map(game.action_to_string, game.legal_actions()))
        assert state.current_player() == player_at(game.seat, dealer), game
        assert {SPIEL_CARDS[card] for card in state.legal_actions()} == legal, game
        wish = None if shooter is None else 1 if (game.seat == shooter) == (game.record["num_picks"][0] == 12) else -1
        card = choose(legal, rng, wish)
        game.push(card)
        state.apply_action(SPIEL_CARDS.index(card))
    returns = state.returns()
    entered = game.record["entered"][0].tolist()
    assert entered == [SPIEL_UPPER_BOUND - returns[player_at(seat, dealer)] for seat in range(4)], game


def first_game(rules: Rules, seed: int, rng: random.Random) -> tuple[Game, int | None]:
    """A game whose first deal is often stacked: an odd hand, or a shot for the seat returned."""
    game = Game(rules, seed)
    kind = rng.choice(("chance", "odd hand", "shot"))
    if kind == "chance":
        return game, None
    seat = rng.randrange(4)
    hands = deal_with(rng, [TOPS if kind == "shot" else odd_hand(rng)], seat)
    game = Game.from_deal(hands, dealer=game.dealer, rules=rules, seed=seed)
    return game, seat if kind == "shot" else None


def play_game(spiel: Any, rules: Rules, seed: int, seen: Counter[str]) -> None:
    """Play one whole game and count what has been seen."""
    rng = random.Random(seed)
    game, shooter = first_game(rules, seed, rng)
    while not game.is_over:
        seen["deals"] += 1
        seen["passes"] += game.call != "hold"
        seen[f"call {game.call}"] += 1
        play_deal(game, spiel_deal(spiel, game), rng, shooter)
        if game.shooter is not None:
            seen[f"shooter enters {game.record['entered'][0, game.shooter]} of {rules.deal_total}"] += 1
        shooter = None


@pytest.fixture(scope="module")
def pyspiel() -> Any:
    import pyspiel  # the extra `interop`, which only these tests need

    return pyspiel


def test_cards_are_numbered_as_openspiel_numbers_them(pyspiel: Any) -> None:
    state = pyspiel.load_game("hearts").new_initial_state()
    assert [state.action_to_string(0, direction) for direction in range(4)] == ["No Pass", "Left", "Across", "Right"]
    state.apply_action(0)
    assert [state.action_to_string(card) for card in range(52)] == SPIEL_CARDS


def test_engine_equals_openspiel(pyspiel: Any) -> None:
    seen: Counter[str] = Counter()
    games = 0
    while seen["passes"] < DEALS:
        flags = SETTINGS[games % len(SETTINGS)]
        play_game(pyspiel.load_game("hearts", flags), rules_for(flags), games, seen)
        games += 1
    print(f"\n{games:,} games under {len(SETTINGS)} settings, all equal: {dict(seen)}")
    assert games >= len(SETTINGS), "too few deals to see every setting"
    shots = ["0 of 26", "-10 of 16", "0 of 16"]  # standard; omnibus with the jack, and without it
    assert all(seen[f"shooter enters {shot}"] for shot in shots)
    assert all(seen[f"call {call}"] for call in SPIEL_PASSES)
