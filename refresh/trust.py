"""Trust in hosts: each host's claims about its pages, by kind, and how often later reads bore them out. Pure.

Everything that the web says of its own changes (Last-Modified, dates of sitemaps and feeds, claimed rates, caching
headers, publications) is a claim. Each is one of a mixture: true with the host's trust w, else idle talk, which leaves
the outcome to chance. Once a read has shown the outcome, the claim is shared out between the two (the E step of the
mixture) and the shares are counted, older ones fading:

    share of true = w x P(outcome | the claim holds) / (w x P(outcome | it holds) + (1 - w) x P(outcome | chance))
    w = (true + prior true) / (all + prior)         the mean of a Beta

An outcome that chance explains as well moves nothing: who claims changes of pages that change anyway earns nothing.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

import numpy as np
from msgspec import Struct, field

MEMORY: Final = 40.0
"""Claims that count: a liar that reforms, or an honest host that no longer is, is found out in some tens of claims."""
SLIP: Final = 0.03
"""P(no change seen | an honest claim of a change): reverted, or invisible to the signature."""
LUCKY = 0.3
"""P(a Last-Modified looks plausible | it is made up)"""
LEAST, GREATEST = 0.05, 0.95
"""Bounds of w in the shares: nobody is beyond proof, either way."""
NOW = 2.0
"""seconds: the age of a Last-Modified that is the moment of the answer, which has whole seconds"""
DOUBTED, RESTORED = 0.4, 0.7
"""A host's Last-Modified is no longer used below the first, and used again above the second: no flutter between."""


class Source(enum.IntEnum):
    """Kinds of evidence; stored by number."""

    LAST_MODIFIED = 0
    SITEMAP = 1
    """lastmod"""
    FEED = 2
    """dates of entries"""
    RATE = 3
    """changefreq, ttl, sy:updatePeriod"""
    CACHE = 4
    """Cache-Control, Expires"""
    PUBLISHED = 5
    """what a site itself tells us: IndexNow, WebSub, `xyro publish`"""


PRIORS: Final[tuple[tuple[float, float], ...]] = (
    (4.0, 1.0),  # mostly right, and a wrong one shows in itself
    (1.0, 2.0),  # many are the time of generation
    (1.0, 1.0),
    (1.0, 3.0),  # mostly a template's default
    (1.0, 3.0),  # says what may be cached, not what changes
    (1.0, 1.0),
)
"""(true, false) claims that a host has to its credit before its first, by Source."""
_HEAD = struct.Struct("<IB")


class Trust(Struct):
    """The worth of one host's claims so far. `counts`: true and false, by Source, fading."""

    counts: list[float] = field(default_factory=lambda: [0.0] * (2 * len(Source)))
    doubted: bool = False
    """its Last-Modified is not used"""
    claims: int = 0
    """settled since the host was first met, of all kinds"""

    def weight(self, source: Source) -> float:
        """0..1: how much a claim of this kind weighs."""
        true, false = self.counts[2 * source : 2 * source + 2]
        prior_true, prior_false = PRIORS[source]
        return (true + prior_true) / (true + false + prior_true + prior_false)

    def settle(self, source: Source, if_true: float, by_chance: float) -> None:
        """A read showed how a claim came out: probabilities of that outcome if it holds, and if it is idle talk."""
        w = min(max(self.weight(source), LEAST), GREATEST)
        likelihood, idle = w * if_true, (1.0 - w) * by_chance
        if not 0.0 < likelihood + idle < float("inf"):
            return
        share = likelihood / (likelihood + idle)
        fade = 1.0 - 1.0 / MEMORY
        index = 2 * source
        self.counts[index] = self.counts[index] * fade + share
        self.counts[index + 1] = self.counts[index + 1] * fade + 1.0 - share
        self.claims += 1
        if source is Source.LAST_MODIFIED:
            w = self.weight(source)
            self.doubted = w < (RESTORED if self.doubted else DOUBTED)

    def changed(self, source: Source, changed: bool, chance: float) -> None:
        """A claim of a change came out; `chance`: probability that the page had changed anyway."""
        if changed:
            self.settle(source, 1.0 - SLIP, chance)
        else:
            self.settle(source, SLIP, 1.0 - chance)

    def dated(self, plausible: bool) -> None:
        """A Last-Modified was looked at: it may be true, or it shows in itself that it is not."""
        idle = LUCKY if plausible else 1.0 - LUCKY
        self.settle(Source.LAST_MODIFIED, 1.0 - SLIP if plausible else SLIP, idle)

    def adopt(self, other: Trust, source: Source) -> None:
        """Claims of this kind that were counted elsewhere."""
        for index in (2 * source, 2 * source + 1):
            self.counts[index] = min(self.counts[index] + other.counts[index], MEMORY)
        self.claims += other.claims

    def dump(self) -> bytes:
        """For the host's row: settled claims u32, doubted u8, float32 counts; empty where nothing was ever settled."""
        if not self.claims:
            return b""
        return _HEAD.pack(min(self.claims, 2**32 - 1), self.doubted) + np.array(self.counts, "<f4").tobytes()

    @classmethod
    def load(cls, data: bytes) -> Trust:
        """From `dump`; a shorter one knew fewer sources, of a longer one the rest is dropped."""
        if len(data) < _HEAD.size:
            return cls()
        claims, doubted = _HEAD.unpack_from(data)
        end = _HEAD.size + (len(data) - _HEAD.size) // 8 * 8
        stored = np.frombuffer(data[_HEAD.size : end], "<f4").tolist()
        counts = [*stored, *[0.0] * (2 * len(Source))][: 2 * len(Source)]
        sound = [min(count, MEMORY) if count > 0.0 else 0.0 for count in counts]  # NaN, too: damage teaches nothing
        return cls(sound, bool(doubted), claims)

    def words(self) -> dict[str, float]:
        """Kinds of which something was settled -> trust, for people."""
        used = (source for source in Source if self.counts[2 * source] or self.counts[2 * source + 1])
        return {source.name.lower().replace("_", "-"): round(self.weight(source), 3) for source in used}


def plausible(modified: float, read_at: float, changed: bool | None, last_read: float, youngest: float) -> bool | None:
    """Tell whether this Last-Modified can be true. None: it says nothing, at a first read or one that showed nothing.

    Not: the future; now (servers that make their pages say so); a change we saw that it does not know of (older than
    the read before); a change that it tells of and we did not see (younger than that read, same signature). A change
    that we saw, younger than `youngest` seconds, may be one that was published, or always now: it says nothing.
    """
    if modified > read_at or (not changed and modified > read_at - NOW):
        return False
    if changed is None or not last_read or (changed and modified > read_at - youngest):
        return None
    return modified >= last_read if changed else modified <= last_read
