"""Sizes as people write them: 500 MB, 1.5 GB, 200 GiB, or plain bytes."""

from __future__ import annotations

import re

from xyro.wire.errors import InputError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_FORM = re.compile(r"(\d{1,16}(?:\.\d{1,9})?)\s*([KMGT]?I?B)?", re.ASCII)


def size(text: str, name: str) -> int:
    """Bytes of a size. InputError names it."""
    found = _FORM.fullmatch(text.strip().upper())
    if found is None or (unit := _UNITS.get(found[2] or "")) is None:
        raise InputError(f"{name}: expected a size such as 500 MB, 200 GB or a number of bytes, got {text!a:.60}")
    return int(float(found[1]) * unit)


def sized(count: float) -> str:
    """Write a number of bytes for people, in the unit that leaves up to three digits before the point."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
