"""`PPOAgent`: plays the policy of a checkpoint. Needs neither torch nor SB3.

The network is evaluated one view at a time and its sums are taken in a fixed order, so that a view has the same logits
to the last bit whether it is asked about alone or among thousands. Zeros are skipped: nine in ten features are 0.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.learned.checkpoint import Checkpoint, load
from dnfh_env._bits import U1, lowest, plain
from dnfh_env._random import GOLDEN, mix, unit
from dnfh_env.agent import legal_rows
from dnfh_env.engine import NUM_ACTIONS
from dnfh_env.errors import CheckpointError
from dnfh_env.observation import pack
from dnfh_env.rules import Rules

WEIGHTS = Path(__file__).with_name("weights")
"""The checkpoint that comes with the package."""


def learned(rules: Rules | None = None, sample: bool = False) -> PPOAgent:
    """The policy that comes with the package, trained by self-play for the rules `Rules()`; see `PPOAgent`."""
    return PPOAgent(WEIGHTS, rules, sample)


class PPOAgent:
    """The policy of a checkpoint as an agent: its best legal action, or one drawn from its distribution."""

    def __init__(self, path: str | Path, rules: Rules | None = None, sample: bool = False) -> None:
        """Read the checkpoint in the folder ``path``.

        Args:
            path: a folder written by ``train.py``.
            rules: the rules it is to play, `Rules()` if not given.
            sample: draw actions by their probabilities instead of taking the likeliest.

        Raises `CheckpointError` if the checkpoint is broken, or is for other rules or another observation layout.
        """
        self._play(load(path, Rules() if rules is None else rules), str(path), sample)

    @classmethod
    def of(cls, checkpoint: Checkpoint, sample: bool = False, name: str = "in memory") -> PPOAgent:
        """The agent of a checkpoint in memory; ``name`` is what errors call it."""
        agent = cls.__new__(cls)
        agent._play(checkpoint, name, sample)
        return agent

    def _play(self, checkpoint: Checkpoint, name: str, sample: bool) -> None:
        self.rules = checkpoint.rules
        self.layout = checkpoint.layout
        self.sample = sample
        self._sizes, self._parameters = _flatten(checkpoint, name)
        self.parameters = {"sample": sample}
        self.weights = hashlib.sha256(self._parameters.astype("<f4").tobytes()).hexdigest()

    def logits(self, views: NDArray[Any]) -> NDArray[np.float32]:
        """What the network says of all 64 actions, legal or not, ``float32[B, 64]``."""
        out = np.empty((len(views), NUM_ACTIONS), np.float32)
        forward(pack(views, self.rules.target, self.layout), self._sizes, self._parameters, out)
        return out

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `dnfh_env.agent.Agent.act`."""
        logits = self.logits(views)
        if self.sample:
            return draw(logits, views["legal"], rng)[0]
        actions: NDArray[np.int64] = _legal_logits(logits, views).argmax(axis=1)
        return actions

    def probabilities(self, views: NDArray[Any]) -> NDArray[np.float64]:
        """See `dnfh_env.agent.StochasticAgent.probabilities`; without ``sample`` all weight is on the best action."""
        logits = _legal_logits(self.logits(views), views).astype(np.float64)
        if not self.sample:
            best: NDArray[np.float64] = np.eye(NUM_ACTIONS)[logits.argmax(axis=1)]
            return best
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return shares


def _legal_logits(logits: NDArray[np.float32], views: NDArray[Any]) -> NDArray[np.float32]:
    """``float32[B, 64]``, minus infinity for illegal actions."""
    return np.where(legal_rows(views["legal"]).view(np.bool_), logits, np.float32(-np.inf))


def _flatten(checkpoint: Checkpoint, name: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Layer widths ``int64[L + 1]`` and, layer by layer, weights by input and then biases in one ``float32[N]``."""
    sizes, parameters = [checkpoint.layout.bits], []
    for layer in checkpoint.actor:
        weight = _tensor(checkpoint, name, f"{layer}.weight", (-1, sizes[-1]))
        sizes.append(len(weight))
        bias = _tensor(checkpoint, name, f"{layer}.bias", (sizes[-1],))
        parameters += [weight.T.ravel(), bias]
    if len(sizes) < 2 or sizes[-1] != NUM_ACTIONS:
        raise CheckpointError(f"checkpoint {name}: the actor has widths {sizes}, it has to end in {NUM_ACTIONS} logits")
    return np.array(sizes, np.int64), np.concatenate(parameters)


def _tensor(checkpoint: Checkpoint, name: str, key: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A tensor of the policy, checked; -1 in ``shape`` stands for any width above 0."""
    tensor = checkpoint.parts["policy"].get(key)
    if tensor is None:
        raise CheckpointError(f"checkpoint {name}: the policy has no tensor {key!r}")
    wanted = tuple(max(have, 1) if want < 0 else want for have, want in zip(tensor.shape, shape, strict=False))
    if tensor.dtype != np.float32 or tensor.shape != wanted or len(wanted) != len(shape):
        expected = f"float32{list(shape)}".replace("-1", "any")
        raise CheckpointError(f"checkpoint {name}: {key} is {tensor.dtype}{list(tensor.shape)}, expected {expected}")
    if not np.isfinite(tensor).all():
        raise CheckpointError(f"checkpoint {name}: {key} holds numbers that are not finite")
    return tensor


@njit(inline="always")
def affine(x: Any, weights: Any, bias: Any, y: Any) -> None:
    """``y = x @ weights + bias``, term by term in the order of ``x``, zeros skipped."""
    y[:] = bias
    for i in range(x.shape[0]):
        if x[i] != 0:
            for k in range(y.shape[0]):
                y[k] += x[i] * weights[i, k]


@njit(cache=True)
def forward(words: Any, sizes: Any, parameters: Any, logits: Any) -> None:
    """Logits of packed observations, ``uint64[B, words]``, into ``float32[B, 64]``; see `_flatten` for the network."""
    x = np.empty(sizes.max(), np.float32)
    y = np.empty(sizes.max(), np.float32)
    for b in range(words.shape[0]):
        for i in range(sizes[0]):
            x[i] = words[b, i >> 6] >> np.uint64(i & 63) & np.uint64(1)
        start = 0
        for layer in range(sizes.shape[0] - 1):
            ins, outs = sizes[layer], sizes[layer + 1]
            stop = start + ins * outs
            weights = parameters[start:stop].reshape(ins, outs)
            affine(x[:ins], weights, parameters[stop : stop + outs], y[:outs])
            for k in range(outs):
                x[k] = max(y[k], np.float32(0))
            start = stop + outs
        logits[b] = y[:NUM_ACTIONS]


def draw(
    logits: NDArray[np.float32], legal: NDArray[np.uint64], keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Actions drawn from the softmax over legal ones, and their logarithmic probabilities.

    Args:
        logits: ``float32[B, 64]``.
        legal: ``uint64[B]``, legal actions as masks, none of them empty.
        keys: ``uint64[B]``, a seed for each decision.
    """
    actions, log_probs = np.empty(len(logits), np.int64), np.empty(len(logits), np.float32)
    draw_all(plain(logits, np.float32), plain(legal, np.uint64), plain(keys, np.uint64), actions, log_probs)
    return actions, log_probs


@njit(cache=True)
def draw_all(logits: Any, legal: Any, keys: Any, actions: Any, log_probs: Any) -> None:
    """`draw` into ``int64[B]`` and ``float32[B]``: the largest sum of logit and Gumbel noise is a draw."""
    for b in range(logits.shape[0]):
        state, rest, chosen = keys[b], legal[b], -1
        most, best, total = -np.inf, -np.inf, 0.0
        while rest:
            k = lowest(rest)
            rest &= rest - U1
            logit = np.float64(logits[b, k])
            state += GOLDEN
            noisy = logit - np.log(-np.log(unit(mix(state))))
            if noisy > best or chosen < 0:
                best, chosen = noisy, k
            if logit > most:
                most, total = logit, total * np.exp(most - logit) + 1.0
            else:
                total += np.exp(logit - most)
        actions[b] = chosen
        log_probs[b] = np.float64(logits[b, chosen]) - most - np.log(total)
