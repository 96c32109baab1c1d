"""What a training run is made of, as data: needs neither torch nor SB3, so that ``--help`` is quick."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from dnfh_env.errors import DnfhError
from dnfh_env.objective import Reward, reward_of
from dnfh_env.observation import Observation


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a policy learns from, and how. A *decision* is one of the learner's own."""

    opponents: tuple[str, ...] = ("greedy", "greedy", "random")
    """The agents at the other three seats: one name for all, or three for left, across and right."""
    episode: Literal["deal", "game"] = "deal"
    """What one episode is: a single deal at level scores, or a whole game."""
    reward: Reward = "points"
    """What is paid: card points trick by trick, or the share of the win (whole games only)."""
    observation: Observation = "compact"
    """The observation layout; "full" adds the order of past tricks."""
    decisions: int = 2_200_000
    """Decisions to learn from in all, those before a --resume included."""
    num_envs: int = 256
    """Tables played side by side."""
    n_steps: int = 64
    """Decisions at each table between two updates."""
    batch_size: int = 1024
    """Decisions in each gradient step."""
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
    """Widths of the layers that policy and value share."""
    head: tuple[int, ...] = (128,)
    """Widths of the further layers that each of the two has."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}

    def check(self) -> None:
        """Raise `DnfhError` that names the field if the settings cannot be trained with."""
        for field in (
            "learning_rate",
            "final_learning_rate",
            "gamma",
            "gae_lambda",
            "clip_range",
            "entropy",
            "value_weight",
        ):
            if not 0 <= getattr(self, field) < math.inf:
                raise DnfhError(f"{field}: {getattr(self, field)} is not a number from 0 up")
        for field in ("decisions", "num_envs", "n_steps", "batch_size", "epochs"):
            if getattr(self, field) < 1:
                raise DnfhError(f"{field}: {getattr(self, field)} is not at least 1")
        rollout = self.num_envs * self.n_steps
        if self.batch_size < 2 or rollout % self.batch_size:
            raise DnfhError(
                f"batch_size: {self.batch_size} has to be at least 2 and divide num_envs * n_steps = {rollout}"
            )
        if len(self.opponents) not in (1, 3):
            raise DnfhError(f"opponents: expected one, or three for left, across, right; got {len(self.opponents)}")
        reward_of(self.episode, self.reward)
        if not all(width > 0 for width in (*self.trunk, *self.head)):
            raise DnfhError(f"trunk, head: widths have to be above 0, got {self.trunk} and {self.head}")
