"""`xyro lab xml --docbook`: real XML, crawled and held against libxml2's own verdicts and the server's log.

lab/web/xml_rig.py serves DocBook documents of Debian packages, their DTDs on another host among ordinary pages.
After the
crawl three things must hold: each document that libxml2 calls valid is stored as valid, each it calls invalid as
invalid; what is named as a DTD is of kind DTD; a DTD is asked for ahead of the hundreds of ordinary pages of its host
that are ready by then, for documents wait for it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import uvloop

from xyro.configs.schema import CrawlSettings, FetchSettings, PolitenessSettings, Settings
from xyro.lab.child import running
from xyro.lab.speed.crawl_speed import crawling
from xyro.lab.speed.measures import say
from xyro.lab.web.xml_rig import DOCUMENTS, GRAMMAR_HOST, GRAMMARS, build, cache, fetch, truth
from xyro.plugins import extensions
from xyro.service.node.stopped import open_stopped
from xyro.wire.urls import canonical

DELAY = 0.05
"""seconds between reads of a host: the DTDs' host is busy for as long as the documents are read"""
TENTH = 10
"""ordinary pages that were ready when a DTD was asked for, at least, for each that came before it: some do while the
document is loaded and its need reaches the disk"""
VERDICTS = {"valid": "valid", "invalid": "invalid"}
"""libxml2's verdict -> ours; of what it cannot read whole anything but `valid` is right"""


class GrammarOrder(NamedTuple):
    """One DTD in the server's log."""

    path: str
    before: int
    """ordinary pages of its host that were served between the first document that names it and it"""
    ready: int
    """ordinary pages of its host, known by then, that were served after it"""


@dataclass(frozen=True, slots=True)
class PackagesOutcome:
    """The result of a crawl of the rig."""

    verdicts: Counter[tuple[str, str]]
    """(libxml2's, ours) of each document that names a DTD"""
    wrong: list[str]
    kinds: Counter[str]
    """of the URLs that documents name as DTDs"""
    ahead: list[GrammarOrder]

    @property
    def holds(self) -> bool:
        return (
            not self.wrong
            and set(self.kinds) == {"DTD"}
            and all(grammar.before * TENTH <= grammar.ready for grammar in self.ahead)
        )


def docbook(
    pages: int = 400, packages: Sequence[str] = DOCUMENTS, data: Path | None = None, unpacked: Path | None = None
) -> bool:
    """Crawl the rig and print the result; return whether all holds. MachineError: its packages cannot be had.

    data: directory of the crawl, to look around in; a temporary one by default. unpacked: see xml_rig.cache.
    """
    unpacked = unpacked or cache()
    fetch(dict.fromkeys((*GRAMMARS, *packages)), unpacked)
    with tempfile.TemporaryDirectory(prefix="xyro-rig-") as directory:
        log = Path(directory) / "access.log"
        with running("xyro.lab.web.xml_rig", data=unpacked, packages=",".join(packages), pages=pages, log=log) as web:
            uvloop.run(_crawl(data or Path(directory) / "data", canonical(web.entry)))
        site = build(unpacked, web.port, pages, packages)
        outcome = compare(data or Path(directory) / "data", truth(site), log)
    _tell(outcome)
    return outcome.holds


async def _crawl(directory: Path, seed: str) -> None:
    settings = Settings(
        crawl=CrawlSettings(scope="any"),
        fetch=FetchSettings(only_net=("127.0.2.0/24",)),
        politeness=PolitenessSettings(delay=DELAY),
    )
    async with crawling(directory, [seed], settings) as single:
        await single.finished()


def compare(directory: Path, true: Mapping[str, str], log: Path) -> PackagesOutcome:
    """Hold a finished crawl against the truth and the log."""
    with open_stopped(directory, extensions) as crawl, crawl.views() as views:
        stored = {row["url"]: row for row in views.documents()}
        kinds = {row["url"]: str(row["kind"]) for row in views.pages()}
    verdicts: Counter[tuple[str, str]] = Counter()
    wrong = []
    for url, verdict in true.items():
        ours = str(stored[url]["verdict"]) if url in stored else "not stored"
        verdicts[verdict, ours] += 1
        if ours != VERDICTS[verdict] if verdict in VERDICTS else ours == "valid":
            wrong.append(f"{url}: libxml2 says {verdict}, we say {ours}")
    named = {url: str(stored[url]["dtd"]) for url in true if url in stored and stored[url]["dtd"]}
    read = (kinds.get(dtd, "None") for dtd in set(named.values()))
    return PackagesOutcome(verdicts, wrong, Counter(kind for kind in read if kind != "None"), _ahead(log, named))


def _ahead(log: Path, named: Mapping[str, str]) -> list[GrammarOrder]:
    """Each DTD that was served, among the ordinary pages of its host."""
    served = [(host, path) for host, path, status in _entries(log) if status == 200]
    pages = [index for index, (host, path) in enumerate(served) if host == GRAMMAR_HOST and path.startswith("/page/")]
    needs = {_place(url): _place(dtd) for url, dtd in named.items()}
    asked: dict[tuple[str, str], int] = {}
    found = []
    for position, place in enumerate(served):
        if place in needs:
            asked.setdefault(needs[place], position)
        if place in asked and place[0] == GRAMMAR_HOST:
            before = sum(asked[place] < page < position for page in pages)
            found.append(GrammarOrder(place[1], before, sum(page > position for page in pages)))
    return found


def _place(url: str) -> tuple[str, str]:
    """Host without its port, and path."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.path


def _entries(log: Path) -> list[tuple[str, str, int]]:
    rows = (line.rstrip("\n").split("\t") for line in log.read_text().splitlines())
    return [(row[1], row[9], int(row[3])) for row in rows]


def _tell(outcome: PackagesOutcome) -> None:
    say(f"{sum(outcome.verdicts.values())} documents that name a DTD; libxml2's verdict and ours:")
    for (theirs, ours), count in sorted(outcome.verdicts.items()):
        say(f"  {theirs:8} {ours:14} {count:5}")
    for line in outcome.wrong[:10]:
        say(f"  wrong: {line}")
    say(f"what they name as DTD is of kind {', '.join(f'{kind} ({n})' for kind, n in outcome.kinds.items())}")
    for grammar in outcome.ahead:
        say(
            f"  {grammar.path}: {grammar.before} ordinary pages of its host before it, "
            f"{grammar.ready} ready ones after it"
        )
    say("all of it holds" if outcome.holds else "NOT all of it holds")
