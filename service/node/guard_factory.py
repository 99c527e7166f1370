"""From settings to the guard: what may be contacted, and whether we say who we are. Light: looking at a stopped crawl
needs the guard's verdicts, not its client."""

from __future__ import annotations

from xyro.configs.schema import FetchSettings
from xyro.guard import Guard
from xyro.wire.errors import InputError


def guard_of(fetch: FetchSettings) -> Guard:
    """The guard; InputError names a network, port or name server that is none."""
    return Guard(fetch.only_net, fetch.allow_private, fetch.ports, (), fetch.name_servers)


def check_contact(fetch: FetchSettings, guard: Guard) -> None:
    """Require a contact of a crawl that may leave this machine (RFC 9110 10.1.2). InputError: it is missing."""
    if not fetch.contact and not guard.loopback_only:
        raise InputError(
            "contact: site owners must be able to reach you; give --contact you@example.org (or [fetch] contact), "
            "or stay on this machine with --only-net 127.0.0.0/8"
        )
