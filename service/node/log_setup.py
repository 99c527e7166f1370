"""Log lines: text or JSON, on standard error, one line an event; strangers' strings are made printable here."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from xyro.wire.text import printable

LONGEST = 4000


def set_up(level: str, form: str) -> None:
    """One handler on the root logger."""
    handler = _Standard()
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class _Standard(logging.StreamHandler[TextIO]):
    """Writes to what sys.stderr is at the moment: under a live line, lines go above it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = f"{_time(record)} {record.levelname.lower()} {printable(record.getMessage(), LONGEST)}"
        return "\n  ".join([text, *(printable(line, LONGEST) for line in _trace(record))])


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": _time(record), "level": record.levelname.lower(), "from": record.name}
        fields["text"] = printable(record.getMessage(), LONGEST)
        if trace := _trace(record):
            fields["trace"] = "\n".join(trace)
        return json.dumps(fields)


def _time(record: logging.LogRecord) -> str:
    """RFC 3339, UTC."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _trace(record: logging.LogRecord) -> list[str]:
    return logging.Formatter().formatException(record.exc_info).splitlines() if record.exc_info else []
