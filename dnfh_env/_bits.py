"""Sets of cards and actions as ``uint64`` masks: count, find, list, unpack.

Every kernel also runs with the JIT off, so plain arithmetic is used, but for one vector store that has a plain twin.
The population count below is recognised by LLVM and becomes one instruction. A shift count or literal that is not
``uint64`` would turn the whole expression into ``int64``, hence the named constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray


def let_numbers_wrap() -> None:
    """Do not warn in this thread when ``uint64`` arithmetic overflows with the JIT off: it is meant to."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at import
        np.seterr(over="ignore")


let_numbers_wrap()

LINE = 64
"""Bytes of a cache line."""

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

_LOW_BYTE = np.uint64(0xFF)
_NTH_IN_BYTE = np.zeros((8, 256), np.uint8)
"""[n, byte]: index of the n-th lowest set bit of a byte."""
for _byte in range(256):
    for _n, _index in enumerate(i for i in range(8) if _byte >> i & 1):
        _NTH_IN_BYTE[_n, _byte] = _index


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
    index = -1
    while mask:  # which LLVM makes one instruction of
        mask >>= U1
        index += 1
    return index


def _storing(past_caches: bool) -> Any:
    """A function for kernels that stores the 64 bits of ``mask`` as bytes of 0 and 1, lowest bit first.

    They go into eight words of ``out[row]``, ``uint64``, from ``column`` on. One vector instruction or two, which numba
    does not find by itself. ``past_caches`` sends them straight to memory, for outputs too large for any cache, where
    a store would otherwise first read what it overwrites; ``out[row, column]`` has to begin a cache line then.
    """

    def store(out: Any, row: Any, column: Any, mask: Any) -> None:  # as plain Python
        for k in range(8):
            bits = bytes(int(mask) >> (8 * k + i) & 1 for i in range(8))
            out[row, column + k] = int.from_bytes(bits, "little")

    def typed(context: Any, out: Any, row: Any, column: Any, mask: Any) -> Any:
        return types.void(out, row, column, mask), emit

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        check, wide = context.enable_boundscheck, signature.args[0]
        places = [
            cgutils.get_item_pointer(  # type: ignore[no-untyped-call]
                context, builder, wide, array, [arguments[1], column], boundscheck=check
            )
            for column in (arguments[2], builder.add(arguments[2], arguments[2].type(7)))  # the last one for its check
        ]
        bits = builder.bitcast(arguments[3], ir.VectorType(ir.IntType(1), 64))
        octets = builder.zext(bits, ir.VectorType(ir.IntType(8), 64))
        target = builder.bitcast(places[0], octets.type.as_pointer())
        stored = builder.store(octets, target, align=LINE if past_caches else 8)
        if past_caches:
            stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return store if config.DISABLE_JIT else intrinsic(typed)  # type: ignore[attr-defined]


_store_bits = _storing(past_caches=False)
_store_bits_past_caches = _storing(past_caches=True)


@njit
def spread_each(masks: Any, out: Any) -> None:
    """The bits of ``uint64[n]`` as bytes of 0 and 1 into ``uint64[n, 8]``."""
    for i in range(masks.shape[0]):
        _store_bits(out, i, 0, masks[i])


@njit
def spread(words: Any, out: Any, past_caches: Any) -> None:
    """The bits of ``uint64[n, m]`` as bytes of 0 and 1 into ``uint64[n, 8 * m]``; see `_storing`."""
    for i in range(words.shape[0]):
        for k in range(words.shape[1]):
            if past_caches:
                _store_bits_past_caches(out, i, 8 * k, words[i, k])
            else:
                _store_bits(out, i, 8 * k, words[i, k])


@njit(inline="always")
def nth_set(mask: Any, n: Any) -> Any:
    """Index of the ``n``-th lowest set bit, ``0 <= n < popcount(mask)``.

    A binary descent through bit counts to its byte, without branches, and a table for the rest.
    """
    index = U0
    left = np.int64(n)
    for width in (U32, U16, U8):
        low = popcount((mask >> index) & ((U1 << width) - U1))
        beyond = left >= low
        left -= low if beyond else 0
        index += width if beyond else U0
    return np.int64(index) + np.int64(_NTH_IN_BYTE[left, np.int64((mask >> index) & _LOW_BYTE)])


def zeros_in_lines(count: int, words: int) -> NDArray[np.uint64]:
    """Zeros, ``uint64[count, words]``, that begin with a cache line: a store across two lines takes twice as long."""
    raw = np.zeros(8 * count * words + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + 8 * count * words].view(np.uint64).reshape(count, words)


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


_MEMBERS = [[tuple(8 * k + i for i in range(8) if byte >> i & 1) for byte in range(256)] for k in range(8)]
"""[k, byte]: the set bits of a mask that has only this for its byte ``k``."""
_M0, _M1, _M2, _M3, _M4, _M5, _M6, _M7 = _MEMBERS


def indices(mask: int) -> list[int]:
    """The set bits of a mask in rising order."""
    number = mask if type(mask) is int else int(mask)
    a, b, c, d, e, f, g, h = number.to_bytes(8, "little")
    return [*_M0[a], *_M1[b], *_M2[c], *_M3[d], *_M4[e], *_M5[f], *_M6[g], *_M7[h]]
