"""Asks a broker whether it lives: for `xyro hub --check`, which a container's health check runs."""

from __future__ import annotations

from pathlib import Path

from xyro.service.cluster.broker_link import BrokerLink
from xyro.service.cluster.join_target import join_target
from xyro.wire.errors import MachineError


async def check_broker(folder: Path) -> str:
    """Connect as a node would and ask JetStream for its account; a line that says how it is.

    InputError: no broker was started with that folder. MachineError: it does not answer.
    """
    from nats.errors import Error

    link = await BrokerLink.open(*join_target(str(folder)), "xyro hub --check")
    try:
        account = await link.jetstream().account_info()
    except (OSError, Error) as error:
        raise MachineError(f"{link.url}: JetStream does not answer ({error}): see the log of `xyro hub`") from error
    finally:
        await link.close()
    return f"{link.url}: answers; JetStream has {account.streams} streams in {account.storage:,} bytes"
