"""Makes, ends and lists subscriptions for whoever asks, in whichever process; the home partition has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from xyro.frontier.scope import BESIDE
from xyro.frontier.targets import is_pattern
from xyro.metadata import rows
from xyro.plugins.publish.publication_rows import described, made
from xyro.plugins.publish.publish_messages import ListSubscriptions, Subscribe, Unsubscribe
from xyro.plugins.publish.stored_rows import SubscriptionRow, unpack_subscription
from xyro.service.node.guard_factory import guard_of
from xyro.wire.errors import InputError
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.service.node.services import Services

SUBSCRIPTION_LIMIT = 100_000
LISTED_AT_ONCE = 500


class Subscribing:
    """All three return when what they changed is on disk."""

    def __init__(self, services: Services) -> None:
        self.services = services

    async def subscribe(self, target: str, every: float, notify: str | Sequence[str]) -> int:
        """A URL or pattern, seconds, and a URL or a command. Its number. InputError."""
        row = made(target, every, notify, self.services.clock.time(), self.services.scope.fold_slashes)
        self._check(row)
        number: int = await self.services.commands.send(HOME, partial(Subscribe, row=rows.pack(row)))
        if not number:
            raise InputError(
                f"subscribe: there are {SUBSCRIPTION_LIMIT:,} subscriptions; end some with `xyro unsubscribe`"
            )
        return number

    def _check(self, row: SubscriptionRow) -> None:
        """InputError: the crawl would not read it, or may not tell there."""
        scope = self.services.scope
        if not is_pattern(row.target) and (
            reason := scope.why_refused(row.target) or scope.why_out(row.target, BESIDE)
        ):
            raise InputError(f"{row.target}: {reason}: it would never be read; `xyro submit` widens the scope")
        if row.url:
            guard_of(self.services.settings.fetch).check_receiver(row.url, "--notify")

    async def unsubscribe(self, number: int) -> bool:
        """False: there is none of that number."""
        existing: bool = await self.services.commands.send(HOME, partial(Unsubscribe, number=number))
        return existing

    async def listed(self) -> list[dict[str, Any]]:
        """For `xyro subscriptions`: those of now."""
        found: list[dict[str, Any]] = []
        first = 0
        while True:
            ask = partial(ListSubscriptions, first=first, limit=LISTED_AT_ONCE)
            some = await self.services.commands.send(HOME, ask)
            found += [described(number, unpack_subscription(row), pages) for number, row, pages in some]
            if len(some) < LISTED_AT_ONCE:
                return found
            first = some[-1][0] + 1
