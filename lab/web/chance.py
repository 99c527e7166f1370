"""Chance that is a pure function: the same keys always draw the same number."""

from __future__ import annotations

_MASK = (1 << 64) - 1


def mix(*keys: int) -> int:
    """A 64-bit hash of some integers (the finaliser of splitmix64, once a key)."""
    value = 0x9E3779B97F4A7C15
    for key in keys:
        value = (value ^ int(key)) + 0x9E3779B97F4A7C15 & _MASK
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
        value ^= value >> 31
    return value


def unit(*keys: int) -> float:
    """A uniform number in [0, 1)."""
    return (mix(*keys) >> 11) * 2.0**-53
