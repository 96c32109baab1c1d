"""Counter-based random numbers: SplitMix64 (Steele, Lea, Flood 2014) over a key made of plain counters.

Nothing here keeps state: a deal is a function of (seed, game, deal), so that two line-ups which play the first
deal differently still get the same second one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dnfh_env._bits import U32

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_S12 = np.uint64(12)
_S27 = np.uint64(27)
_S30 = np.uint64(30)
_S31 = np.uint64(31)

FIRST_DEALER, SHUFFLE, KITTY_SHUFFLE, DECISION, SEAT, LINEUP = np.arange(1, 7, dtype=np.uint64)
"""What a stream is for; each purpose has numbers of its own."""


@njit(inline="always")
def mix(x: Any) -> Any:
    """The SplitMix64 finaliser: a bijection of ``uint64`` whose output bits look random."""
    x = (x ^ (x >> _S30)) * _MIX_A
    x = (x ^ (x >> _S27)) * _MIX_B
    return x ^ (x >> _S31)


@njit
def stream(seed: Any, game: Any, deal: Any, purpose: Any) -> Any:
    """Start of the stream for one purpose in one deal; add `GOLDEN` and `mix` for each number."""
    return mix(mix(mix(seed + GOLDEN) ^ game) + (np.uint64(deal) << U32) + purpose)


@njit(inline="always")
def below(bound: Any, number: Any) -> Any:
    """A number from 0 to ``bound - 1`` out of 64 random bits; uneven by at most ``bound`` in 2**32."""
    return np.int64(((number >> U32) * np.uint64(bound)) >> U32)


@njit(inline="always")
def unit(number: Any) -> Any:
    """A number strictly between 0 and 1 out of 64 random bits."""
    return (np.float64(number >> _S12) + 0.5) * 2.0**-52


@njit(inline="always")
def one_way(x: Any) -> Any:
    """Random bits that do not give back ``x``, since ``x`` itself is fed forward into them."""
    return mix(mix(x) ^ x)
