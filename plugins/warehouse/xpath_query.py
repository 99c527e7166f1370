"""Evaluates an XPath over documents, one after the other, in a process that may die of each (query_worker.py)."""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

from xyro.plugins.warehouse.query_worker import QueryWorker
from xyro.wire.errors import InputError, MachineError

SECONDS = 2.0
"""CPU that one document may take; an ordinary expression takes some milliseconds of 20 kB"""
DEATHS = 10
"""documents that may take more before the query ends: each costs a new process"""
MENDS = {"Undefined namespace prefix": "Undefined namespace prefix; declare it with --namespace PREFIX=URI"}
"""what libxml2 says of an expression -> what to do"""
LONGEST = 10_000
"""characters of an expression"""


class XPathQuery:
    """One expression. `skipped`: why documents were left out -> how many."""

    def __init__(self, xpath: str, namespaces: Mapping[str, str], seconds: float = SECONDS) -> None:
        if len(xpath) > LONGEST:
            raise InputError(f"XPATH: longer than {LONGEST:,} characters; write a shorter one")
        self._job = {"job": "query", "xpath": xpath, "namespaces": dict(namespaces)}
        self._seconds = seconds
        self.documents = 0
        self.skipped: Counter[str] = Counter()

    def matches(self, documents: Iterable[dict[str, Any]]) -> Generator[dict[str, Any], None, None]:
        """A row a match, in the documents' order. InputError: the expression is none, or too costly everywhere."""
        with QueryWorker(self._job, self._seconds) as worker:
            for document in documents:
                yield from self._matches(document, worker)
                if worker.died >= DEATHS:
                    raise InputError(
                        f"XPATH: {DEATHS} documents took more than {self._seconds:g} s of CPU or too much memory each: "
                        "write a cheaper one, or allow more with --seconds"
                    )

    def _matches(self, document: dict[str, Any], worker: QueryWorker) -> Iterator[dict[str, Any]]:
        self.documents += 1
        body = _unpacked(document)
        answer = worker.ask([body], charset=document["charset"])
        if "error" in answer:
            self.skipped[MENDS.get(answer["error"], answer["error"])] += 1
            return
        if answer["found"] > len(answer["matches"]):
            self.skipped[f"only the first {len(answer['matches']):,} matches of it are told"] += 1
        row = {name: document[name] for name in ("id", "url", "version", "read_at", "importance", "stale")}
        for match in answer["matches"]:
            yield {**row, **match}


def _unpacked(document: dict[str, Any]) -> bytes:
    inflate = zlib.decompressobj()
    try:
        return inflate.decompress(base64.b64decode(document["packed"]), document["size"] + 1)
    except (ValueError, zlib.error) as error:
        raise MachineError(f"damaged store: {document['url']}: {error}: run `xyro audit`") from None


def namespaces_of(declarations: Iterable[str]) -> dict[str, str]:
    """--namespace p=URI, as often as wanted. InputError."""
    found: dict[str, str] = {}
    for declaration in declarations:
        prefix, _, uri = declaration.partition("=")
        if not prefix or not uri:
            raise InputError(f"--namespace {declaration}: write PREFIX=URI, such as db=http://docbook.org/ns/docbook")
        found[prefix] = uri
    return found


def root_of(tag: str, namespaces: Mapping[str, str]) -> str:
    """--root: a name, {namespace}name, or prefix:name with a prefix of --namespace."""
    prefix, colon, name = tag.partition(":")
    if not colon or tag.startswith("{"):
        return tag
    if prefix not in namespaces:
        raise InputError(f"--root {tag}: the prefix {prefix} is not declared; add --namespace {prefix}=URI")
    return f"{{{namespaces[prefix]}}}{name}"
