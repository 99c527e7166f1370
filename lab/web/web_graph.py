"""The links of the computed web: a random graph with a known law, in which everything can be reached.

In-degrees are those of opic/graph.standard: P(n) ~ n^-2.1 on [2, N/10]. One in-link of each page comes from a
tree (hosts hang on hosts, the HTML pages of a host on its home page), so that everything is reachable; the others come
from random sources, mostly of the same host. Lists (feeds, sitemaps) and redirects have the links that they list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.web.places import Doc, Places
from xyro.opic.graph import power_law

BRANCHES = 4
"""children of a page in the tree: host of 500 pages is at most 5 clicks deep"""
LEAST_OUT, MOST_OUT = 2, 60
FEED_ITEMS = 15
_ROUNDS = 60

TREE = 1
"""slot flag: this link keeps its target reachable and never drifts"""
NOFOLLOW = 2
LIST = 4
"""slot flag: an item of a feed or sitemap, or the target of a redirect"""

Ints = NDArray[np.int64]
_Draw = Callable[[Ints], Ints]
"""targets -> a source for each"""


@dataclass(frozen=True, slots=True)
class Slots:
    """Links as shown, in order: those of page p are targets[indptr[p]:indptr[p+1]]; flags: TREE | NOFOLLOW | LIST.

    A target may stand twice on a page. Targets >= pages are outside; `outside` counts them. needs[p]: DTD page of an
    XML document, else -1.
    """

    indptr: Ints
    targets: Ints
    flags: NDArray[np.uint8]
    needs: Ints
    outside: int


class _Edges(NamedTuple):
    sources: Ints
    targets: Ints


def build(places: Places, rng: np.random.Generator) -> Slots:
    """All links of the web."""
    shape, parents = places.shape, _parents(places, rng)
    tree = _Edges(parents[parents >= 0], np.flatnonzero(parents >= 0))
    drawn = _at_most(_at_least(_law(places, tree, rng), places, parents), tree, shape.pages)
    rare, nofollow = _self_links(places, rng), _nofollow(places, drawn, rng)
    outside, beyond = _outside(places, drawn, rng)
    followed = _join(drawn, rare, outside)
    again = rng.random(len(followed.sources)) < shape.duplicates
    twice = _Edges(followed.sources[again], followed.targets[again])
    lists = _lists(places, rng)
    parts = (followed, twice, nofollow, lists)
    flags = np.repeat(np.array([0, 0, NOFOLLOW, LIST], np.uint8), [len(part.sources) for part in parts])
    edges = _join(*parts)
    chosen = np.isin(_codes(edges, shape.pages), _codes(tree, shape.pages)) | (edges.targets >= shape.pages)
    flags[chosen] |= TREE
    return _in_order(edges, flags, _needs(places, rng), beyond, shape.pages, rng)


def _in_order(
    edges: _Edges, flags: NDArray[np.uint8], needs: Ints, beyond: int, pages: int, rng: np.random.Generator
) -> Slots:
    """Sorted by source; pages show their links in random order, lists in their own."""
    keys = np.where(flags & LIST, np.arange(len(flags)), rng.permutation(len(flags)))
    order = np.lexsort((keys, edges.sources))
    indptr = np.zeros(pages + 1, np.int64)
    np.cumsum(np.bincount(edges.sources, minlength=pages), out=indptr[1:])
    return Slots(indptr, edges.targets[order], flags[order], needs, beyond)


def _parents(places: Places, rng: np.random.Generator) -> Ints:
    """The tree: page -> the page that surely links to it; -1: the entry, and what only lists or robots.txt name."""
    parents = np.full(places.shape.pages, -1, np.int64)
    for host, start in enumerate(places.starts[:-1].tolist()):
        end = int(places.starts[host + 1])
        kinds = places.kinds[start:end]
        html = start + np.flatnonzero(kinds == Doc.HTML)
        parents[start:end] = html[rng.integers(0, len(html), end - start)]
        parents[html[1:]] = html[np.arange(len(html) - 1) // BRANCHES]
        parents[start] = places.starts[(host - 1) // BRANCHES] if host else -1
        if places.shape.catalogue:
            _catalogues(parents, html, start + np.flatnonzero(kinds == Doc.XML), places.shape.catalogue)
        parents[start:end][kinds == Doc.FEED] = start
        parents[start:end][kinds == Doc.INDEX] = start if host % 2 == 0 else -1
        parents[start:end][kinds == Doc.SITEMAP] = -1
    return parents


def _catalogues(parents: Ints, html: Ints, documents: Ints, size: int) -> None:
    """A host's documents hang on catalogue pages, `size` a page. The first of these hangs on the host's home page, the
    others on one another: whoever found one finds the next."""
    count = min(-(-len(documents) // size), len(html) // 2)
    pages = html[len(html) - count :]
    if count:
        parents[documents] = pages[np.arange(len(documents)) % count]
        parents[pages[1:]] = pages[np.arange(count - 1) // BRANCHES]
        parents[pages[0]] = html[0]


def _law(places: Places, tree: _Edges, rng: np.random.Generator) -> _Edges:
    """Distinct links that follow the in-degree law, the tree's among them."""
    pages, hosts = places.shape.pages, places.hosts
    wanted = _in_degrees(places, rng)
    wanted[np.isin(places.kinds, (Doc.FEED, Doc.SITEMAP, Doc.INDEX))] = 0
    if places.shape.catalogue:
        wanted[places.kinds == Doc.XML] = 0
    weights = np.where(places.kinds <= Doc.XML, rng.lognormal(0.0, 0.5, pages).clip(0.3, 3.0), 0.0)
    ends = np.concatenate(([0.0], np.cumsum(weights)))
    low, high = ends[places.starts[hosts]], ends[places.starts[hosts + 1]]
    sources = np.bincount(hosts, places.kinds <= Doc.XML)[hosts].astype(np.int64)
    goal = 1.0 if places.shape.hosts == 1 else 1.0 - places.shape.cross
    near = np.minimum(rng.binomial(wanted, _near_share(wanted, sources // 2, goal)), sources // 2)

    def within(targets: Ints) -> Ints:
        return _pick(ends, low[targets] + rng.random(len(targets)) * (high - low)[targets])

    def beyond(targets: Ints) -> Ints:
        drawn = rng.random(len(targets)) * (ends[-1] - (high - low)[targets])
        return _pick(ends, drawn + np.where(drawn >= low[targets], (high - low)[targets], 0.0))

    codes = _fill(_codes(tree, pages), near, within, pages)
    if places.shape.hosts > 1:
        codes = _fill(codes, np.minimum(wanted, near + (sources.sum() - sources) // 2), beyond, pages)
    return _Edges(codes % pages, codes // pages)


def _in_degrees(places: Places, rng: np.random.Generator) -> Ints:
    """The law's in-degree of each page; home pages get the largest, as on the web."""
    homes, pages = places.starts[:-1], places.shape.pages
    values = np.sort(power_law(pages, rng))
    wanted = np.empty(pages, np.int64)
    wanted[np.setdiff1d(np.arange(pages), homes)] = rng.permutation(values[: -len(homes)])
    wanted[homes] = rng.permutation(values[-len(homes) :])
    return wanted


def _near_share(wanted: Ints, limit: Ints, goal: float) -> float:
    """Find the chance of a local link with which `goal` of all links are local; a hub has at most `limit`."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if np.minimum(wanted * middle, limit).sum() < goal * wanted.sum():
            low = middle
        else:
            high = middle
    return high


def _pick(ends: NDArray[np.float64], drawn: NDArray[np.float64]) -> Ints:
    """Index of the page whose stretch of the cumulated weights holds each drawn number."""
    return np.searchsorted(ends[1:], drawn, side="right").clip(0, len(ends) - 2)


def _fill(codes: Ints, wanted: Ints, draw: _Draw, pages: int) -> Ints:
    """Draws sources until each target has as many distinct in-links as wanted (codes: target * pages + source)."""
    codes = np.sort(codes)
    have = np.bincount(codes // pages, minlength=pages)
    for _ in range(_ROUNDS):
        missing = np.maximum(wanted - have, 0)
        if not missing.any():
            break
        targets = np.repeat(np.arange(pages), missing)
        sources = draw(targets)
        drawn = _distinct(targets[sources != targets] * pages + sources[sources != targets])
        drawn = drawn[codes[np.searchsorted(codes, drawn).clip(0, len(codes) - 1)] != drawn]
        have += np.bincount(drawn // pages, minlength=pages)
        codes = np.sort(np.concatenate((codes, drawn)), kind="stable")  # merges two runs: no new sorting each round
    return codes


def _at_least(edges: _Edges, places: Places, parents: Ints) -> _Edges:
    """Pages with fewer than LEAST_OUT links get the way back: to their home page and to their parent."""
    pages = places.shape.pages
    short = np.flatnonzero((np.bincount(edges.sources, minlength=pages) < LEAST_OUT) & (places.kinds <= Doc.XML))
    back = _join(_Edges(short, places.starts[places.hosts[short]]), _Edges(short, parents[short]))
    sound = (back.targets >= 0) & (back.targets != back.sources)
    codes = _distinct(np.concatenate((_codes(edges, pages), _codes(back, pages)[sound])))
    return _Edges(codes % pages, codes // pages)


def _at_most(edges: _Edges, tree: _Edges, pages: int) -> _Edges:
    """At most MOST_OUT links a page; those of the tree stay."""
    spare = ~np.isin(_codes(edges, pages), _codes(tree, pages))
    order = np.lexsort((spare, edges.sources))
    sources = edges.sources[order]
    rank = np.arange(len(order)) - np.searchsorted(sources, sources, side="left")
    keep = (rank < MOST_OUT) | ~spare[order]
    return _Edges(sources[keep], edges.targets[order][keep])


def _self_links(places: Places, rng: np.random.Generator) -> _Edges:
    pages = places.of_kind(Doc.HTML, Doc.XML)
    chosen = pages[rng.random(len(pages)) < places.shape.selfs]
    return _Edges(chosen, chosen)


def _nofollow(places: Places, drawn: _Edges, rng: np.random.Generator) -> _Edges:
    """Links from HTML pages to much-linked pages, never to one that the page also links to in earnest."""
    pages, html = places.shape.pages, places.of_kind(Doc.HTML)
    count = round(len(drawn.sources) * places.shape.nofollow)
    pairs = _Edges(html[rng.integers(0, len(html), count)], rng.choice(drawn.targets, count))
    codes = _distinct(_codes(pairs, pages))
    codes = codes[~np.isin(codes, _codes(drawn, pages))]
    codes = codes[codes % pages != codes // pages]
    return _Edges(codes % pages, codes // pages)


def _outside(places: Places, drawn: _Edges, rng: np.random.Generator) -> tuple[_Edges, int]:
    """Links to pages of others, numbered from `pages` on, and how many such pages there are (each is linked)."""
    html = places.of_kind(Doc.HTML)
    count = round(len(drawn.sources) * places.shape.outside)
    beyond = (count + 2) // 3
    targets = places.shape.pages + np.arange(count) % max(1, beyond)
    return _Edges(html[rng.integers(0, len(html), count)], targets), beyond


def _lists(places: Places, rng: np.random.Generator) -> _Edges:
    """Feeds (home page first), sitemap indexes, sitemaps and redirects."""
    pairs = [_redirects(places, rng)]
    for host, start in enumerate(places.starts[:-1].tolist()):
        end = int(places.starts[host + 1])
        kinds = places.kinds[start:end]
        html = start + np.flatnonzero(kinds == Doc.HTML)
        (feed,), (index,) = start + np.flatnonzero(kinds == Doc.FEED), start + np.flatnonzero(kinds == Doc.INDEX)
        items = rng.choice(html[1:], min(FEED_ITEMS, len(html) - 1), replace=False)
        maps = start + np.flatnonzero(kinds == Doc.SITEMAP)
        pool = start + np.flatnonzero((kinds <= Doc.XML) & (places.born[start:end] == -np.inf))
        listed = np.sort(rng.choice(pool, max(1, round(len(pool) * places.shape.listed)), replace=False))
        pairs.append(_Edges(np.full(len(items) + 1, feed), np.concatenate(([start], items))))
        pairs.append(_Edges(np.full(len(maps), index), maps))
        pairs.append(_Edges(maps[np.arange(len(listed)) % len(maps)], listed))
    return _join(*pairs)


def _redirects(places: Places, rng: np.random.Generator) -> _Edges:
    """Most lead to a page of the same host, some elsewhere, and one in ten to the redirect before it (a chain)."""
    sources = places.of_kind(Doc.REDIRECT)
    html = places.of_kind(Doc.HTML)
    first = np.searchsorted(html, places.starts)
    low, high = first[places.hosts[sources]], first[places.hosts[sources] + 1]
    near = html[low + (rng.random(len(sources)) * (high - low)).astype(np.int64)]
    targets = np.where(rng.random(len(sources)) < places.shape.cross, rng.choice(html, len(sources)), near)
    chained = np.flatnonzero(rng.random(len(sources)) < 0.1)
    chained = chained[chained > 0]
    targets[chained] = sources[chained - 1]
    return _Edges(sources, targets)


def _needs(places: Places, rng: np.random.Generator) -> Ints:
    """Draw the DTD that each XML document names: its host's, or now and then another host's; -1 for other pages."""
    needs = np.full(places.shape.pages, -1, np.int64)
    xml, dtds = places.of_kind(Doc.XML), places.of_kind(Doc.DTD)
    far = rng.random(len(xml)) < places.shape.cross
    needs[xml] = np.where(far, rng.choice(dtds, len(xml)), dtds[places.hosts[xml]])
    return needs


def _codes(edges: _Edges, pages: int) -> Ints:
    return edges.targets * pages + edges.sources


def _distinct(codes: Ints) -> Ints:
    """Ascending, without repetitions (numpy 2.4's unique hashes: 10 times slower on such codes)."""
    codes = np.sort(codes)
    return codes[np.concatenate(([True], codes[1:] != codes[:-1]))] if len(codes) else codes


def _join(*parts: _Edges) -> _Edges:
    return _Edges(np.concatenate([p.sources for p in parts]), np.concatenate([p.targets for p in parts]))
