"""Log lines: text or JSON, on standard error, one line an event; strangers' strings are made printable here."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from xyro.wire.text import LOG_FIELDS, printable

if TYPE_CHECKING:
    from xyro.wire.messages import PageReport

LONGEST = 4000


def set_up(level: str, form: str) -> None:
    """One handler on the root logger."""
    handler = _Standard()
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def is_json() -> bool:
    """Tell whether the log of this process is one of JSON lines."""
    return any(isinstance(handler.formatter, _Json) for handler in logging.getLogger().handlers)


def write(text: str, level: int, fields: Mapping[str, object]) -> None:
    """Write a line of the log whatever its own level is."""
    log = logging.getLogger("xyro")
    log.handle(log.makeRecord(log.name, level, "", 0, "%s", (text,), None, extra={LOG_FIELDS: fields}))


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
        fields: dict[str, object] = {"time": _time(record), "level": record.levelname.lower(), "from": record.name}
        fields["text"] = printable(record.getMessage(), LONGEST)
        for name, value in getattr(record, LOG_FIELDS, {}).items():
            fields[name] = printable(value, LONGEST) if isinstance(value, str) else value
        if trace := _trace(record):
            fields["trace"] = "\n".join(trace)
        return json.dumps(fields)


def log_reads(log: logging.Logger) -> Callable[[PageReport, object], None]:
    """Make a function that logs each report of a page at level debug: event, host, url, class, seconds."""
    from xyro.wire.urls import authority  # and messages, which a command that only tells something does without

    def note(report: PageReport, _: object) -> None:
        seconds = round(report.ended - report.started, 3)
        outcome = report.error or str(report.status)
        fields = {"event": "read", "host": authority(report.url), "url": report.url, "class": report.error or None}
        extra = {LOG_FIELDS: {**fields, "status": report.status, "seconds": seconds}}
        log.debug("read %s: %s, %.3f s", report.url, outcome, seconds, extra=extra)

    return note


def _time(record: logging.LogRecord) -> str:
    """RFC 3339, UTC."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _trace(record: logging.LogRecord) -> list[str]:
    return logging.Formatter().formatException(record.exc_info).splitlines() if record.exc_info else []
