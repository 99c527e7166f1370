"""Accepts publications from every sender: IndexNow, a site with a token, a WebSub hub, `xyro publish`.

They are on disk when `publish` returns, so an acknowledgement may follow: those that are trusted have been ordered in
the same commit group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from xyro.frontier.scope import BESIDE
from xyro.plugins.publish.promises import PublisherClaim
from xyro.plugins.publish.publish_messages import Publish
from xyro.refresh.allowance import Allowance
from xyro.refresh.publications import CLAIMS
from xyro.service.node.seeds import sort_seeds
from xyro.service.node.slicing import unhurried
from xyro.wire.durations import seconds
from xyro.wire.errors import InputError
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.service.node.services import Services

DAY = 86_400.0
MOST_URLS = 10_000
AT_ONCE = 500
"""URLs that are looked at, or published in one commit group, between two turns of the event loop"""
Refused = list[tuple[str, str]]


class Publishing:
    """`allowance`: what each host, and all, may publish in an hour; the owner's own words are not counted."""

    def __init__(self, services: Services) -> None:
        self.services = services
        settings = services.settings.publish
        self.allowance = Allowance(settings.host_urls, settings.urls)
        self.largest = min(settings.host_urls, settings.urls)
        """URLs of a host that may ever be published at once"""

    def readable(self, urls: Iterable[str]) -> tuple[list[str], Refused]:
        """Canonical URLs that this crawl would read, and (URL, why) of the others."""
        accepted, refused = sort_seeds(urls, self.services.scope)
        outside = {url: reason for url in accepted if (reason := self.services.scope.why_out(url, BESIDE))}
        return [url for url in accepted if url not in outside], [*refused, *outside.items()]

    async def sift(self, urls: Sequence[str]) -> tuple[list[str], Refused]:
        """`readable` of many, which takes 20 us each."""
        found, refused = dict[str, None](), Refused()
        async for first in unhurried(range(0, len(urls), AT_ONCE), 1):
            some, others = self.readable(urls[first : first + AT_ONCE])
            found.update(dict.fromkeys(some))
            refused += others
        return list(found), refused

    async def publish(self, urls: Iterable[str], claim: PublisherClaim) -> Refused:
        """Canonical URLs of this crawl's scope; returns when they are on disk. -> those refused, with the reason."""
        distinct = list(dict.fromkeys(urls))
        refused = Refused()
        for first in range(0, len(distinct), AT_ONCE):
            refused += await self._publish(distinct[first : first + AT_ONCE], claim)
        return refused

    async def _publish(self, urls: Sequence[str], claim: PublisherClaim) -> Refused:
        """In one commit group of each partition."""
        commands, parts = self.services.commands, dict[int, list[str]]()
        for url in urls:
            parts.setdefault(partition_of(host_of(url), commands.partitions), []).append(url)
        words = claim.claim, claim.made_at, claim.deadline, claim.rate, claim.sure
        answers = await asyncio.gather(
            *(commands.send(q, partial(_publish, tuple(part), words)) for q, part in parts.items())
        )
        return [(url, why) for answer in answers for url, why in answer]

    def claim_of(self, body: Mapping[str, Any], *, sure: bool = False) -> PublisherClaim:
        """Parse an announcement from a JSON object: claim, every, deadline. InputError names the field that is
        wrong."""
        claim = body.get("claim", "changed")
        if claim not in CLAIMS:
            raise InputError(f"publish: claim is one of {', '.join(CLAIMS)}")
        now, every = self.services.clock.time(), body.get("every")
        wait = body.get("deadline", self.services.settings.publish.deadline)
        rate = DAY / seconds(every, "publish: every") if every is not None else 0.0
        return PublisherClaim(claim, now, now + seconds(wait, "publish: deadline"), rate, sure)


def _publish(urls: tuple[str, ...], words: tuple[str, float, float, float, bool], request: int) -> Publish:
    return Publish(request, urls, *words)
