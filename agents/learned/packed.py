"""Packed observations in torch: bits travel to the device, and become features there."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray


def adopt(words: NDArray[np.uint64]) -> torch.Tensor:
    """Words as ``int64`` of the same shape: the same memory, since torch hardly knows unsigned ones."""
    return torch.from_numpy(words.view(np.int64))


def unpack(words: torch.Tensor) -> torch.Tensor:
    """The bits of ``int64[..., n]`` as ``uint8[..., 64 * n]`` of 0 and 1 on the same device, lowest bit first.

    ::

        batch = Batch(4096, obs="packed")
        words = adopt(batch.look().obs)  # once: later steps write into the same memory
        batch.step(actions)
        features = unpack(words.to("cuda")).float()  # an eighth of the bytes crosses over
    """
    words = words.contiguous()
    if words.device.type == "cpu":  # where numpy is ten times as fast
        return torch.from_numpy(np.unpackbits(words.numpy().view(np.uint8), axis=-1, bitorder="little"))
    return _shifted(words)


def _shifted(words: torch.Tensor) -> torch.Tensor:
    """`unpack` of a contiguous tensor on any device."""
    flat = words.reshape(-1).view(torch.uint8)  # by rows torch may refuse, if there is one word in each, or no row
    octets = flat.reshape(*words.shape[:-1], 8 * words.shape[-1], 1)
    places = torch.arange(8, dtype=torch.uint8, device=words.device)
    return (octets >> places & 1).flatten(-2)
