"""What a training run is made of, as data: needs neither torch nor SB3, so that ``--help`` is quick."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, Self

from dnfh_env.agent import three_others
from dnfh_env.errors import DnfhError, one_of, shown, whole
from dnfh_env.objective import Reward, check_episode, reward_of
from dnfh_env.observation import Observation, check_observation

SELF, PAST = "self", "past"
"""Names in a line-up: the policy as it is now, which learns from every decision it makes; and one of its snapshots."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a policy learns from, and how. A *decision* is one of the learner's own, of whichever seat."""

    opponents: tuple[str, ...] = (SELF, SELF, SELF, PAST, "heuristic", "greedy", "random")
    """Who may sit at the other three seats of a game: "self", the policy as it is, learning there too; "past", one of
    its snapshots; or an agent's name, without a "+". LEFT+ACROSS+RIGHT names three, such as self+greedy+random."""
    shares: tuple[float, ...] = ()
    """How many of the games each of the opponents gets, in parts; all the same if none are given."""
    snapshots: int = 5
    """How many snapshots are kept; the oldest makes room, and at first all are the policy of the start."""
    snapshot_every: int = 200_000
    """Decisions between two snapshots."""
    episode: Literal["deal", "game"] = "deal"
    """What one episode is: a single deal at level scores, or a whole game."""
    reward: Reward = "points"
    """What is paid: card points trick by trick, the share of the win (whole games only), or deal by deal the change of
    the chance of winning the game."""
    observation: Observation = "compact"
    """The observation layout; "full" adds the order of past tricks."""
    critic: Literal["view", "state"] = "view"
    """What the value network sees: the seat's view, or all cards; the policy sees its view alone in either case."""
    decisions: int = 3_000_000
    """Decisions to learn from in all, those before a --resume included; the last update may go beyond."""
    tables: int = 256
    """Games played side by side."""
    rollout: int = 16_384
    """Decisions between two updates; best a whole deal of every table, 65 decisions, since all begin together."""
    batch_size: int = 1024
    """Decisions in a gradient step, at least: an update is cut into equal ones."""
    epochs: int = 3
    """How often each decision is used."""
    learning_rate: float = 2e-3
    """Step size of Adam at the start; it falls in a straight line."""
    final_learning_rate: float = 1e-4
    """Step size at the end."""
    gamma: float = 1.0
    """Discount a decision; 1 because an episode is short."""
    gae_lambda: float = 0.75
    """Weight of longer returns in the advantage; low, because most of what a return holds is the luck of the cards."""
    clip_range: float = 0.2
    """How far one update may move a probability, as a ratio."""
    entropy: float = 0.003
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    trunk: tuple[int, ...] = (128,)
    """Widths of the first layers, which policy and value share unless the critic sees more."""
    head: tuple[int, ...] = (128,)
    """Widths of the further layers that each of the two has."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The settings of `to_dict`; raises ``TypeError`` for unknown names."""
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}
        return cls(**values)

    def lineups(self) -> list[list[str]]:
        """The opponents as names for left, across and right."""
        return [[str(name) for name in three_others(f"opponents, {e!r}", e.split("+"))] for e in self.opponents]

    def chances(self) -> list[float]:
        """The share of the games that each of the opponents gets; they sum to 1."""
        shares = self.shares or (1,) * len(self.opponents)
        return [share / sum(shares) for share in shares]

    def bots(self) -> list[str]:
        """The agents among the opponents, by name."""
        return sorted({name for names in self.lineups() for name in names} - {SELF, PAST})

    def check(self) -> None:
        """Raise `DnfhError` that names the field if the settings cannot be trained with."""
        for name in ("decisions", "epochs", "snapshot_every"):
            whole(name, getattr(self, name), 1)
        whole("snapshots", self.snapshots, 1, 1000)
        whole("tables", self.tables, 1, 1 << 20)
        whole("rollout", self.rollout, 2, 1 << 26)
        whole("batch_size", self.batch_size, 2, self.rollout)
        for width in (*self.trunk, *self.head):
            whole("trunk, head", width, 1, 1 << 16)
        for name in ("learning_rate", "final_learning_rate", "clip_range", "entropy", "value_weight"):
            _number(name, getattr(self, name))
        for name in ("gamma", "gae_lambda"):
            _number(name, getattr(self, name), 1)
        one_of("critic", self.critic, ("view", "state"))
        check_observation(self.observation)
        reward_of(check_episode(self.episode, ("deal", "game")), self.reward)
        if self.critic == "state" and not self.trunk:
            raise DnfhError("trunk: with critic='state' it needs a layer at least, got none")
        self._check_opponents()

    def _check_opponents(self) -> None:
        self.lineups()
        if not self.opponents:
            raise DnfhError("opponents: expected at least one")
        if self.shares and len(self.shares) != len(self.opponents):
            raise DnfhError(
                f"shares: expected one for each of the opponents ({len(self.opponents)}), got {self.shares}"
            )
        if not (all(share > 0 for share in self.shares) and sum(self.shares) < math.inf):
            raise DnfhError(f"shares: {self.shares} are not numbers above 0 with a finite sum")


def _number(name: str, value: float, high: float = math.inf) -> None:
    if not (isinstance(value, int | float) and 0 <= value <= high and value < math.inf):
        raise DnfhError(f"{name}: {shown(value)} is not a number from 0 {'up' if high == math.inf else f'to {high}'}")
