"""Main texts beside what people marked, and the time a page takes, by ours and by other libraries.

Pages come from directories, of one of these shapes:

NAME/source.html, NAME/expected.html   the test pages of Mozilla's Readability, which several packages carry
html/NAME.html, txt/NAME.txt           newspaper4k's tests
html/NAME.html, raw/NAME.md            domdown's
NAME.html, and a file of marks         any: it names the element of each page that is its text (gne_marks.txt)

A part of a set can be held out from whoever tunes rules on the rest: it is chosen by a hash of the page's name.
F1 is of words, as a bag; a letter of a script without spaces is a word. The time is CPU time of text and Markdown.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from xyro.charset import codec_for
from xyro.lab.speed.measures import cpu_seconds
from xyro.lab.speed.text_sets import SETS, TextSet, fetched
from xyro.text_libraries import extractor_of
from xyro.wire.errors import InputError, MachineError

EXTRACTORS = ("xyro", "resiliparse", "trafilatura")
URL = "https://example.org/articles/page.html"
_WORD = re.compile(
    r"[\u0e00-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u0e00-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)\s]*(?: \"[^\"]*\")?\)")


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """`truth`: the text that a person marked."""

    name: str
    body: bytes
    truth: str


def text(directories: Sequence[Path], worst: int, marks: Path | None, part: str) -> None:
    """Print a table, and the pages where ours is furthest behind the best. InputError: a directory has no pages."""
    if not directories:
        raise InputError("text: a directory of pages beside their texts, or --sets: `xyro lab speed text --help`")
    for directory in directories:
        found = marked_pages(directory) if marks is None else pages_by_marks(directory, marks)
        pages = [page for page in found if part in ("all", part_of(page.name))]
        if not pages:
            raise InputError(f"{directory}: no page beside its text: `xyro lab speed text --help`")
        size = statistics.mean(len(page.body) for page in pages)
        _tell(f"{directory}: {len(pages)} pages, {size / 1000:.0f} kB a page")
        _tell("                  F1  median  precision  recall  without text  ms a page")
        scores = {}
        for name in EXTRACTORS:
            if name == "xyro" or importlib.util.find_spec(name):
                scores[name] = _measured(name, pages)
        _tell_worst(pages, scores, worst)


def marked_sets(folder: Path, worst: int, sets: Sequence[TextSet] = SETS) -> None:
    """Print a table of each set, whose packages are fetched into a folder; one that cannot be had is named."""
    for each in sets:
        _tell(f"{each.label}:")
        try:
            directory = fetched(each, folder)
        except MachineError as error:
            _tell(f"  not to be had: {error}")
        else:
            text([directory], worst, each.marks, each.part)


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")


def marked_pages(directory: Path) -> Iterator[MarkedPage]:
    for source in sorted(directory.glob("*/source.html")):
        expected = source.with_name("expected.html")
        if expected.exists() and (root := LexborHTMLParser(expected.read_text(encoding="utf-8")).body):
            yield MarkedPage(source.parent.name, source.read_bytes(), root.text(separator=" "))
    for truth in sorted(directory.glob("txt/*.txt")):
        source = directory / "html" / f"{truth.stem}.html"
        if source.exists():
            yield MarkedPage(truth.stem, source.read_bytes(), truth.read_text(encoding="utf-8"))

    for truth in sorted(directory.glob("raw/*.md")):
        source = directory / "html" / f"{truth.stem}.html"
        if source.exists():
            yield MarkedPage(truth.stem, source.read_bytes(), bare(truth.read_text(encoding="utf-8")))


def pages_by_marks(directory: Path, marks: Path) -> Iterator[MarkedPage]:
    """marks: lines of a page's path, without ".html", and a CSS selector; its first element is the page's text."""
    for line in marks.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line:
            continue
        name, selector = line.split(" ", 1)
        body = (directory / f"{name}.html").read_bytes()
        tree = LexborHTMLParser(body.decode(codec_for(body, ""), "replace"))
        tree.strip_tags(["script", "style", "noscript"])
        if (element := tree.css_first(selector)) is None:
            raise InputError(f"{directory}/{name}.html: no {selector}")
        yield MarkedPage(name, body, element.text(separator=" "))


def part_of(name: str) -> str:
    """Tell by the last bit of the SHA-256 of its name whether a page is for tuning, or held out."""
    return "held" if hashlib.sha256(name.encode()).digest()[-1] & 1 else "tune"


def bare(markdown: str) -> str:
    """Markdown without its head of metadata, its images, and the addresses of its links."""
    if markdown.startswith("---\n"):
        markdown = markdown.partition("\n---\n")[2]
    return _LINK.sub(r"\1", _IMAGE.sub("", markdown))


def overlap(found: str, truth: str) -> tuple[float, float, float]:
    """(F1, precision, recall) of words, as a bag."""
    a, b = Counter(_WORD.findall(found.lower())), Counter(_WORD.findall(truth.lower()))
    both = sum((a & b).values())
    found_words, true_words = a.total(), b.total()
    return 2 * both / max(found_words + true_words, 1), both / max(found_words, 1), both / max(true_words, 1)


def _measured(name: str, pages: Sequence[MarkedPage]) -> list[float]:
    extract = extractor_of(name)
    extract(pages[0].body, "utf-8", URL)  # its library is imported
    rows, empty, seconds = [], 0, 0.0
    for page in pages:
        codec = codec_for(page.body, "")
        start = cpu_seconds()
        found = extract(page.body, codec, URL)
        seconds += cpu_seconds() - start
        empty += found is None
        rows.append(overlap(found.text if found else "", page.truth))
    f1, precision, recall = (list(column) for column in zip(*rows, strict=True))
    _tell(
        f"{name:12}  {statistics.mean(f1):6.3f}  {statistics.median(f1):6.3f}  {statistics.mean(precision):9.3f}  "
        f"{statistics.mean(recall):6.3f}  {empty:12}  {1000 * seconds / len(pages):9.2f}"
    )
    return f1


def _tell_worst(pages: Sequence[MarkedPage], scores: dict[str, list[float]], worst: int) -> None:
    behind = [(max(row) - row[0], page.name, row) for page, *row in zip(pages, *scores.values(), strict=True)]
    for _, name, row in sorted(behind, reverse=True)[:worst]:
        _tell(f"  {name[:40]:40} " + " ".join(f"{score:6.3f}" for score in row))
