"""`SelfPlay`: sb3-contrib's `MaskablePPO` learning from a `Collector`, saved as checkpoints that hold no code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from gymnasium.spaces import Box
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBufferSamples
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.utils import LinearSchedule
from torch import nn

from agents.learned.checkpoint import Checkpoint
from agents.learned.packed import adopt, unpack
from agents.learned.policy import PPOAgent
from agents.learned.rollout import Collector, Samples
from agents.learned.settings import Settings
from dnfh_env.agent import Agent
from dnfh_env.errors import CheckpointError, DnfhError, whole
from dnfh_env.observation import LAYOUTS, STATE
from dnfh_env.rules import Rules, checked_rules
from dnfh_env.sb3 import SeatVecEnv


class TrainingError(DnfhError):
    """Training diverged; what was last saved is still good."""


# --- the network ----------------------------------------------------------------------------------------------------


class Trunk(BaseFeaturesExtractor):
    """The first layers of policy and value."""

    def __init__(self, observation_space: Any, widths: tuple[int, ...]) -> None:
        sizes = (observation_space.shape[0], *widths)
        super().__init__(observation_space, sizes[-1])
        layers = [(nn.Linear(ins, outs), nn.ReLU()) for ins, outs in pairwise(sizes)]
        self.layers = nn.Sequential(*(module for pair in layers for module in pair))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """``float32[B, bits]`` to ``float32[B, widths[-1]]``."""
        features: torch.Tensor = self.layers(observations)
        return features


_NEVER = -1e8
"""The logit of an illegal action, as in sb3-contrib; its probability is exactly 0 then."""


class Policy(MaskableActorCriticPolicy):
    """SB3's policy, quicker at what PPO asks: `torch.exp` takes ten times as long where masks let it underflow."""

    def logits_and_values(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """``float32[B, 64]`` before masking, and ``float32[B, 1]``."""
        features: Any = self.extract_features(observations)
        if self.share_features_extractor:
            for_policy, for_value = self.mlp_extractor(features)
        else:
            for_policy = self.mlp_extractor.forward_actor(features[0])
            for_value = self.mlp_extractor.forward_critic(features[1])
        return self.action_net(for_policy), self.value_net(for_value)

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values ``[B, 1]``, log-probabilities ``[B]`` of ``actions``, and entropies ``[B]`` over legal actions."""
        logits, values = self.logits_and_values(obs)
        if action_masks is not None:
            logits = logits.masked_fill(action_masks == 0, _NEVER)
        log_probs = logits.log_softmax(dim=1)
        chosen = log_probs.gather(1, actions.long().reshape(-1, 1)).squeeze(1)
        return values, chosen, -(logits.softmax(dim=1) * log_probs).sum(dim=1)


class StateCriticPolicy(Policy):
    """A policy that sees its own view and a value network that sees all cards.

    Both read the layout ``state``, ``float32[B, STATE.bits]``, whose first bits are the view: all that the policy is
    handed. Alone with a view the policy still plays. (PerfectDou, arXiv 2203.16406, trains so.)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "share_features_extractor": False})

    def _build(self, lr_schedule: Any) -> None:
        everything = Box(0.0, 1.0, (STATE.bits,), np.float32)
        self.vf_features_extractor = Trunk(everything, **self.features_extractor_kwargs)
        super()._build(lr_schedule)

    def extract_features(self, obs: Any, features_extractor: Any = None) -> Any:
        """Features for the policy and for the value."""
        (bits,) = self.observation_space.shape or ()
        return self.pi_features_extractor(obs[:, :bits]), self.vf_features_extractor(obs)


def actor_layers(settings: Settings) -> tuple[str, ...]:
    """What SB3 calls the linear layers from observation to logits."""
    trunk = [f"features_extractor.layers.{2 * i}" for i in range(len(settings.trunk))]
    head = [f"mlp_extractor.policy_net.{2 * i}" for i in range(len(settings.head))]
    return (*trunk, *head, "action_net")


def build(
    policy: Any, env: Any, settings: Settings, seed: int = 0, device: str = "cpu", n_steps: int = 2048
) -> MaskablePPO:
    """`MaskablePPO` with fresh weights, a function of ``seed``; no other random stream is touched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MaskablePPO(
            policy,
            env,
            learning_rate=LinearSchedule(settings.learning_rate, settings.final_learning_rate, 1.0),
            n_steps=n_steps,
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
                "optimizer_kwargs": {"eps": 1e-5, "fused": True},  # SB3's own epsilon; fused is a fifth of the time
            },
            device=device,
        )


class Rollout:
    """Samples and advantages as `MaskablePPO.train` reads them."""

    def __init__(
        self, samples: Samples, advantages: NDArray[np.float32], device: torch.device, rng: np.random.Generator
    ) -> None:
        self.device = device
        self.rng = rng
        self.values = samples.values
        self.returns = samples.values + advantages
        columns = (samples.actions, samples.values, samples.log_probs, advantages, self.returns)
        self._columns = [torch.from_numpy(column).to(device) for column in columns]
        self._packed = [adopt(words).to(device) for words in (samples.words, samples.legal[:, None])]

    def get(self, batch_size: int) -> Iterator[MaskableRolloutBufferSamples]:
        """All samples once, shuffled, in equal batches of ``batch_size`` or a little more."""
        count = len(self.values)
        for rows in np.array_split(self.rng.permutation(count), max(1, count // batch_size)):
            index = torch.from_numpy(rows).to(self.device)
            observations, masks = (unpack(words.index_select(0, index)) for words in self._packed)
            others = [column.index_select(0, index) for column in self._columns]
            yield MaskableRolloutBufferSamples(*[observations.float(), *others, masks])


# --- the learner ----------------------------------------------------------------------------------------------------


class SelfPlay:
    """A policy that learns at tables of itself, of its snapshots and of bots.

    ``update`` after ``update``, or all at once with ``learn``; ``agent`` is the policy of now. One seed, the same
    settings and the same number of torch threads on a CPU give the same weights to the last bit, and so does a
    learner that was restored from a checkpoint.
    """

    def __init__(self, settings: Settings, rules: Rules | None = None, seed: int = 0, device: str = "cpu") -> None:
        """Start with fresh weights.

        Args:
            settings: what to learn from, and how; an unfit one raises `DnfhError`.
            rules: what is played, `Rules()` if not given.
            seed: fixes weights, cards, line-ups and choices; a whole number below 2**32.
            device: of torch; ``"auto"`` is a GPU if there is one.
        """
        settings.check()
        self.settings = settings
        self.rules = checked_rules(rules)
        self.seed = whole("seed", seed, 0, 2**32 - 1)
        policy = StateCriticPolicy if settings.critic == "state" else Policy
        self._spaces = SeatVecEnv(1, rules=self.rules, observation=settings.observation)  # never stepped
        self.model = build(policy, self._spaces, settings, seed, device, n_steps=2)
        self.model.set_logger(Logger(None, []))
        past: list[Agent] = []
        self._remember(past, [self._actor()] * settings.snapshots)
        self.collector = Collector(settings, self.rules, seed, self.decide, past)

    @property
    def decisions(self) -> int:
        """How many decisions have been learned from."""
        return self.model.num_timesteps

    def learn(self, decisions: int | None = None) -> None:
        """Update until so many decisions have been learned from in all; those of the settings if not given."""
        while self.decisions < (self.settings.decisions if decisions is None else decisions):
            self.update()

    def update(self) -> None:
        """Collect one rollout and learn from it.

        Raises `TrainingError` if the numbers are no longer finite. After that, or when it was broken off half way, a
        `restore` brings the learner back to a good state.
        """
        samples, advantages = self.collector.collect()
        model, before = self.model, self.model.num_timesteps
        model.num_timesteps += len(samples)
        model._update_current_progress_remaining(model.num_timesteps, self.settings.decisions)
        rng = np.random.default_rng([self.seed, before])
        model.rollout_buffer = Rollout(samples, advantages, model.device, rng)  # type: ignore[assignment]
        model.train()
        loss = model.logger.name_to_value["train/loss"]
        if not (math.isfinite(loss) and all(bool(p.isfinite().all()) for p in model.policy.parameters())):
            raise TrainingError(f"training diverged: after {model.num_timesteps} decisions the loss was {loss}")
        if before // self.settings.snapshot_every < model.num_timesteps // self.settings.snapshot_every:
            self._remember(self.collector.past, [*self._past[1:], self._actor()])

    @torch.no_grad()
    def decide(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `agents.learned.rollout.Decide`."""
        observations = unpack(adopt(words).to(self.model.device)).float()
        policy: Any = self.model.policy
        logits, values = policy.logits_and_values(observations)
        return logits.cpu().numpy(), values.flatten().cpu().numpy()

    # --- what it has become -------------------------------------------------------------------------------------

    def agent(self, sample: bool = False) -> PPOAgent:
        """The policy as it is now; later updates do not change it."""
        return self._bot(self._actor(), sample)

    def export(self, path: str | Path) -> None:
        """Write a zip for `MaskablePPO.load`. It holds code, so it is never read back here.

        A critic that sees all cards is not in it: the value network is then a fresh one.
        """
        stock = build("MlpPolicy", self._spaces, self.settings)
        own = self.model.policy.state_dict()
        keep = own if self.settings.critic == "view" else self._actor()
        weights = stock.policy.state_dict()
        stock.policy.load_state_dict(
            {name: torch.as_tensor(keep.get(name, weight)) for name, weight in weights.items()}
        )
        stock.num_timesteps = self.decisions
        stock.save(path)

    def _actor(self) -> dict[str, NDArray[np.float32]]:
        """Copies of the policy's own weights."""
        tensors = dict(self.model.policy.named_parameters())
        names = [f"{layer}.{kind}" for layer in actor_layers(self.settings) for kind in ("weight", "bias")]
        return {name: _array(tensors[name].data) for name in names}

    def _bot(self, actor: Mapping[str, NDArray[np.float32]], sample: bool = True) -> PPOAgent:
        layers = actor_layers(self.settings)
        checkpoint = Checkpoint(self.rules, LAYOUTS[self.settings.observation], layers, {"policy": actor})
        return PPOAgent.of(checkpoint, sample)

    def _remember(self, past: list[Agent], actors: list[dict[str, NDArray[np.float32]]]) -> None:
        """Let these be the snapshots, the oldest first; games under way go on with what has their place now."""
        self._past = actors
        past[:] = [self._bot(actor) for actor in actors]

    # --- checkpoints --------------------------------------------------------------------------------------------

    def checkpoint(self, notes: Mapping[str, Any] | None = None) -> Checkpoint:
        """All that `restore` needs, copied; ``notes`` are kept beside settings, seed and number of decisions."""
        model = self.model
        training = {
            "settings": self.settings.to_dict(),
            "seed": self.seed,
            "decisions": self.decisions,
            "updates": model._n_updates,
        }
        return Checkpoint(
            rules=self.rules,
            layout=LAYOUTS[self.settings.observation],
            actor=actor_layers(self.settings),
            parts={
                "policy": {name: _array(tensor.data) for name, tensor in model.policy.named_parameters()},
                "optimizer": {name: _array(tensor) for name, tensor in optimizer_state(model).items()},
                "past": {f"{i}/{name}": array for i, past in enumerate(self._past) for name, array in past.items()},
                "tables": self.collector.state(),
            },
            training={**(notes or {}), **training},
        )

    @classmethod
    def of(cls, checkpoint: Checkpoint, device: str = "cpu", name: str = "in memory") -> Self:
        """A learner that goes on from a checkpoint with its settings, rules and seed; see `restore`."""
        training = checkpoint.training
        learner = cls(Settings.from_dict(training["settings"]), checkpoint.rules, training["seed"], device)
        learner.restore(checkpoint, name)
        return learner

    def restore(self, checkpoint: Checkpoint, name: str | Path = "in memory") -> None:
        """Go on from a checkpoint; ``name`` is what errors call it. Other episodes, rewards or tables begin anew.

        Raises `CheckpointError` if it was not saved for training, or does not fit these settings; the learner is then
        not to be gone on with.
        """
        if missing := sorted({"optimizer", "past", "tables"} - set(checkpoint.parts)):
            raise CheckpointError(f"checkpoint {name}: it can be played but not trained on, {missing} is missing")
        try:
            self._restore(checkpoint)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"checkpoint {name}: it does not fit this run: {error}") from error

    def _restore(self, checkpoint: Checkpoint) -> None:
        model, parts = self.model, checkpoint.parts
        before, now = checkpoint.training["settings"], self.settings.to_dict()
        for field in ("snapshots", "critic", "trunk", "head"):
            if before[field] != now[field]:
                raise ValueError(f"{field} was {before[field]!r} and is now {now[field]!r}")
        _copy_into({name: parameter.data for name, parameter in model.policy.named_parameters()}, parts["policy"])
        _copy_into(optimizer_state(model), parts["optimizer"])
        past = [{name: parts["past"][f"{i}/{name}"] for name in actor} for i, actor in enumerate(self._past)]
        self._remember(self.collector.past, past)
        if all(before[field] == now[field] for field in ("episode", "reward", "tables")):
            self.collector.restore(parts["tables"])
        model.num_timesteps = whole("decisions", checkpoint.training["decisions"], 0)
        model._n_updates = whole("updates", checkpoint.training["updates"], 0)


def optimizer_state(model: MaskablePPO) -> dict[str, torch.Tensor]:
    """The tensors of Adam as ``"exp_avg/NAME"`` and so on; a fresh one gets those of its first step."""
    state = model.policy.optimizer.state
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in model.policy.named_parameters():
        own = state[parameter]
        if not own:
            own |= {"step": torch.zeros((), device=parameter.device)}  # where a fused Adam wants it
            own |= {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
        tensors |= {f"{key}/{name}": tensor for key, tensor in own.items()}
    return tensors


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    """A copy in main memory."""
    array: NDArray[Any] = tensor.detach().to("cpu", copy=True).numpy()
    return array


def _copy_into(tensors: Mapping[str, torch.Tensor], arrays: Mapping[str, NDArray[Any]]) -> None:
    if tensors.keys() != arrays.keys():
        raise KeyError(f"tensors {sorted(tensors.keys() ^ arrays.keys())} are on one side only")
    for name, tensor in tensors.items():
        if tensor.shape != arrays[name].shape:
            raise ValueError(f"{name} has shape {list(arrays[name].shape)}, expected {list(tensor.shape)}")
        tensor.copy_(torch.from_numpy(arrays[name]))
