"""PPO training: sb3-contrib's `MaskablePPO` on `SeatVecEnv`, saved as checkpoints that hold no code."""

from __future__ import annotations

import csv
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch import nn

from agents.learned.checkpoint import Checkpoint, save
from agents.learned.policy import PPOAgent
from agents.learned.settings import Settings
from dnfh_env.errors import CheckpointError, DnfhError
from dnfh_env.objective import SHOT_VALUE
from dnfh_env.observation import LAYOUTS
from dnfh_env.rules import Rules
from dnfh_env.sb3 import SeatVecEnv

REWARD_SCALE = {"points": 1 / SHOT_VALUE, "win": 4.0}
"""Factors that bring what an episode pays to the size of 1, which suits the value network."""

Evaluate = Callable[[PPOAgent], Mapping[str, Mapping[str, float]]]
"""Figures of a policy by opponent: ``"edge"``, whose mean picks the best checkpoint, and any others."""


class TrainingError(DnfhError):
    """Training diverged; what was last saved is still good."""


class Trunk(BaseFeaturesExtractor):
    """The layers that policy and value share."""

    def __init__(self, observation_space: Any, widths: tuple[int, ...]) -> None:
        sizes = (observation_space.shape[0], *widths)
        super().__init__(observation_space, sizes[-1])
        layers = [(nn.Linear(ins, outs), nn.ReLU()) for ins, outs in pairwise(sizes)]
        self.layers = nn.Sequential(*(module for pair in layers for module in pair))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """``float32[B, bits]`` to ``float32[B, widths[-1]]``."""
        features: torch.Tensor = self.layers(observations)
        return features


def actor_layers(settings: Settings) -> tuple[str, ...]:
    """What SB3 calls the linear layers from observation to logits."""
    trunk = [f"features_extractor.layers.{2 * i}" for i in range(len(settings.trunk))]
    head = [f"mlp_extractor.policy_net.{2 * i}" for i in range(len(settings.head))]
    return (*trunk, *head, "action_net")


class ScaledReward(VecEnvWrapper):
    """Rewards times a constant."""

    def __init__(self, venv: VecEnv, scale: float) -> None:
        super().__init__(venv)
        self.scale = np.float32(scale)

    def reset(self) -> Any:
        """See `VecEnv.reset`."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """See `VecEnv.step_wait`."""
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, rewards * self.scale, dones, infos


class PPO(MaskablePPO):
    """`MaskablePPO` that stops as soon as its numbers are no longer finite."""

    def train(self) -> None:
        """One update. Raises ``FloatingPointError`` if the loss or a weight is not finite after it."""
        super().train()
        loss = self.logger.name_to_value["train/loss"]
        if not (math.isfinite(loss) and all(bool(p.isfinite().all()) for p in self.policy.parameters())):
            raise FloatingPointError(f"after {self.num_timesteps} decisions the loss was {loss}")


def build(settings: Settings, rules: Rules, seed: int, device: str = "cpu", done: int = 0) -> PPO:
    """A model with fresh weights, for ``rules``, about to make its decision number ``done``.

    Deals are a function of ``seed`` and ``done``, so that training resumed at ``done`` sees deals not seen before.
    """
    deals = int(np.random.SeedSequence([seed, done]).generate_state(1, np.uint32)[0])
    env = SeatVecEnv(
        settings.num_envs,
        seed=deals,
        rules=rules,
        opponents=settings.opponents[0] if len(settings.opponents) == 1 else settings.opponents,
        episode=settings.episode,
        reward=settings.reward,
        observation=settings.observation,
    )
    model = PPO(
        "MlpPolicy",
        ScaledReward(env, REWARD_SCALE[settings.reward]),
        learning_rate=LinearSchedule(settings.learning_rate, settings.final_learning_rate, 1.0),
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        ent_coef=settings.entropy,
        vf_coef=settings.value_weight,
        policy_kwargs={
            "features_extractor_class": Trunk,
            "features_extractor_kwargs": {"widths": settings.trunk},
            "net_arch": {"pi": list(settings.head), "vf": list(settings.head)},
            "activation_fn": nn.ReLU,
        },
        seed=seed,
        device=device,
    )
    env.seed(deals)
    model.num_timesteps = done
    return model


# --- checkpoints ----------------------------------------------------------------------------------------------------


def snapshot(model: PPO, settings: Settings, rules: Rules, training: Mapping[str, Any]) -> Checkpoint:
    """All that `restore` needs; ``training`` is kept beside the settings and the number of decisions."""
    return Checkpoint(
        rules=rules,
        layout=LAYOUTS[settings.observation],
        actor=actor_layers(settings),
        parts={"policy": policy_tensors(model), "optimizer": optimizer_tensors(model), "rng": rng_tensors()},
        training={"settings": settings.to_dict(), "decisions": model.num_timesteps, **training},
    )


def restore(model: PPO, checkpoint: Checkpoint, path: str | Path) -> None:
    """Go on from a checkpoint: weights, optimiser and random streams; ``path`` is what errors call it.

    Raises `CheckpointError` if it was not saved for training, or for a network of another shape.
    """
    if missing := {"optimizer", "rng"} - set(checkpoint.parts):
        raise CheckpointError(f"checkpoint {path}: it can be played but not trained on, {sorted(missing)} is missing")
    try:
        _copy_into(policy_state(model), checkpoint.parts["policy"])
        _copy_into(optimizer_state(model), checkpoint.parts["optimizer"])
        _restore_rng(checkpoint.parts["rng"])
    except (KeyError, ValueError, RuntimeError) as error:
        settings = checkpoint.training.get("settings", {})
        raise CheckpointError(
            f"checkpoint {path}: it does not fit this network: {error}; it was trained with "
            f"--trunk {settings.get('trunk')} --head {settings.get('head')}"
        ) from error


def policy_state(model: PPO) -> dict[str, torch.Tensor]:
    """The weights of policy and value by name; what is shared stands once."""
    return {name: parameter.data for name, parameter in model.policy.named_parameters()}


def optimizer_state(model: PPO) -> dict[str, torch.Tensor]:
    """The tensors of Adam as ``"exp_avg/NAME"`` and so on; a fresh one gets those of its first step."""
    state = model.policy.optimizer.state
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in model.policy.named_parameters():
        own = state[parameter]
        if not own:
            own |= {"step": torch.tensor(0.0)}
            own |= {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
        tensors |= {f"{key}/{name}": tensor for key, tensor in own.items()}
    return tensors


def policy_tensors(model: PPO) -> dict[str, NDArray[Any]]:
    """`policy_state` as arrays."""
    return _arrays(policy_state(model))


def optimizer_tensors(model: PPO) -> dict[str, NDArray[Any]]:
    """`optimizer_state` as arrays."""
    return _arrays(optimizer_state(model))


def _arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, NDArray[Any]]:
    """Copies in main memory."""
    return {name: tensor.detach().to("cpu", copy=True).numpy() for name, tensor in tensors.items()}


def _copy_into(tensors: Mapping[str, torch.Tensor], arrays: Mapping[str, NDArray[Any]]) -> None:
    if tensors.keys() != arrays.keys():
        raise KeyError(f"tensors {sorted(tensors.keys() ^ arrays.keys())} are on one side only")
    for name, tensor in tensors.items():
        if tensor.shape != arrays[name].shape:
            raise ValueError(f"{name} has shape {list(arrays[name].shape)}, expected {list(tensor.shape)}")
        tensor.copy_(torch.from_numpy(arrays[name]))


def rng_tensors() -> dict[str, NDArray[Any]]:
    """The random streams that training draws from: torch's samples actions, numpy's shuffles minibatches."""
    state: Any = np.random.get_state(legacy=False)
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "torch": torch.get_rng_state().numpy(),
        **{f"cuda.{i}": device.numpy() for i, device in enumerate(cuda)},
        "numpy.key": state["state"]["key"],
        "numpy.pos": np.array(state["state"]["pos"], np.int64),
    }


def _restore_rng(arrays: Mapping[str, NDArray[Any]]) -> None:
    torch.set_rng_state(torch.from_numpy(arrays["torch"]))
    if torch.cuda.is_available() and "cuda.0" in arrays:
        states = [torch.from_numpy(arrays[name]) for name in sorted(arrays) if name.startswith("cuda.")]
        torch.cuda.set_rng_state_all(states[: torch.cuda.device_count()])
    shuffles = {"key": arrays["numpy.key"], "pos": int(arrays["numpy.pos"])}
    np.random.set_state({"bit_generator": "MT19937", "state": shuffles, "has_gauss": 0, "gauss": 0.0})


# --- the run --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Run:
    """One training run and its folder, which is itself the latest checkpoint; the best one is in ``best``."""

    model: PPO
    settings: Settings
    rules: Rules
    out: Path
    evaluate: Evaluate
    every: int
    """Decisions between two evaluations, each of which saves."""
    tell: Callable[[int, Mapping[str, Mapping[str, float]]], None] = lambda decisions, figures: None
    """Called after each evaluation."""
    tick: Callable[[int], None] = lambda decisions: None
    """Called with the number of decisions after each step."""
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What checkpoints keep beside the settings: ``"figures"`` of the last evaluation and ``"best"`` edge so far."""
    saved: int = 0
    """How many decisions the last save had seen."""

    def learn(self) -> bool:
        """Train until the settings' number of decisions; False if Ctrl-C ended it early. Saves in either case.

        Raises `TrainingError` if it diverges, and `OSError` if the folder cannot be written.
        """
        self.save()
        self.model.set_logger(configure(str(self.out / "tb"), ["tensorboard"]))
        try:
            with unvalidated_distributions():
                left = self.settings.decisions - self.model.num_timesteps
                self.model.learn(left, callback=Watch(self), reset_num_timesteps=False)
            self.judge()
        except KeyboardInterrupt:
            self.save()
            return False
        except FloatingPointError as error:
            raise TrainingError(
                f"training diverged: {error}; {self.out} holds the state after {self.saved} decisions, "
                "from which to go on with a smaller learning rate or clip range"
            ) from error
        finally:
            self.model.logger.close()
        return True

    def save(self) -> Checkpoint:
        """Make the folder hold the state of now."""
        checkpoint = snapshot(self.model, self.settings, self.rules, self.notes)
        save(self.out, checkpoint)
        self.saved = self.model.num_timesteps
        return checkpoint

    def judge(self) -> None:
        """Save, evaluate the policy of now, write the figures down; the best so far is saved in ``best`` too."""
        self.save()
        agent = PPOAgent.of(snapshot(self.model, self.settings, self.rules, {}))
        figures = self.evaluate(agent)
        self._log(figures)
        self.notes["figures"] = {opponent: dict(row) for opponent, row in figures.items()}
        edge = float(np.mean([row["edge"] for row in figures.values()]))
        best = edge > self.notes.get("best", -math.inf)
        self.notes["best"] = max(edge, self.notes.get("best", -math.inf))
        checkpoint = self.save()
        if best:
            save(self.out / "best", checkpoint)
        self.tell(self.model.num_timesteps, figures)

    def _log(self, figures: Mapping[str, Mapping[str, float]]) -> None:
        """To TensorBoard and ``progress.csv``."""
        path = self.out / "progress.csv"
        new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            for opponent, row in figures.items():
                if new:
                    writer.writerow(["time", "decisions", "opponent", *row])
                    new = False
                writer.writerow([round(time.time()), self.model.num_timesteps, opponent, *row.values()])
                for name, value in row.items():
                    self.model.logger.record(f"evaluation/{opponent}/{name}", value)
        self.model.logger.dump(self.model.num_timesteps)


class Watch(BaseCallback):
    """Calls back into a `Run` while SB3 is in charge."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.next = run.model.num_timesteps + run.every

    def _on_rollout_start(self) -> None:
        """Between two updates: weights and counters belong together."""
        if self.num_timesteps >= self.next:
            self.next = self.num_timesteps + self.run.every
            self.run.judge()

    def _on_step(self) -> bool:
        self.run.tick(self.num_timesteps)
        return True


@contextmanager
def unvalidated_distributions() -> Iterator[None]:
    """Without torch's checks of each distribution, which cost a tenth of the time; `PPO.train` looks for NaN itself."""
    before = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        torch.distributions.Distribution.set_default_validate_args(before)
