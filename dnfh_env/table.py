"""The table, game after game: who has to leave it, and who deals first (R15, R18 of ``docs/rules.md``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dnfh_env.cards import NUM_SEATS
from dnfh_env.engine import NO_SEAT, begin_deals
from dnfh_env.rules import Rules, compile_rules


def leavers_of(games: NDArray[Any], rules: Rules) -> NDArray[np.int64]:
    """The seat at the left of whoever won each ended game by a shot, or `NO_SEAT`: ``int64[B]`` (R15)."""
    shooters = games["shooter"].astype(np.int64)
    sends = (shooters != NO_SEAT) & (rules.shot == "game")
    return np.where(sends, (shooters + 1) % NUM_SEATS, NO_SEAT)


def follow_on(games: NDArray[Any], rules: Rules, last_dealers: NDArray[np.int64]) -> None:
    """Let fresh games, `GAME` records ``[B]``, begin as the next of tables whose last deals were dealt by these seats.

    The dealer stays drawn, or is the seat left of the last one, to whose place the hands move along (R18).
    """
    if rules.table_dealer == "random":
        return
    dealers = (last_dealers + 1) % NUM_SEATS
    turns = dealers - games["dealer"]
    places = (np.arange(NUM_SEATS) - turns[:, None]) % NUM_SEATS
    games["hand"] = np.take_along_axis(games["hand"], places, axis=1)
    games["dealer"] = dealers
    begin_deals(games, compile_rules(rules))
