"""Computes `xyro xml stats`: the statistics of P1 section 7 on the XML that a crawl found.

XML against HTML in number, size and change rate; sizes, tags and depth of documents; how many documents a DTD has, and
how deep DTDs nest; how much changes from one version to the next. One scan of Refresh-Data and one of the versions;
memory does not grow with the pages (distributions are histograms, DTDs beyond MOST_DTDS are counted together).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from xyro.metadata import rows
from xyro.metadata.documents import DAY, VersionRow, unpack_version
from xyro.service.views.views import View, Views, verdict_name
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Kind
from xyro.wire.text import figure

MOST_DTDS = 100_000
"""grammars that are told apart"""
DEEPEST = 64
"""nesting of DTDs that is followed: a document is read with at most so many parts"""
KINDS = (Kind.HTML, Kind.XML, Kind.DTD, Kind.OTHER)
SPREADS = ("size", "elements", "tags", "depth", "parts")
PER_OCTAVE = 4
"""buckets of a histogram between a number and its double: quantiles are exact to 10 %"""


@dataclass(slots=True)
class Distribution:
    """A distribution of numbers >= 0 in bounded memory: exact count, mean and ends, quantiles by buckets."""

    count: int = 0
    total: float = 0.0
    lowest: float = math.inf
    highest: float = 0.0
    zeros: int = 0
    buckets: dict[int, int] = field(default_factory=Counter)
    """by floor(PER_OCTAVE x log2 of the number)"""

    def add(self, number: float) -> None:
        self.count += 1
        self.total += number
        self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
        if number > 0:
            self.buckets[math.floor(PER_OCTAVE * math.log2(number))] += 1
        else:
            self.zeros += 1

    def merge(self, other: Distribution) -> None:
        """Add all numbers of another one."""
        self.count += other.count
        self.total += other.total
        self.zeros += other.zeros
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.buckets = _sum(self.buckets, other.buckets)

    def quantile(self, share: float) -> float:
        """The middle of the bucket where this share of the numbers is reached, within the ends."""
        reached = self.zeros
        if reached >= share * self.count:
            return 0.0
        for bucket in sorted(self.buckets):
            reached += self.buckets[bucket]
            if reached >= share * self.count:
                return min(max(2 ** ((bucket + 0.5) / PER_OCTAVE), self.lowest), self.highest)
        return self.highest

    def fields(self) -> dict[str, Any]:
        """`histogram`: [lower end, count] of each octave; zeros stand at 0."""
        if not self.count:
            return {"count": 0, "mean": None, "least": None, "median": None, "p90": None, "most": None, "histogram": []}
        octaves = Counter({0.0: self.zeros} if self.zeros else {})
        for bucket, count in self.buckets.items():
            octaves[2.0 ** (bucket // PER_OCTAVE)] += count
        numbers = {"mean": self.total / self.count, "least": self.lowest, "median": self.quantile(0.5)}
        numbers |= {"p90": self.quantile(0.9), "most": self.highest}
        return {
            "count": self.count,
            **{name: float(f"{number:.6g}") for name, number in numbers.items()},
            "histogram": [[end, octaves[end]] for end in sorted(octaves)],
        }


@dataclass(slots=True)
class _Pages:
    """Pages of one kind that were read."""

    pages: int = 0
    reads: int = 0
    changes: int = 0
    size: Distribution = field(default_factory=Distribution)
    change_rate: Distribution = field(default_factory=Distribution)

    def merge(self, other: _Pages) -> None:
        self.pages += other.pages
        self.reads += other.reads
        self.changes += other.changes
        self.size.merge(other.size)
        self.change_rate.merge(other.change_rate)

    def fields(self) -> dict[str, Any]:
        again = self.reads - self.pages
        return {
            "pages": self.pages,
            "size": self.size.fields(),
            "change_rate": self.change_rate.fields(),
            "changed_reads": round(self.changes / again, 6) if again else None,
        }


@dataclass(slots=True)
class _Documents:
    """The repository."""

    count: dict[str, int] = field(default_factory=Counter)
    verdicts: dict[str, int] = field(default_factory=Counter)
    formats: dict[str, int] = field(default_factory=Counter)
    spreads: dict[str, Distribution] = field(default_factory=lambda: {name: Distribution() for name in SPREADS})
    declared: Distribution = field(default_factory=Distribution)
    users: dict[str, int] = field(default_factory=Counter)
    further: int = 0
    """uses of grammars beyond MOST_DTDS, of a node"""
    parts: dict[str, set[str]] = field(default_factory=dict)
    """by URL of a stored DTD: the parts it was read with"""
    changed: Distribution = field(default_factory=Distribution)
    share: Distribution = field(default_factory=Distribution)
    days: Distribution = field(default_factory=Distribution)
    versions: int = 0

    def merge(self, other: _Documents) -> None:
        for name in ("count", "verdicts", "formats", "users"):
            setattr(self, name, _sum(getattr(self, name), getattr(other, name)))
        for name in ("declared", "changed", "share", "days"):
            getattr(self, name).merge(getattr(other, name))
        for name, spread in self.spreads.items():
            spread.merge(other.spreads[name])
        self.further += other.further
        self.parts |= other.parts
        self.versions += other.versions

    def follow(self, before: VersionRow, row: VersionRow) -> None:
        """`row` is the next version after `before`."""
        self.days.add(max(0.0, row.read_at - before.read_at) / DAY)
        if row.changed >= 0:
            self.changed.add(row.changed)
            self.share.add(row.changed / max(before.size, row.size, 1))

    def latest(self, url: str, row: VersionRow) -> None:
        self.count[row.kind.name] += 1
        if row.kind is Kind.DTD:
            if not row.problems:  # else it is no DTD, or was not judged alone: a module, or parts were not at hand
                self.declared.add(row.tags)
            if len(self.parts) < MOST_DTDS:
                self.parts[url] = set(row.parts)
            return
        self.verdicts[verdict_name(row.verdict)] += 1
        self.formats[row.format or "xml"] += 1
        for name, spread in self.spreads.items():
            spread.add(len(row.parts) if name == "parts" else getattr(row, name))
        for grammar in row.grammars:
            if grammar in self.users or len(self.users) < MOST_DTDS:
                self.users[grammar] += 1
            else:
                self.further += 1


@dataclass(slots=True)
class _Found:
    """The pages of a crawl, or of one node's part of it."""

    kinds: dict[str, _Pages] = field(default_factory=lambda: {kind.name: _Pages() for kind in KINDS})
    documents: _Documents = field(default_factory=_Documents)


def _sum(first: Mapping[Any, int], second: Mapping[Any, int]) -> Counter[Any]:
    """The sums of two counts of things."""
    return Counter(first) + Counter(second)


def stats(views: Views) -> dict[str, Any]:
    """The object that `xyro xml stats --json` prints."""
    return _report(_scanned(views))


def stats_part(views: Views) -> Any:
    """One node's part of the statistics, as JSON."""
    return msgspec.to_builtins(_scanned(views))


def merged_stats(parts: Iterable[Any]) -> dict[str, Any]:
    """The object of `stats` of a whole crawl out of the parts of its nodes."""
    whole = _Found()
    for found in (msgspec.convert(part, _Found, strict=False) for part in parts if part is not None):
        whole.documents.merge(found.documents)
        for name, pages in whole.kinds.items():
            pages.merge(found.kinds[name])
    return _report(whole)


def _scanned(views: Views) -> _Found:
    found = _Found()
    for view in views.views:
        _scan_pages(view, found.kinds)
        _scan_documents(view, found.documents)
    return found


def _report(found: _Found) -> dict[str, Any]:
    kinds, documents = found.kinds, found.documents
    html, xml = kinds["HTML"].pages, kinds["XML"].pages
    users = Distribution()
    for count in documents.users.values():
        users.add(count)
    return {
        "xml_to_html": round(xml / html, 6) if html else None,
        "pages": {kind: pages.fields() for kind, pages in kinds.items()},
        "documents": {
            "count": documents.count.get("XML", 0),
            "validity": dict(_by_count(documents.verdicts)),
            "formats": dict(_by_count(documents.formats)),
            **{name: spread.fields() for name, spread in documents.spreads.items()},
        },
        "dtds": {
            "count": documents.count.get("DTD", 0),
            "declared": documents.declared.fields(),
            "documents_per_grammar": users.fields(),
            "most_used": _by_count(documents.users)[:20],
            "further_uses": documents.further,
            "nesting": {str(deep): count for deep, count in sorted(Counter(nesting(documents.parts).values()).items())},
        },
        "versions": {
            "count": documents.versions,
            "changed_bytes": documents.changed.fields(),
            "changed_share": documents.share.fields(),
            "days_between": documents.days.fields(),
        },
    }


def _by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Names and counts, the largest first, in an order that does not depend on who was asked first."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _scan_pages(view: View, kinds: Mapping[str, _Pages]) -> None:
    for _, value in view.store.scan(rows.REFRESH.prefix):
        row = rows.unpack_refresh(value)
        pages = kinds.get(row.kind.name)
        if pages is None or not row.signature:
            continue
        pages.pages += 1
        pages.reads += row.reads
        pages.changes += row.changes
        pages.size.add(row.size)
        if row.reads > 1:
            pages.change_rate.add(row.rate)


def _scan_documents(view: View, documents: _Documents) -> None:
    """Versions come by page and in order: the last of a page is its latest."""
    last: tuple[LocalPage, VersionRow] | None = None
    for page, row in _versions(view):
        documents.versions += 1
        if last is not None and last[0] == page:
            documents.follow(last[1], row)
        elif last is not None:
            documents.latest(view.url(last[0]), last[1])
        last = page, row
    if last is not None:
        documents.latest(view.url(last[0]), last[1])


def _versions(view: View) -> Iterator[tuple[LocalPage, VersionRow]]:
    for key, value in view.store.scan(rows.VERSIONS.prefix):
        yield rows.VERSIONS.split(key)[0], unpack_version(value)


def nesting(parts: Mapping[str, set[str]]) -> dict[str, int]:
    """Compute how deep each DTD nests: 1 without parts, else 1 + its deepest part. parts[url]: its parts at any depth.

    What is no DTD of its own here counts as one without parts. Parts that are parts of each other do not count.
    """
    inner = {
        url: [part for part in own if part != url and url not in parts.get(part, ())] for url, own in parts.items()
    }
    depth = dict.fromkeys(parts, 1)
    for _ in range(DEEPEST):
        deeper = {url: 1 + max((depth.get(part, 1) for part in own), default=0) for url, own in inner.items()}
        if deeper == depth:
            break
        depth = deeper
    return depth


def stats_text(found: Mapping[str, Any]) -> str:
    """The statistics for people."""
    pages, documents, dtds, versions = (found[name] for name in ("pages", "documents", "dtds", "versions"))
    lines = [f"{'':26}{'count':>10}  {'mean':>9}  {'median':>9}  {'p90':>9}  {'most':>9}"]
    for kind, fields in pages.items():
        lines.append(_line(f"{kind} pages, bytes", fields["size"]))
    lines += [_line(f"{kind} changes a day", pages[kind]["change_rate"]) for kind in ("HTML", "XML")]
    lines += [_line(f"XML {name}", documents[name]) for name in ("size", "elements", "tags", "depth", "parts")]
    lines.append(_line("documents of a grammar", dtds["documents_per_grammar"]))
    lines.append(_line("elements a DTD declares", dtds["declared"]))
    lines.append(_line("bytes a version changes", versions["changed_bytes"]))
    lines.append(_line("share a version changes", versions["changed_share"]))
    lines.append(_line("days between versions", versions["days_between"]))
    ratio = "-" if found["xml_to_html"] is None else f"{found['xml_to_html']:.4g}"
    lines.append(f"XML pages to an HTML page: {ratio}")
    for name, counts in (("validity", documents["validity"]), ("formats", documents["formats"])):
        lines.append(f"{name}: " + (", ".join(f"{key} {count:,}" for key, count in counts.items()) or "none"))
    lines.append(
        "DTDs by nesting: " + (", ".join(f"{key}: {count:,}" for key, count in dtds["nesting"].items()) or "none")
    )
    return "\n".join(lines)


def _line(name: str, spread: Mapping[str, Any]) -> str:
    numbers = (spread[which] for which in ("mean", "median", "p90", "most"))
    shown = "  ".join(f"{'-' if number is None else figure(number, 4):>9}" for number in numbers)
    return f"{name:26}{spread['count']:10,}  {shown}"
