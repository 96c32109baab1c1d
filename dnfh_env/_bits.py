"""Sets of cards and actions as ``uint64`` masks: count, find, list, unpack.

Every kernel also runs with the JIT off, so plain arithmetic is used throughout; the population count below is
recognised by LLVM and becomes one instruction. A shift count or literal that is not ``uint64`` would turn the
whole expression into ``int64``, hence the named constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at import; uint64 arithmetic wraps by intention
    np.seterr(over="ignore")

U0 = np.uint64(0)
U1 = np.uint64(1)
U2 = np.uint64(2)
U4 = np.uint64(4)
U8 = np.uint64(8)
U16 = np.uint64(16)
U32 = np.uint64(32)
U56 = np.uint64(56)
_PAIRS = np.uint64(0x5555555555555555)
_QUADS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)


@njit(inline="always")
def bit(index: Any) -> Any:
    """The mask with one bit, ``index`` in 0..63."""
    return U1 << np.uint64(index)


@njit(inline="always")
def popcount(mask: Any) -> Any:
    """How many bits are set, as ``int64``."""
    pairs = mask - ((mask >> U1) & _PAIRS)
    quads = (pairs & _QUADS) + ((pairs >> U2) & _QUADS)
    return np.int64((((quads + (quads >> U4)) & _NIBBLES) * _BYTES) >> U56)


@njit(inline="always")
def lowest(mask: Any) -> Any:
    """Index of the lowest set bit; 64 for an empty mask."""
    return popcount(~mask & (mask - U1))


@njit(inline="always")
def highest(mask: Any) -> Any:
    """Index of the highest set bit; -1 for an empty mask."""
    for width in (U1, U2, U4, U8, U16, U32):
        mask |= mask >> width
    return popcount(mask) - 1


@njit
def nth_set(mask: Any, n: Any) -> Any:
    """Index of the ``n``-th lowest set bit, ``0 <= n < popcount(mask)``: a binary descent through bit counts."""
    index = U0
    for width in (U32, U16, U8, U4, U2, U1):
        low = popcount((mask >> index) & ((U1 << width) - U1))
        if n >= low:
            n -= low
            index += width
    return np.int64(index)


def unpack(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """``uint64[..., n]`` as ``uint8[..., 64 * n]``, bit ``i`` of word ``w`` at ``64 * w + i``."""
    words = np.ascontiguousarray(words, dtype="<u8")
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")


def plain(array: Any, dtype: Any = None) -> Any:
    """``array`` as the kernels are compiled for, C-contiguous, aligned and writable: itself, or a copy.

    Numba compiles anew for every other kind of array, which takes seconds.
    """
    if type(array) is np.ndarray and array.flags.carray and (dtype is None or array.dtype == dtype):
        return array  # np.require takes ten times as long to find out
    return np.require(array, dtype, ["C", "A", "W"])


def indices(mask: int) -> list[int]:
    """The set bits of a mask in rising order."""
    mask = int(mask)
    return [i for i in range(64) if mask >> i & 1]
