"""Stable-Baselines3: `SeatVecEnv`, one seat in many games at once. Needs the extra ``train``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from gymnasium import Wrapper
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from dnfh_env.seat_env import SeatBatch, SeatOptions, SeatStep, spaces_of


class SeatVecEnv(VecEnv):
    """`dnfh_env.seat_env.SeatBatch` as a vectorized environment of SB3, for `MaskablePPO` above all.

    Observations are ``float32[num_envs, bits]`` of 0 and 1, actions 0 to 63, an illegal one ends its episode. An
    episode that ends is followed by the row's next one at once; its info then holds ``terminal_observation``,
    ``TimeLimit.truncated``, ``episode`` (return ``r``, length ``l`` and time ``t``, as from `Monitor`) and
    `dnfh_env.seat_env.FACTS`. Other infos are empty.
    """

    def __init__(self, num_envs: int, *, seed: int | None = 0, **options: Unpack[SeatOptions]) -> None:
        """``options`` as for every seat; row ``i`` plays the games of row ``i`` of a `Batch` under ``seed``."""
        self.batch = SeatBatch(num_envs, **options)
        self.returns = np.zeros(num_envs)
        """What the current episodes have earned so far, ``float64[num_envs]``."""
        self.lengths = np.zeros(num_envs, np.int64)
        """How many steps they have taken."""
        self.started = time.monotonic()
        self.render_mode = None
        super().__init__(num_envs, *spaces_of(self.batch.layout))
        self.seed(seed)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """The seed for the next `reset`; one for all rows, which play different games of it. ``None`` draws one."""
        first = super().seed(seed)[0]
        self._seeds = [first] * self.num_envs
        return self._seeds

    def reset(self) -> NDArray[np.float32]:
        """Start an episode in every row: the first games of a seed just given, otherwise the next of each row."""
        self.batch.reset(self._seeds[0], self._options)
        self._reset_seeds()
        self._reset_options()
        self.returns[:] = 0
        self.lengths[:] = 0
        return self.batch.observe()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take ``int[num_envs]`` actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards ``float32[num_envs]``, dones ``bool[num_envs]``, infos; all new with each step."""
        step = self.batch.step(self._actions)
        self.returns += step.rewards
        self.lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if len(step.rows):
            self._report(step, infos)
        return self.batch.observe(), step.rewards, step.terminated | step.truncated, infos

    def _report(self, step: SeatStep, infos: list[dict[str, Any]]) -> None:
        """Fill in the infos of the episodes that ended."""
        seconds = round(time.monotonic() - self.started, 6)
        last_seen = self.batch.observe(step.views)
        facts = {name: values.tolist() for name, values in step.facts.items()}
        for k, row in enumerate(step.rows.tolist()):
            infos[row] |= {name: values[k] for name, values in facts.items()}
            infos[row]["terminal_observation"] = last_seen[k]
            infos[row]["TimeLimit.truncated"] = bool(step.truncated[row])
            infos[row]["episode"] = {"r": float(self.returns[row]), "l": int(self.lengths[row]), "t": seconds}
        self.returns[step.rows] = 0
        self.lengths[step.rows] = 0

    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of every row, ``bool[num_envs, 64]``."""
        return self.batch.action_masks().view(np.bool_)

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> Any:
        """``"action_masks"``, as sb3-contrib asks at each step: one array ``bool[len(indices), 64]``."""
        if method_name != "action_masks":
            raise AttributeError(f"env_method: {method_name!r} is not 'action_masks', all that a row answers to")
        masks = self.action_masks()
        return masks if indices is None else masks[list(self._get_indices(indices))]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute, the same for every row asked about."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute, for all rows at once."""
        if indices is not None:
            raise ValueError("set_attr: the rows are one object, so indices must be None")
        setattr(self, attr_name, value)

    def env_is_wrapped(
        self, wrapper_class: type[Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Rows report their episodes as `Monitor` does, so SB3 need not add one, and are wrapped in nothing else."""
        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))

    def close(self) -> None:
        """Nothing to free."""
