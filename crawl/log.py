"""Log lines: text or JSON, on standard error, every external string made printable before it gets here or here."""

from __future__ import annotations

import json
import logging
import sys

from wire.text import printable


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), 4000)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said = {"time": self.formatTime(record), "level": record.levelname.lower(), "from": record.name}
        return json.dumps({**said, "text": printable(record.getMessage(), 4000)})


def set_up(level: str, form: str) -> None:
    """One handler on the root logger."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
