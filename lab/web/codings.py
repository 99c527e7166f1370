"""Content codings of the computed web: what a host prefers of br, gzip and zstd, and what a client takes."""

from __future__ import annotations

import zlib
from functools import lru_cache
from itertools import accumulate

import brotli
from backports import zstd

from xyro.lab.web.chance import unit

PREFERRED = {"br": 0.45, "gzip": 0.4, "zstd": 0.12, "": 0.03}
"""coding that a host prefers -> share of the hosts; "": none"""
LEAST = 512
"""bytes below which nothing is coded"""
_CODING = 801
"""key that keeps the draws of different purposes apart"""


def preferred(seed: int, host: int) -> str:
    """The coding that a host uses if it may."""
    drawn = unit(seed, host, _CODING)
    return next(name for name, end in zip(PREFERRED, accumulate(PREFERRED.values()), strict=True) if drawn < end)


@lru_cache(maxsize=1024)
def chosen(wish: str, accepted: str) -> str:
    """The coding for a client that sends this Accept-Encoding: the one that the host wishes, else gzip, else none."""
    accepts = {
        name.strip()
        for name, _, quality in (part.partition(";") for part in accepted.lower().split(","))
        if quality.replace(" ", "") not in ("q=0", "q=0.0")
    }
    return next((name for name in (wish, "gzip") if name and name in accepts), "") if wish else ""


def coded(coding: str, body: bytes) -> bytes:
    """`body` in a coding, at the levels at which busy servers use it."""
    match coding:
        case "br":
            return bytes(brotli.compress(body, quality=4))
        case "gzip":
            packer = zlib.compressobj(5, zlib.DEFLATED, 31)
            return packer.compress(body) + packer.flush()
        case "zstd":
            return bytes(zstd.compress(body, 3))
    return body
