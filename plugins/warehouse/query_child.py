"""Runs in the process that query_worker.py starts: strangers' documents, and expressions that may never end.

A request is a JSON line with the lengths of the bodies that follow it; the answer is a JSON line. The first request
says what the job is. Nothing here opens a file or a connection: documents are parsed without DTD, external entities and
XInclude; an XPath has no extension functions, neither ours nor EXSLT's regular expressions. Memory is bounded, and a
timer of the kernel ends the process in the middle of whatever takes too much CPU.
"""

from __future__ import annotations

import difflib
import json
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from lxml import etree

from xyro.loader.parse import ParseLimits, XmlFault, pieces

MATCHES = 1_000
"""most matches told of one document"""
SHOWN = 4_000
"""most characters told of one match"""
LINES = 5_000
"""most lines of one difference"""
TOO_MUCH = "needs too much memory"
Job = Callable[[dict[str, Any], list[bytes]], dict[str, Any]]


def tree_of(body: bytes, charset: str, **options: bool) -> Any:
    """The tree of a body as it was read (gzip included). Internal entities are expanded, within libxml2's bounds.

    In a document that names entities which only its DTD or another file has, all entities stay references.
    """
    whole = list(pieces(body, ParseLimits()))
    try:
        return _parsed(whole, charset, resolve_entities="internal", **options)
    except etree.XMLSyntaxError:
        return _parsed(whole, charset, resolve_entities=False, **options)


def _parsed(whole: list[bytes], charset: str, **options: Any) -> Any:
    parser = etree.XMLParser(encoding=charset or None, load_dtd=False, no_network=True, **options)
    for piece in whole:
        parser.feed(piece)
    return parser.close().getroottree()


# XPath


def query(job: dict[str, Any]) -> Job:
    """The job {"xpath", "namespaces"}: of a document, its matches."""
    expression = etree.XPath(job["xpath"], namespaces=job["namespaces"] or None, regexp=False)

    def run(request: dict[str, Any], bodies: list[bytes]) -> dict[str, Any]:
        found = expression(tree_of(bodies[0], request["charset"]))
        matches = [row for match in _listed(found) if (row := _match_row(match)) is not None]
        return {"found": len(found) if isinstance(found, list) else len(matches), "matches": matches}

    return run


def _listed(found: Any) -> list[Any]:
    """Nodes, or the one value; false and the empty string are no match."""
    if isinstance(found, list):
        return found[:MATCHES]
    return [] if found is False or found == "" else [found]


def _match_row(match: Any) -> dict[str, str | None] | None:
    if isinstance(match, bool):
        return {"match": "true", "path": None}
    if isinstance(match, float):
        return {"match": f"{match:.15g}", "path": None}
    if isinstance(match, tuple):  # of the namespace axis
        return {"match": f"{match[0] or ''}={match[1]}"[:SHOWN], "path": None}
    if isinstance(match, str):
        return {"match": match[:SHOWN], "path": _place_of(match)}
    text = etree.tostring(match, encoding="unicode", with_tail=False)
    return {"match": text[:SHOWN], "path": match.getroottree().getpath(match)}


def _place_of(text: Any) -> str | None:
    """Return the path of a string that is an attribute or a text; None for a computed string."""
    parent = text.getparent() if hasattr(text, "getparent") else None
    if parent is None:
        return None
    path: str = parent.getroottree().getpath(parent)
    if text.is_attribute:
        return f"{path}/@{text.attrname}"
    return f"{path}/text()" if text.is_text else path


# Differences


def difference(job: dict[str, Any]) -> Job:
    """The job {"method": "xmldiff" | "text"}: of two documents, lines that lead from one to the other."""
    compare = _edits if job["method"] == "xmldiff" else _text_lines

    def run(request: dict[str, Any], bodies: list[bytes]) -> dict[str, Any]:
        lines: list[str] = []
        for line in compare(bodies, request["charsets"]):
            if len(lines) == LINES:
                return {"lines": lines, "cut": True}
            lines.append(line[:SHOWN])
        return {"lines": lines, "cut": False}

    return run


def _edits(bodies: list[bytes], charsets: list[str]) -> list[str]:
    from xmldiff import formatting, main

    old, new = (tree_of(body, charset, remove_blank_text=True) for body, charset in zip(bodies, charsets, strict=True))
    edits: str = main.diff_trees(old, new, formatter=formatting.DiffFormatter())
    return edits.splitlines()


def _text_lines(bodies: list[bytes], charsets: list[str]) -> Iterator[str]:
    """A unified diff; what stands between two tags is a line, however it was written."""
    old, new = (_lines(body, charset) for body, charset in zip(bodies, charsets, strict=True))
    return difflib.unified_diff(old, new, lineterm="", n=1)


def _lines(body: bytes, charset: str) -> list[str]:
    whole = b"".join(pieces(body, ParseLimits()))
    try:
        text = whole.decode(charset or "utf-8")
    except (LookupError, UnicodeError):
        text = whole.decode("latin-1")
    return re.sub(r"(>)\s*(<)", r"\1\n\2", text).splitlines()


# The process

JOBS: dict[str, Callable[[dict[str, Any]], Job]] = {"query": query, "difference": difference}


def main() -> None:
    asked = sys.stdin.buffer
    first = json.loads(asked.readline())
    resource.setrlimit(resource.RLIMIT_AS, (first["memory"], first["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    job = _started(first)
    if job is None:
        return
    for line in asked:
        request = json.loads(line)
        bodies = [asked.read(size) for size in request["sizes"]]
        _timer(first["seconds"])
        answer = _tried(lambda job=job, request=request, bodies=bodies: job(request, bodies))  # type: ignore[misc]
        _timer(0.0)
        _say(answer)


def _started(first: dict[str, Any]) -> Job | None:
    """Make the job, and say whether it can be done."""
    _timer(first["seconds"])
    made: list[Job] = []
    answer = _tried(lambda: made.append(JOBS[first["job"]](first)) or {"ready": True})  # type: ignore[func-returns-value]
    _timer(0.0)
    _say(answer)
    return made[0] if made else None


def _tried(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer, or {"error": ...}."""
    try:
        return work()
    except MemoryError:
        return {"error": TOO_MUCH}
    except XmlFault as fault:
        return {"error": str(fault)}
    except (etree.LxmlError, ValueError, LookupError, RecursionError, TypeError, AttributeError, OSError) as error:
        message = str(error) or type(error).__name__
        no_memory = message == "unknown error"  # so lxml names it where libxml2 got no memory
        return {"error": TOO_MUCH if no_memory else message}


def _timer(seconds: float) -> None:
    """SIGPROF ends the process after so many seconds of CPU, whatever it is doing; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
