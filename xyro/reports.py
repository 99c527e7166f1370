"""From what a request brought (Answer) to the message that leaves (PageReport): the failure policy applied. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from msgspec import Struct, field

from xyro.answer import Answer
from xyro.failures import POLICIES, policy, settle
from xyro.mistakes import INTERNAL, MistakeLog, traced
from xyro.wire.clock import Clock
from xyro.wire.errors import TheirError
from xyro.wire.messages import FetchOrder, Kind, PageReport


class Counters(Struct):
    """Counters since the pool was made. `reads`: orders that the web answered (robots.txt not counted)."""

    reads: int = 0
    robots_reads: int = 0
    refused: int = 0
    """orders that robots.txt (or its absence) forbade: reported without a request"""
    received: Counter[str] = field(default_factory=Counter)
    """bytes of answers, heads included, by the coding of their bodies"""
    errors: Counter[str] = field(default_factory=Counter)
    """per failure class; bodies kept although truncated are counted here too"""
    cut: Counter[str] = field(default_factory=Counter)
    """per failure class, the bodies kept although truncated alone"""
    challenges: Counter[tuple[str, str]] = field(default_factory=Counter)
    """by kind and vendor: answers that were one (`answered`), and orders of a host that shows them, given back unread
    (`spared`)"""

    @property
    def bytes(self) -> int:
        """Bytes received."""
        return self.received.total()


def report_of(
    order: FetchOrder, answer: Answer, *, host_wait: float, host_failures: int, sitemaps: tuple[str, ...] = ()
) -> PageReport:
    """The one report of `order`. `host_wait`: seconds from the end of the read until its host may be read again, before
    which no retry makes sense. A body kept although truncated is no failure: its report has no `error`.
    """
    ended = max(answer.ended, answer.started)  # the wall clock may be set back meanwhile
    error, final, retry_at = answer.error, False, 0.0
    if error:
        if answer.status > 0 and policy(error).readable:
            error = ""
        else:
            final, retry_at = settle(error, order.attempt, ended, max(answer.retry_after, host_wait))
    return PageReport(
        page=order.page,
        url=order.url,
        epoch=order.epoch,
        started=answer.started,
        ended=ended,
        status=answer.status,
        error=error,
        final=final,
        retry_at=retry_at,
        kind=answer.kind,
        mime=answer.mime,
        size=answer.size,
        truncated=answer.truncated,
        signature=answer.signature,
        etag=answer.etag,
        last_modified=answer.last_modified,
        location=answer.location,
        links=answer.links,
        noindex=answer.noindex,
        nofollow=answer.nofollow,
        loading=answer.body is not None and answer.kind in (Kind.XML, Kind.DTD),
        charset=answer.charset,
        host_next=ended + host_wait,
        host_failures=host_failures,
        sitemaps=sitemaps,
        fresh_for=answer.fresh_for,
        hubs=answer.hubs,
        topic=answer.topic,
        vendor=answer.vendor,
        skeleton=answer.skeleton,
        refused=order.refused,
        received=answer.bytes,
    )


class GuardedReads:
    """Awaits a fetcher's answers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mistakes = MistakeLog(clock)

    async def answer(self, url: str, reading: Awaitable[Answer]) -> Answer:
        """The answer of a fetcher; if it breaks its contract, `internal`: our mistake must not lose a page."""
        try:
            answer = await reading
        except Exception as error:
            wall = self._clock.time()
            detail = error.detail if isinstance(error, TheirError) else traced(error)
            answer = Answer(wall, wall, error=INTERNAL, detail=detail)
        if answer.error and answer.error not in POLICIES:
            answer.error, answer.detail = INTERNAL, f"a failure class without policy: {answer.error}"
        if answer.error == INTERNAL:
            self._mistakes.note(url, answer.detail)
        return answer
