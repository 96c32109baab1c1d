"""Games and views as text."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from dnfh_env import Game, Rules, card_points
from dnfh_env.cards import CARD_NAMES
from dnfh_env.render.text import seat_view, table

HANDS = ["T9876.T987..KQJT", "AKQJ.AKQJ.AKQJ.A", "5432.65432.432.9", "..T98765.8765432"]
PICKS = "9S 4H 3H 8S TH 9H TC 7D 6C AC AD AS"

PICKING = """
deal 1, pick, dealer seat 1, call 102, target 300

           score  points  C      D      H       S        passed                taken
   seat 0    120       0  T9876  T987           KQJT
   seat 1     -8       0  AKQJ   AKQJ   AKQJ    A
   seat 2      0       0  5432   65432  2                left 9S, right 3H 4H
>  seat 3     80       0                T98765  8765432

legal  5H 6H 7H 8H 9H TH 2S 3S 4S 5S 6S 7S 8S
"""

PICKING_SEEN_BY_SEAT_2 = """
deal 1, pick, dealer right, call 102, target 300

           score  points  void in  taken
   me          0       0
>  left       80       0
   across    120       0
   right      -8       0

hand  C 5432  D 65432  H 2  S -
gave  left 9S, right 3H 4H
"""


def dealt() -> Game:
    game = Game.from_deal(HANDS, dealer=1, scores=(120, -8, 0, 80))
    game.push("102")
    return game


def push_all(game: Game, actions: str) -> Game:
    for action in actions.split():
        game.push(action)
    return game


def text_of(game: Game) -> str:
    return f"\n{game}\n"


@pytest.mark.small
def test_a_table_while_cards_are_picked() -> None:
    game = push_all(dealt(), "9S 4H 3H")
    assert text_of(game) == PICKING
    assert str(game) == table(game.record, game.rules)


@pytest.mark.small
def test_a_seat_sees_its_own_picks_alone() -> None:
    game = push_all(dealt(), "9S 4H 3H")
    assert f"\n{seat_view(game.view(2), game.rules)}\n" == PICKING_SEEN_BY_SEAT_2
    assert "gave" not in seat_view(game.view(3), game.rules)


@pytest.mark.small
def test_a_trick_and_the_last_one() -> None:
    game = push_all(dealt(), PICKS + " 2C 6C 7C KC")
    assert "trick  1: seat 2 2C, seat 3 6C, seat 0 7C, seat 1 KC, taken by seat 1" in str(game)
    assert "trick  1: across 2C, right 6C, me 7C, left KC, taken by left" in seat_view(game.view(0), game.rules)
    push_all(game, "TC AC 9S 8C")
    assert "trick  2: seat 1 TC, seat 2 AC, seat 3 9S, seat 0 8C, taken by seat 2" in str(game)
    view = seat_view(game.view(0), game.rules)
    assert re.search(r"^ +right +80 +0 +C$", view, re.MULTILINE)  # has failed to follow clubs
    assert "got    left AD AS, right 8S" in view


@pytest.mark.small
def test_scoring_cards_and_points() -> None:
    game = push_all(dealt(), PICKS + " 2C 6C 7C KC QC AC 5H 8C")
    assert re.search(r"^> +seat 2 +0 +14 .* QC 5H$", str(game), re.MULTILINE)
    assert re.search(r"^> +across +0 +14 +QC 5H$", seat_view(game.view(0), game.rules), re.MULTILINE)
    assert "hearts broken" in str(game)


@pytest.mark.small
def test_a_kitty_shows_what_came_back() -> None:
    game = Game.from_deal(HANDS, dealer=1, call="kitty")
    push_all(game, PICKS)
    back = " ".join(CARD_NAMES[card] for card in range(52) if int(game.view(2).received[0]) >> card & 1)
    assert len(back.split()) == 3
    assert f"3H 4H 9S, back {back}" in str(game)
    view = seat_view(game.view(2), game.rules)
    assert re.search(rf"^gave +3H 4H 9S\ngot +{back}$", view, re.MULTILINE)


@pytest.mark.small
def test_calls_are_named_and_only_shown_to_the_dealer() -> None:
    game = Game(seed=1)
    calls = "legal  300 210 201 120 111 102 030 021 012 003 kitty"
    assert str(game).endswith(calls)
    assert [calls in seat_view(game.view(seat), game.rules) for seat in range(4)] == [
        seat == game.dealer for seat in range(4)
    ]


def cards_named(text: str) -> set[str]:
    """Cards that a seat's view names, in words like QS or by suit as in the row of its hand."""
    by_suit = re.findall(r"\b([CDHS]) ([2-9TJQKA]+)(?=\s|$)", text)
    return set(re.findall(r"\b[2-9TJQKA][CDHS]\b", text)) | {rank + suit for suit, ranks in by_suit for rank in ranks}


@pytest.mark.parametrize("seed", range(3))
def test_a_seat_reads_of_no_card_that_it_has_not_seen(seed: int) -> None:
    rng = random.Random(seed)
    game = Game(Rules(max_deals=1), seed=seed)
    while not game.is_over:
        for seat in range(4):
            view = game.view(seat)
            seen = int(view.hand | np.bitwise_or.reduce(np.r_[view.given, view.received, view.played]))
            known = {CARD_NAMES[card] for card in range(52) if seen >> card & 1}
            assert cards_named(seat_view(view, game.rules)) <= known
            hand = {CARD_NAMES[card] for card in range(52) if int(view.hand) >> card & 1}
            assert hand <= cards_named(seat_view(view, game.rules))
        game.push(rng.choice(game.legal_actions()))


@pytest.mark.parametrize(
    ("record", "result"),
    [
        ({"winners": 0b0100}, "seat 2 wins"),
        ({"winners": 0b1001}, "seat 0, seat 3 share the win"),
        ({"winners": 0b0010, "shooter": 1}, "seat 1 wins by a shot"),
        ({"winners": 0b0010, "shooter": 2}, "seat 1 wins"),
        ({"winners": 0}, "over without a winner"),
    ],
)
def test_results(record: dict[str, int], result: str) -> None:
    game = Game(Rules(max_deals=1), seed=1)
    while not game.is_over:
        game.push(game.legal_actions()[0])
    over = game.record
    over["shooter"] = -1
    for field, value in record.items():
        over[field] = value
    text = table(over, game.rules)
    assert text.endswith(f"\nresult  {result}")
    assert ">" not in text
    assert "legal" not in text


@pytest.mark.small
def test_every_line_is_printable_and_without_trailing_blanks() -> None:
    game = Game(Rules(points=card_points(QS=13), max_deals=1), seed=4)
    while not game.is_over:
        for text in (str(game), *(seat_view(game.view(seat), game.rules) for seat in range(4))):
            assert text.isascii()
            assert all(line == line.rstrip() for line in text.split("\n"))
            assert max(map(len, text.split("\n"))) <= 120
        game.push(game.legal_actions()[-1])


@pytest.mark.small
def test_seats_may_have_names() -> None:
    game = dealt()
    text = table(game.record, game.rules, ["Ann", "Ben", "Cleo", "Dan"])
    assert "dealer Ben" in text
    assert re.search(r"^> +Cleo +0", text, re.MULTILINE)
    assert "seat" not in text
