"""Dirty Nasty Filthy Hearts as a reinforcement-learning environment.

`Game` to think in, `Batch` for many games, `dnfh_v0` for PettingZoo, ``gymnasium.make("dnfh_env/Seat-v0")`` for one
seat against agents. `Rules` are data.
"""

import gymnasium

from dnfh_env.agent import Agent, make_agent
from dnfh_env.batch import Batch
from dnfh_env.equity import EquityTable, equity_table, load_equity, use_equity, win_chances
from dnfh_env.errors import (
    AgentError,
    ArgumentError,
    CheckpointError,
    DealError,
    DnfhError,
    IllegalActionError,
    NotationError,
    RulesError,
)
from dnfh_env.game import Game
from dnfh_env.rules import Rules, card_points

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentError",
    "ArgumentError",
    "Batch",
    "CheckpointError",
    "DealError",
    "DnfhError",
    "EquityTable",
    "Game",
    "IllegalActionError",
    "NotationError",
    "Rules",
    "RulesError",
    "card_points",
    "equity_table",
    "load_equity",
    "make_agent",
    "use_equity",
    "win_chances",
]

if "dnfh_env/Seat-v0" not in gymnasium.registry:  # gymnasium has no entry points for plugins: this import registers
    gymnasium.register(
        "dnfh_env/Seat-v0",
        entry_point="dnfh_env.seat_env:SeatEnv",
        vector_entry_point="dnfh_env.seat_env:SeatVectorEnv",
    )
