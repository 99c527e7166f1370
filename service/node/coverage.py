"""Which partitions an answer covers: a node of a cluster says it with each, so that whoever asks all nodes has every
partition once, also while one moves.

A set of partitions travels as a number in hexadecimal, whose bit n stands for partition n: 1 kB for the most there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from aiohttp import web

from xyro.wire.errors import InputError

HEADER: Final = "X-Partitions"
PARAMETER: Final = "partitions"
"""of a request for some of a node's partitions; without it, for all of them"""
_HERE: Final = "partitions here"


def packed_partitions(numbers: Iterable[int]) -> str:
    """Partitions as a header or a parameter names them."""
    return f"{sum(1 << number for number in {*numbers}):x}"


def unpacked_partitions(text: str) -> frozenset[int]:
    """The partitions that a header or a parameter names. ValueError: it is none."""
    bits = int(text, 16)
    if bits < 0:
        raise ValueError(text)
    return frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)


def covered(headers: Mapping[str, str]) -> frozenset[int]:
    """The partitions that an answer with these headers covers; none where it does not say."""
    try:
        return unpacked_partitions(headers[HEADER])
    except (KeyError, ValueError):
        return frozenset()


def wanted_partitions(request: web.Request) -> frozenset[int] | None:
    """The partitions that a request is for; None: all that are here. InputError: nobody can tell."""
    text = request.query.get(PARAMETER)
    try:
        return None if text is None else unpacked_partitions(text)
    except ValueError:
        raise InputError(f"{PARAMETER}: a set of partitions in hexadecimal") from None


def begin_cover(request: web.Request, here: Mapping[int, object]) -> bool:
    """Note which partitions are here (Node.partitions_here) before the answer is made; False: none that is wanted."""
    request[_HERE] = chosen = _chosen(request, here)
    return bool(chosen) or PARAMETER not in request.query


def note_cover(request: web.Request, response: web.StreamResponse, here: Mapping[int, object]) -> None:
    """Say in the headers of an answer, as they are sent, what it covers.

    Nothing where a partition came or went while it was made: the answer may have that one or not."""
    if _HERE in request and (chosen := _chosen(request, here)) == request[_HERE]:
        response.headers[HEADER] = packed_partitions(chosen)


def _chosen(request: web.Request, here: Mapping[int, object]) -> dict[int, object]:
    wanted = wanted_partitions(request)
    return {number: stay for number, stay in here.items() if wanted is None or number in wanted}
