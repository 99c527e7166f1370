"""Open files: sockets are files, and most systems allow a process 1,024 unless it asks for more."""

from __future__ import annotations

import resource

from xyro.configs.schema import Settings
from xyro.wire.errors import InputError

OURS = 256
"""files beside those of connections and stores: interfaces and their clients, name servers, connections being closed"""
STORE = 8
"""of one partition: LevelDB maps its first 1,000 tables (4 GB), which takes no file"""
PLENTY = 65_536


IDLE = 4
"""idle connections for each that is read from"""


def idle_connections(concurrency: int, processes: int = 1) -> int:
    """Most idle connections of each of the processes that read. Over TLS one takes some 50 kB, and spares a
    handshake. Half of the files that the system allows are for others."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    room = PLENTY if hard == resource.RLIM_INFINITY else hard
    return max(concurrency, min(IDLE * concurrency, room // 2)) // max(processes, 1) or 1


def make_room(settings: Settings, partitions: int) -> None:
    """Ask the system for what a crawl with these settings opens at most. InputError: it may not have as many."""
    needed = 2 * settings.fetch.concurrency + STORE * partitions + OURS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    limit = PLENTY if hard == resource.RLIM_INFINITY else hard
    if needed > limit and needed > soft:
        raise InputError(
            f"concurrency {settings.fetch.concurrency} with {partitions} partitions may open {needed} files, and this "
            f"process may open {hard}: lower [fetch] concurrency, or raise the limit (`ulimit -Hn`, LimitNOFILE)"
        )
    wanted = max(soft, min(limit, max(needed, PLENTY)))
    if wanted != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
