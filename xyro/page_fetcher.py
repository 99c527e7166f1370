"""The seam between pool and web: what the pool asks of a fetcher (xyro/fetcher.py; tests have one of their own)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from xyro.answer import Answer
from xyro.site_entries import SiteOptions
from xyro.wire.messages import FetchOrder


class PageFetcher(Protocol):
    """The fetcher as the pool uses it. No method raises for what the web does; cancellation passes
    through."""

    async def fetch(self, order: FetchOrder) -> Answer:
        """One GET of the order's URL, no redirects followed."""
        ...

    async def fetch_robots(self, url: str) -> Answer:
        """GET `url`, the body (<= 500 KiB) in Answer.body, the target of a redirect in Answer.location."""
        ...

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """POST to `url`; any status is a good answer."""
        ...

    def sign(self, host: str) -> None:
        """Sign requests to `host` (authority) from now on, where hosts that show challenges get that."""
        ...

    def follow(self, sites: SiteOptions) -> None:
        """Ask hosts by other entries of [[sites]], from the next request to each on."""
        ...

    def knows(self, url: str) -> bool:
        """Tell whether `address` has its answer without asking a name server."""
        ...

    async def address(self, url: str) -> str:
        """The IP that the URL's host resolves to (cached), empty where it cannot be resolved."""
        ...

    def expect(self, host: str, seconds: float) -> None:
        """The next request to `host` (authority) comes in so many seconds; infinite: none is queued."""
        ...
