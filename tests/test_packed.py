"""Packed observations in torch: the same bits by every way, in the memory that the batch writes to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.learned.packed import _shifted, adopt, unpack
from dnfh_env import _bits
from dnfh_env.batch import Batch

SHAPES = [(1,), (15,), (0, 15), (3, 1), (7, 28), (2, 3, 5)]


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_as_numpy_has_them(shape: tuple[int, ...]) -> None:
    words = np.random.default_rng(1).integers(0, 2**64, shape, np.uint64, endpoint=False)
    expected = _bits.unpack(words)
    found = unpack(adopt(words))
    assert found.dtype == torch.uint8 and found.shape == (*shape[:-1], 64 * shape[-1])
    assert (found.numpy() == expected).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_other_devices_shift_to_the_same_bits(shape: tuple[int, ...]) -> None:
    """On a CPU too, where `unpack` has a quicker way."""
    words = adopt(np.random.default_rng(2).integers(0, 2**64, shape, np.uint64, endpoint=False))
    assert torch.equal(_shifted(words), unpack(words))
    assert unpack(words.to("meta")).shape == unpack(words).shape


def test_one_word_in_each_row() -> None:
    """As the legal sets of a step are handed over."""
    legal = np.arange(1, 5, dtype=np.uint64)
    for words in (adopt(legal[:, None]), adopt(legal[:0, None])):
        assert torch.equal(_shifted(words), unpack(words))
        assert unpack(words.to("meta")).shape == (len(words), 64)


def test_words_in_any_order_of_memory() -> None:
    words = adopt(np.random.default_rng(3).integers(0, 2**64, (6, 4), np.uint64, endpoint=False))
    assert torch.equal(unpack(words.T), unpack(words.T.clone()))
    assert torch.equal(unpack(words[::2]), unpack(words)[::2])


def test_buffers_are_adopted_once_and_follow_each_step() -> None:
    batch = Batch(5, seed=1, obs="packed")
    seen = batch.look().obs
    assert seen is not None
    words = adopt(seen)
    assert words.data_ptr() == seen.ctypes.data
    for _ in range(30):
        batch.step([int(mask).bit_length() - 1 for mask in batch.legal()])
        assert (unpack(words).numpy() == batch.observe()).all()
