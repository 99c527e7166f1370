"""Failure policy as data: for each failure class, how long to wait, how often to try again, and who is punished.

Rules above the table:

- A temporary failure is tried again `retries` times; before try k+1 the page waits `wait` x GROWTH^k seconds (at most
  `longest`, a day; never less than Retry-After). When the retries are spent it becomes final. Its cash stays till then.
- A final failure is never tried again: the page is dangling. A first 404 or 410 is final for this
  crawl; whether a second one a day later makes the page DEAD is metadata's decision.
- `host_wide` failures say something about the host, not the page: politeness backs the whole host off, exponentially.
- `readable` classes are no failures of the page: a body that ended early (`truncated`) or met a cap of ours
  (`too-large`, `ratio-too-large`) is kept, its links count, and its report has an empty `error`, a `truncated` word and
  no signature, so that half a page never looks like a changed one. Trying again would bring the same half. (A
  connection that breaks is `disconnect`.)
- `closed-idle` is a connection kept from an earlier read that its server gave up just as we used it again. Nothing is
  sent twice on its own: the next try is an order like any other, on a new connection.
- `signature-asked`: the host wants its requests signed (request_signing.py), or shows its first challenge where those
  that do get signatures; the next try is signed.
- `proxy-failed`: the proxy that the operator named did not do its part (proxy.py). It is no host's fault, and once it
  is mended all pages want to be read: so it is tried again every five minutes, for as long as an origin without robots
  is (30 days).
- `reader-lost`: the reader process ended while it read the page; `poison`: three of them ended while they worked on it.
- `unsent` classes without a status were refused on this machine: nobody was contacted, so no host has to be spared.

Waits below 30 s are for failures that often pass at once: `xyro crawl` ends when no retry is due within 30 s, so those
classes get a second look even in a bounded crawl. NXDOMAIN gets 1 h + 4 h + 16 h: three more looks over a day.
"""

from __future__ import annotations

from msgspec import Struct

DAY = 86_400.0
GROWTH = 4.0
"""Each further wait is this much longer: five tries from 10 s span an hour, from an hour several days."""


class FailurePolicy(Struct, frozen=True):
    """The retry policy of one failure class. `wait`: seconds before the first retry; `retries`: their number."""

    wait: float = 0.0
    retries: int = 0
    longest: float = DAY
    """seconds of the longest wait"""
    host_wide: bool = False
    final: bool = False
    readable: bool = False
    unsent: bool = False


def _retry(wait: float, retries: int, *, host_wide: bool = False) -> FailurePolicy:
    return FailurePolicy(wait=wait, retries=retries, host_wide=host_wide)


_FINAL = FailurePolicy(final=True)
_UNSENT = FailurePolicy(final=True, unsent=True)
_READABLE = FailurePolicy(final=True, readable=True)

POLICIES: dict[str, FailurePolicy] = {
    "dns-nxdomain": _retry(3_600, 3, host_wide=True),
    "dns-servfail": _retry(120, 5, host_wide=True),
    "dns-timeout": _retry(60, 5, host_wide=True),
    "connect-timeout": _retry(60, 5, host_wide=True),
    "connect-refused": _retry(60, 5, host_wide=True),
    "connect-failed": _retry(60, 5, host_wide=True),
    "proxy-failed": FailurePolicy(wait=20, retries=9_000, longest=300, unsent=True),
    "tls": _retry(3_600, 3, host_wide=True),
    "first-byte-timeout": _retry(20, 4, host_wide=True),
    "header-timeout": _retry(60, 3, host_wide=True),
    "timeout": _retry(60, 3, host_wide=True),
    "slow-body": _retry(60, 3, host_wide=True),
    "disconnect": _retry(5, 4, host_wide=True),
    "closed-idle": _retry(1, 4),
    "truncated": _READABLE,
    "too-large": _READABLE,
    "ratio-too-large": _READABLE,
    "headers-too-large": _FINAL,
    "bad-framing": _retry(300, 1),
    "bad-status": _retry(300, 1),
    "upgrade": _FINAL,
    "encoding": _retry(300, 1),
    "unasked-206": _retry(300, 1),
    "unasked-304": _retry(300, 1),
    "challenge": _retry(3_600, 3, host_wide=True),
    "signature-asked": _retry(2, 8),
    "soft-404": _FINAL,
    "blocked-address": _UNSENT,
    "blocked-port": _UNSENT,
    "only-net": _UNSENT,
    "robots-disallowed": _UNSENT,
    "content-signal": _UNSENT,
    "robots-unreachable": FailurePolicy(wait=20, retries=40, unsent=True),  # 40 tries reach past RFC 9309's 30 days
    "redirect-bad": _FINAL,
    "redirect-loop": _FINAL,
    "not-readable": _UNSENT,
    "http-404": _FINAL,
    "http-410": _FINAL,
    "http-429": _retry(20, 6, host_wide=True),
    "http-401": _FINAL,
    "http-403": _FINAL,
    "http-4xx": _FINAL,
    "http-5xx": _retry(10, 5, host_wide=True),
    "url-too-long": _UNSENT,
    "internal": _retry(60, 1),
    "reader-lost": _retry(5, 5),
    "poison": _FINAL,
}
"""Failure class -> policy. The fetcher and the pool use exactly these names."""


def policy(kind: str) -> FailurePolicy:
    """The policy of a failure class; KeyError for a name that is not in the table (our own mistake)."""
    return POLICIES[kind]


def settle(kind: str, attempt: int, now: float, retry_after: float = 0.0) -> tuple[bool, float]:
    """(final, retry_at): what becomes of a page that failed with `kind` after `attempt` earlier failures in a row.

    `now` and `retry_at` are wall-clock seconds, `retry_after` is in seconds; retry_at is 0.0 where the failure is
    final.
    """
    rule = POLICIES[kind]
    if rule.final or attempt >= rule.retries:
        return True, 0.0
    wait = min(rule.wait * GROWTH ** min(attempt, 16), rule.longest)
    return False, now + max(wait, min(retry_after, DAY))


def challenge_wait(failures: int) -> float:
    """Seconds for which a host is left alone that shows a challenge, after so many failures in a row: doubles."""
    return min(POLICIES["challenge"].wait * 2.0 ** min(failures, 16), DAY)
