"""The scope of the crawl: seeds, depth, include and exclude rules, suffixes, and the guard's refusals.

Asked once a URL, when it is first met (and for every known page when the rules change), so it may cost microseconds.

A seed (depth SEED) is read whether `include` fits or not, as those who know Scrapy, Heritrix, HTTrack and wget expect:
links are followed from it to what `include` is for. What `exclude` fits is never read.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from xyro.configs.schema import CrawlSettings, RuleTable
from xyro.metadata.states import State
from xyro.wire.urls import authority, host_of, site_of, suffix_of


def globs(patterns: Sequence[str]) -> Callable[[str], object] | None:
    """One matcher for any of the patterns; None without patterns."""
    if not patterns:
        return None
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns)).match


SEED, BESIDE = 0, 1
"""depths of what a person hands in, and of what others do (publishers, subscriptions): as of a seed's links"""


class _Bounds(Struct, frozen=True):
    """Depth, include and exclude of the crawl or of one rule."""

    max_depth: int | None
    include: Callable[[str], object] | None
    exclude: Callable[[str], object] | None
    excluding: Sequence[str]
    """the patterns of `exclude`"""

    def why_out(self, url: str, depth: int) -> str:
        if self.max_depth is not None and depth > self.max_depth:
            return "too-deep"
        if self.exclude is not None and self.exclude(url):
            return "excluded"
        if depth and self.include is not None and not self.include(url):
            return "not-included"
        return ""

    def excluding_pattern(self, url: str) -> str:
        """The first pattern that excludes a URL, empty where none does."""
        return next((pattern for pattern in self.excluding if fnmatch.fnmatchcase(url, pattern)), "")


class _Fit:
    """The URLs that a [[rules]] table applies to."""

    def __init__(self, rule: RuleTable) -> None:
        self.host, self.pattern = rule.host, globs((rule.pattern,) if rule.pattern else ())
        self.bounds = _Bounds(rule.max_depth, globs(rule.include), globs(rule.exclude), rule.exclude)

    def __call__(self, url: str, host: str) -> bool:
        if self.host.startswith("*."):
            if not host.endswith(self.host[1:]):
                return False
        elif self.host and host != self.host:
            return False
        return self.pattern is None or bool(self.pattern(url))


class Scope:
    """The crawl's rules. `places`: the seeds' authorities (scope host) or sites (scope domain)."""

    def __init__(
        self,
        crawl: CrawlSettings,
        rules: Sequence[RuleTable] = (),
        refused: Callable[[str], str] = lambda url: "",
        places: Sequence[str] = (),
    ) -> None:
        self.mode = crawl.scope
        self.fold_slashes = crawl.fold_slashes
        self.places = set(places)
        """only ever grows: frontiers compare it with the places they have judged their pages by"""
        self._refused = refused
        self._suffixes = frozenset(suffix[1:] for suffix in crawl.skip_suffixes)
        self._bounds = _Bounds(crawl.max_depth, globs(crawl.include), globs(crawl.exclude), crawl.exclude)
        self._rules = [_Fit(rule) for rule in rules]
        self.by_depth = crawl.max_depth is not None or any(rule.max_depth is not None for rule in rules)
        """depths matter: a shorter way to a page may bring it into scope"""
        self.text = repr((crawl.scope, crawl.max_depth, crawl.include, crawl.exclude, crawl.skip_suffixes, rules))
        """the rules as stored: other rules on a resume apply to all known pages"""
        self.kind = f"({crawl.scope!r}, "
        """the beginning of `text`, that of all rules with places of the same kind (hosts, or domains)"""

    def place_of(self, url: str) -> str:
        """Return the place (host, or domain) that a seed adds to the scope."""
        return site_of(host_of(url)) if self.mode == "domain" else authority(url)

    def place_of_host(self, name: str) -> str:
        """The place of all pages of an authority."""
        return self.place_of(f"http://{name}/")

    def add_seed(self, url: str) -> None:
        """Widen the scope by a seed's place."""
        if self.mode != "any":
            self.places.add(self.place_of(url))

    def why_out(self, url: str, depth: int) -> str:
        """'' for a URL in scope, else the rule that keeps it out."""
        if self.mode != "any" and self.place_of(url) not in self.places:
            return "out-of-scope"
        if suffix_of(url) in self._suffixes:
            return "suffix"
        return self._bounds_of(url).why_out(url, depth)

    def excluding_pattern(self, url: str) -> str:
        """The first pattern that excludes a URL, empty where none does."""
        return self._bounds_of(url).excluding_pattern(url)

    def _bounds_of(self, url: str) -> _Bounds:
        if self._rules:
            host = host_of(url)
            for rule in self._rules:
                if rule(url, host):
                    return rule.bounds
        return self._bounds

    def why_refused(self, url: str) -> str:
        """'' or the guard's class (blocked-address, blocked-port, only-net) that the URL alone shows."""
        return self._refused(url)

    def judge(self, url: str, depth: int) -> State:
        """The state of a URL that no order was settled for."""
        if self.why_out(url, depth):
            return State.OUT
        return self.judge_by_guard(url)

    def judge_by_guard(self, url: str) -> State:
        """The state of a URL by the guard alone: out of scope for --only-net, blocked for addresses never contacted."""
        refused = self._refused(url)
        if not refused:
            return State.UNREAD
        return State.OUT if refused == "only-net" else State.BLOCKED
