"""`Mixed`, registered as ``mixed``: one agent for the calls, one for the picks, one for the plays.

It tells what a part of a player is worth: ``mixed:call=pimc,pick=heuristic,play=heuristic`` against ``heuristic`` is a
measure of calling by search and of nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dnfh_env.agent import Agent, ask_each, make_agents, name_of
from dnfh_env.engine import CALL, PICK, PLAY
from dnfh_env.rules import Rules


class Mixed:
    """Ask a different agent in each phase."""

    def __init__(
        self,
        *,
        rules: Rules | None = None,
        call: str | Agent = "heuristic",
        pick: str | Agent = "heuristic",
        play: str | Agent = "heuristic",
    ) -> None:
        """Names or agents, see `dnfh_env.agent.make_agent`, which raises `AgentError`; equal names are one agent."""
        specs = {CALL: call, PICK: pick, PLAY: play}
        names = [name_of(spec) for spec in specs.values()]
        self._players = list(zip(names, make_agents([*specs.values()], rules), strict=True))
        self.parameters = dict(zip(("call", "pick", "play"), names, strict=True))

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `dnfh_env.agent.Agent.act`."""
        return ask_each(self._players, views["phase"].astype(np.int64), views, rng)
