"""Honest sites and hostile ones as an asker meets them: an address and a path in, an answer out.

Every address of 127.0.0.0/8 is a host, its second number says of what kind:

    127.1     honest: pages in a tree, four below each; the very first leads to all other hosts
    127.2     mutes             127.3  drippers          127.4  turncoats         127.5  redirectors
    127.6     floods            127.7  relapsers         127.64+   the farm
    127.2     the zoo, too, on a port of its own

The honest pages are /p1.html ..., the first is /. Those nearest to the first ones have the links to hostile hosts: the
same pages are to be read with and without these. With traps the first host has /calendar, /shop, /list and /lost, too,
and with an endless folder /folder, which answers 404 to all names that its pages did not give; without them these five
may be there as pages that lead home.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from xyro.lab.hostile.hostile_rows import Hostile
from xyro.lab.web.places import address_of, host_at

BELOW = 4
PER_PAGE = 50
"""links to hostile hosts on one honest page"""
FARM_LINKS = 30
FLOOD_PAGES, FLOOD_LINKS = 5, 65_000
DRIP = 1_500
"""bytes a second"""
FOLDER = "/folder/"
TRAPS = ("/calendar", "/shop", "/list", "/lost", FOLDER)
DRIPS = "/drip"
DOORS = ("/calendar?month=24000", "/shop/p0.html", "/list?a=0", "/lost/x0.html", f"{FOLDER}x0.html")
"""where the traps begin"""
FOLDER_LINKS = 5
PRODUCTS, FACETS, CHOICES = 20, 6, 5
_TURNS = tuple(f"{DRIPS}{number}.html" for number in range(10))
AGAIN = "/again"
_QUICK = 2
"""pages that a relapser answers at once between two that drip"""
_STEPS = (-12, -1, 1, 12)
_KINDS = {2: "mute", 3: "dripper", 4: "turncoat", 5: "redirector", 6: "flood", 7: "relapser"}
_FARM = 64


@dataclass(frozen=True, slots=True)
class ServedPage:
    """An answer: a page of links, or a redirect."""

    links: tuple[str, ...] = ()
    location: str = ""
    found: bool = True
    body: bytes = b""
    """stands for the links, where it was made before"""


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer, for ever; or one that drips."""

    drips: bool = False


MISSING = ServedPage(found=False)


def kind_of(address: str) -> str:
    """Return what lives at an address: honest, or in which way it is hostile."""
    second = int(address.split(".")[1])
    return "farm" if second >= _FARM else _KINDS.get(second, "honest")


def traps_of(hostile: Hostile) -> tuple[str, ...]:
    """Beginnings of the paths that belong to the traps of an honest host; the doors of others lead home."""
    return (TRAPS[:-1] if hostile.traps else ()) + (TRAPS[-1:] if hostile.folder else ())


def numbered(second: int, number: int) -> str:
    """The address of a hostile host of a kind."""
    return f"127.{second + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


class HonestSites:
    """`hosts` sites with `pages` pages in all; `hostile_port`: where the others listen; `zoo`: URLs of its cases."""

    def __init__(
        self, hosts: int, pages: int, hostile: Hostile, port: int, hostile_port: int, zoo: Sequence[str] = ()
    ) -> None:
        self.hosts, self.port, self.hostile = hosts, port, hostile
        self._hostile_port, self._zoo = hostile_port, zoo
        self._sizes = [pages // hosts + (host < pages % hosts) for host in range(hosts)]
        led = list(self._hostile_entries())
        part = max(PER_PAGE, -(-len(led) // pages))
        self._led = [led[start : start + part] for start in range(0, len(led), part)]
        self._fresh = count()
        self._names = 0
        """the last name of the endless folder"""

    def url(self, host: int, path: str = "/") -> str:
        """The URL of a page."""
        return f"http://{address_of(host)}:{self.port}{path}"

    def paths(self) -> set[tuple[str, str]]:
        """Address and path of every honest page."""
        return {(address_of(host), _name(page)) for host, size in enumerate(self._sizes) for page in range(size)}

    def answer(self, address: str, path: str) -> ServedPage | Silence:
        """Answer a request."""
        host = host_at(address)
        if not 0 <= host < self.hosts:
            return MISSING
        if host == 0 and path.startswith(traps_of(self.hostile)):
            return self._in_folder(path) if path.startswith(FOLDER) else ServedPage(tuple(self._trap(path)))
        if host == 0 and (self.hostile.trapped or self.hostile.doors) and path in DOORS:
            return ServedPage(("/",))
        page = 0 if path == "/" else int(path[2:-5]) if path.startswith("/p") and path.endswith(".html") else -1
        if not 0 <= page < self._sizes[host]:
            return MISSING
        below = range(BELOW * page + 1, min(BELOW * page + BELOW + 1, self._sizes[host]))
        links = ["/", *map(_name, below)]
        if host == page == 0:
            links += [self.url(other) for other in range(1, self.hosts)]
            if self.hostile.trapped or self.hostile.doors:
                links += DOORS
        number = self.hosts * page + host
        if number < len(self._led):
            links += self._led[number]
        return ServedPage(tuple(links))

    def _hostile_entries(self) -> Iterator[str]:
        numbers = self.hostile
        kinds = (
            (2, numbers.mutes),
            (3, numbers.drippers),
            (4, numbers.turncoats),
            (5, numbers.redirectors),
            (7, numbers.relapsers),
            (_FARM, numbers.farms),
        )
        for second, number in kinds:
            for each in range(number):
                yield f"http://{numbered(second, each)}:{self._hostile_port}/"
        for each in range(numbers.floods):
            for page in range(FLOOD_PAGES):
                yield f"http://{numbered(6, each)}:{self._hostile_port}/flood{page}.html"
        yield from self._zoo

    def _trap(self, path: str) -> Iterator[str]:
        """The links of a trap's page: into itself, and home."""
        yield "/"
        if path.startswith("/calendar"):
            month = int(path.rpartition("=")[2])
            yield from (f"/calendar?month={month + step}" for step in _STEPS)
        elif path.startswith("/shop"):
            session = next(self._fresh)
            yield from (f"/shop/p{product}.html?sid={session}" for product in range(PRODUCTS))
        elif path.startswith("/list"):
            chosen = dict(part.split("=") for part in path.partition("?")[2].split("&"))
            for facet in "abcdef"[:FACETS]:
                for choice in range(CHOICES):
                    others = {key: value for key, value in chosen.items() if key != facet}
                    yield "/list?" + "&".join(f"{key}={value}" for key, value in {**others, facet: choice}.items())
        else:
            yield from (f"/lost/x{next(self._fresh) + 1}.html" for _ in range(5))

    def _in_folder(self, path: str) -> ServedPage:
        """A page whose name was given before gives new ones."""
        number = path.removeprefix(f"{FOLDER}x").removesuffix(".html")
        if not number.isdecimal() or int(number) > self._names or path != f"{FOLDER}x{int(number)}.html":
            return MISSING
        first = self._names + 1
        self._names += FOLDER_LINKS
        return ServedPage(("/", *(f"{FOLDER}x{name}.html" for name in range(first, self._names + 1))))


class HostileSites:
    """All the others."""

    def __init__(self, hostile: Hostile, port: int) -> None:
        self.hostile, self.port = hostile, port
        self._fresh = count(hostile.farms)
        self._answered: Counter[str] = Counter()
        """pages of each relapser"""

    def answer(self, address: str, path: str) -> ServedPage | Silence:
        """Answer a request."""
        kind = kind_of(address)
        if kind in ("mute", "dripper"):
            return Silence(drips=kind == "dripper")
        if path == "/robots.txt":
            return ServedPage(body=b"User-agent: *\nDisallow: /private/\n")
        if kind == "farm":
            fresh = (numbered(_FARM, next(self._fresh)) for _ in range(FARM_LINKS))
            return ServedPage(tuple(f"http://{host}:{self.port}/" for host in fresh))
        if kind == "turncoat":
            return Silence(drips=True) if path.startswith(DRIPS) else ServedPage(_TURNS)
        if kind == "relapser":
            self._answered[address] += 1
            return Silence(drips=True) if self._answered[address] % (_QUICK + 1) == 0 else _again(path)
        if kind == "redirector":
            return ServedPage(location=self._onward(address, path))
        if kind == "flood" and path.startswith("/flood"):
            return ServedPage(body=_flood(int(path[6:-5])))
        return ServedPage()

    def _onward(self, address: str, path: str) -> str:
        """Redirectors with an even number keep to themselves, the others send to the next."""
        step = int(path.rpartition("=")[2] or 0) + 1 if "=" in path else 1
        number = int(address.rpartition(".")[2])
        if number % 2:
            address = numbered(5, (number + 1) % self.hostile.redirectors)
        return f"http://{address}:{self.port}/r?from={number}&n={step}"


def _again(path: str) -> ServedPage:
    """A page of a relapser leads to two more: few links are worth much each."""
    number = int(path.removeprefix(AGAIN).removesuffix(".html")) if path.startswith(AGAIN) else 0
    return ServedPage(tuple(f"{AGAIN}{2 * number + side}.html" for side in (1, 2)))


@functools.cache
def _flood(page: int) -> bytes:
    return b"\n".join(b'<a href="/f%d/x%d.html">x</a>' % (page, link) for link in range(FLOOD_LINKS))


def _name(page: int) -> str:
    return f"/p{page}.html" if page else "/"
