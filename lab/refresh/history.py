"""Change histories from files: a line per page, JSON, plain or gzipped.

    {"path": "docs/index.html", "events": [[1503817877, "A"], [1518654873, "M"], [1573729888, "D"]]}

Times are seconds since 1970; A: the page appeared, M: it changed (T, its type: it did, too), D: it is gone. A
page is born at its first A, whatever the file says of it earlier or in that same second; all later events are changes.
A page without an A was never there.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, cast

import msgspec

from xyro.lab.refresh.world import PageHistory
from xyro.wire.errors import InputError

LONGEST = 1 << 24
"""bytes of a line"""
LATEST = 1e11
"""seconds since 1970 (year 5138), and as long before"""
SHORTEST_DAYS, LONGEST_DAYS = 2.0, 36_525.0
"""of the span of all histories: a hundred years fit the columns' 32 bits of seconds"""


class Line(msgspec.Struct):
    path: str
    events: list[tuple[float, Literal["A", "M", "T", "D"]]]


def read(files: Sequence[Path]) -> list[PageHistory]:
    """Read all pages that were ever there. InputError, with file and line: a line that is no history."""
    found = [history for file in files for history in _of_file(file)]
    if not found:
        raise InputError(f"{', '.join(map(str, files))}: no page with an event A")
    times = [history.born for history in found] + [t for history in found for t in history.changes]
    days = (max(times) - min(times)) / 86_400.0
    if not SHORTEST_DAYS <= days <= LONGEST_DAYS:
        raise InputError(
            f"{', '.join(map(str, files))}: spans {days:.2g} days; {SHORTEST_DAYS:g} days to a hundred years are needed"
        )
    return found


def _of_file(file: Path) -> Iterator[PageHistory]:
    decoder, number = msgspec.json.Decoder(Line), 0
    try:
        with file.open("rb") as raw, _unpacked(raw) as lines:
            while text := lines.readline(LONGEST + 1):
                number += 1
                if text.strip():
                    history = _history(decoder.decode(_short(text)))
                    if history is not None:
                        yield history
    except (OSError, EOFError, zlib.error) as error:
        where = f"{file}:{number + 1}" if number else str(file)
        raise InputError(f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}:{number}: {error}") from error


def _unpacked(raw: BinaryIO) -> BinaryIO:
    packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw


def _short(text: bytes) -> bytes:
    if len(text) > LONGEST:
        raise ValueError(f"a line of more than {LONGEST:,} bytes")
    return text


def _history(line: Line) -> PageHistory | None:
    """Convert a line of the file; None: the page was never there. ValueError: a time out of all bounds."""
    for position, (time, _) in enumerate(line.events):
        if not -LATEST <= time <= LATEST:
            raise ValueError(f"a time of {time:g} - at `$.events[{position}][0]`; seconds since 1970 are expected")
    births = [time for time, kind in line.events if kind == "A"]
    if not births:
        return None
    born = min(births)
    return PageHistory(line.path, born, sorted(time for time, _ in line.events if time > born))
