"""The latest text of each page as a file in a folder (`xyro export texts --to FOLDER`), brought up to date by each run.

FOLDER/_pages.jsonl lists the files: a line of JSON for each page, with what is known of it now. A page's file is
written when its text, its title or another field that the page tells is another than in the list, or when the file is
not there. A page that is gone keeps its file, unless it is to be deleted, and the list says so.

The list is replaced when all files are written: a run that was killed is repeated.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from xyro.contents_index import unpacked_text
from xyro.plugins.contents.page_paths import page_path
from xyro.plugins.contents.page_standing import gone_reason
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import PageId
from xyro.wire.text import stamp

if TYPE_CHECKING:
    from xyro.contents_index import TextRow

LIST = "_pages.jsonl"
"""no host's folder begins like this (page_paths.py)"""
SUFFIXES = {"markdown": ".md", "text": ".txt"}
FROM_PAGE = ("title", "language", "published", "modified", "refused")
"""fields that a page, or its host, tells: where one changes, the file is written"""
NOT_IN_FILE = ("file", "checked_at", "digest", "gone")
"""fields of the list that a file does not begin with"""
_RAW = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
"""what JSON may have in a string as it is, and YAML may not, or reads as the end of a line"""
Row = Mapping[str, Any]


class LatestTexts(Protocol):
    """Finds the latest text of a page: in one directory, or in a cluster."""

    def latest(self, page: PageId) -> tuple[TextRow, bytes] | None:
        """The latest text of a page, and how it is packed; None where none is kept."""


@dataclass(slots=True)
class FolderReport:
    """The work of one run, in pages."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    gone: list[dict[str, Any]] = field(default_factory=list)
    """lines of the list of those that this run found to be gone"""


class TextFolder:
    """A folder, as the last run left it. InputError: it holds other files. `sync` brings it up to date."""

    def __init__(self, folder: Path, form: str) -> None:
        """form: one of SUFFIXES."""
        self._folder, self._suffix, self._form = folder, SUFFIXES[form], form
        self._list = folder / LIST
        self._lines: dict[str, str] = {}
        """by URL"""
        try:
            self._open()
        except OSError as error:
            raise self._failure(error) from error

    def _open(self) -> None:
        if not self._list.exists():
            if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
                raise InputError(f"--to {self._folder}: has other files in it; name a new or an empty folder")
            self._folder.mkdir(parents=True, exist_ok=True)
            self._list.touch()
        with self._list.open(encoding="utf-8") as lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                    url, file = entry["url"], entry["file"]
                except (ValueError, KeyError, TypeError):
                    raise InputError(f"{self._list}: not as xyro wrote it; name another folder") from None
                if not file.endswith(self._suffix):
                    raise InputError(f"--to {self._folder}: has files of another form than {self._form}; name another")
                self._lines[url] = line

    def sync(
        self, view: LatestTexts, rows: Iterable[Row], since: float = 0.0, least: float = 0.0, delete: bool = False
    ) -> FolderReport:
        """Write what has changed. rows: of `export pages`; since, least: write only texts that were read first at that
        time or later, of pages of at least this importance; delete: files of pages that are gone."""
        report = FolderReport()
        fresh = self._list.with_name(f".{LIST}.new")
        try:
            with fresh.open("w", encoding="utf-8") as file:
                for row in rows:
                    line = self._lines.pop(row["url"], "")
                    entry = self._entry(view, row, json.loads(line) if line else None, report, since, least, delete)
                    file.write(_json(entry) + "\n" if entry is not None else line)
                file.writelines(self._lines.values())  # of pages that another crawl wrote here
            fresh.replace(self._list)
        except OSError as error:
            raise self._failure(error) from error
        finally:
            fresh.unlink(missing_ok=True)
        return report

    def _entry(
        self,
        view: LatestTexts,
        row: Row,
        before: Row | None,
        report: FolderReport,
        since: float,
        least: float,
        delete: bool,
    ) -> dict[str, Any] | None:
        """Bring a page's file up to date; its line in the list, None where that stays as it is."""
        found = view.latest(PageId(row["id"]))
        reason = gone_reason(row["state"] == "dead", row["error"] or "", row["http_status"] or 0)
        if found is None or reason:
            return self._gone(before, reason or "dropped", report, delete) if before is not None else None
        version, packed = found
        if version.time < since or row["importance"] < least:
            return None
        entry = self._described(row, version)
        path = self._folder / entry["file"]
        fields = ("digest", *FROM_PAGE)
        if (
            before is not None
            and not before.get("gone")
            and path.exists()
            and all(before.get(k) == entry[k] for k in fields)
        ):
            report.unchanged += 1
            return entry
        if before is None:
            report.new += 1
        else:
            report.changed += 1
        self._write(path, self._content(entry, unpacked_text(packed)))
        return entry

    def _described(self, row: Row, version: TextRow) -> dict[str, Any]:
        return {
            "file": page_path(row["url"], self._suffix),
            "url": row["url"],
            "title": version.title or None,
            "language": version.language or None,
            "published": version.published or None,
            "modified": version.modified or None,
            "read_at": stamp(version.time),
            "checked_at": row["last_read"],
            "version": version.number,
            "importance": row["importance"],
            "stale": row["stale"],
            "refused": row["refused"],
            "digest": version.digest.hex(),
            "gone": None,
        }

    def _gone(self, before: Row, reason: str, report: FolderReport, delete: bool) -> dict[str, Any] | None:
        entry = {**before, "gone": reason}
        if not before.get("gone"):
            report.gone.append(entry)
        if delete:
            path = self._folder / page_path(entry["url"], self._suffix)
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # other pages are in the folder
                for parent in list(path.parents)[: len(path.relative_to(self._folder).parts) - 1]:
                    parent.rmdir()
        return entry

    def _content(self, entry: Row, text: Mapping[str, str]) -> str:
        body = text[self._form].strip("\n") + "\n"
        if self._form != "markdown":
            return body
        names = [name for name in entry if name not in NOT_IN_FILE and entry[name] is not None]
        return "".join(("---\n", *(f"{name}: {_yaml(entry[name])}\n" for name in names), "---\n\n", body))

    def _write(self, path: Path, content: str) -> None:
        """The whole file, or none."""
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}")
        fresh.write_bytes(content.encode("utf-8", "replace"))
        fresh.replace(path)

    def _failure(self, error: OSError) -> MachineError:
        name = error.filename or self._folder
        return MachineError(f"{name}: {error.strerror}: free or mend the disk, or name another folder with --to")


def _json(value: object) -> str:
    r"""JSON on one line, whose strings YAML reads as the same."""
    text = json.dumps(value, ensure_ascii=False)
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _yaml(value: object) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") if isinstance(value, float) else _json(value)  # 4e-06 were a string
