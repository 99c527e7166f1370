"""Brokers that take changes: a subject of NATS that a stream keeps, a topic of Kafka. A message a change.

A change counts as delivered once the broker has acknowledged that it is stored; so a subject that no stream takes gets
nothing. A failure ends the connection, with all that it had not written: what the broker has is always a beginning of
the batch, and the rest comes by the next connection. Where an acknowledgement was lost, its change comes again: NATS
drops it by its Nats-Msg-Id within the stream's duplicate window; elsewhere readers drop (partition, epoch, number)
that they have.

The operator names the broker, so it is no address of the crawl; with --only-net it has to be inside all the same.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from xyro.guard import Guard, is_local_name, split_authority
from xyro.plugins.changes.sink_targets import DeliveryOutcome, Line, StatelessTarget
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer
    from nats.aio.client import Client
    from nats.js.client import JetStreamContext

    from xyro.configs.schema import SinkTable

PATIENCE = 60.0
"""seconds until a batch is acknowledged, the connection included"""
REACH = 5
"""seconds until a broker answers"""
REQUEST = 15.0
"""seconds until a message that is not acknowledged is given up"""
TOO_LARGE = 10_054
"""JetStream's error code of a message beyond the stream's bound"""
EXTRAS = {"nats": ("nats", "cluster"), "kafka": ("aiokafka", "kafka")}
"""kind of broker -> the module of its client, and the extra that brings it"""


class BrokerConnection(Protocol):
    """A connection to a broker; when it is lost, nothing that it had not written is sent any more."""

    lost: asyncio.Future[None]

    async def send(self, line: Line) -> Awaitable[object]:
        """Write a change; the result becomes done when the broker has stored it."""

    def describe(self, error: BaseException) -> tuple[str, bool]:
        """The failure as text, and whether the very same message would be refused again."""

    async def close(self) -> None:
        """Give it up."""


class BrokerTarget(StatelessTarget):
    """Sends changes over one connection, which is made when there are some."""

    def __init__(self, connect: Callable[[], Awaitable[BrokerConnection]], errors: tuple[type[Exception], ...]) -> None:
        """errors: those of the broker's client, beside OSError and TimeoutError."""
        self._connect = connect
        self._errors: tuple[type[Exception], ...] = (OSError, TimeoutError, *errors)
        self._connection: BrokerConnection | None = None

    async def deliver(self, lines: Sequence[Line]) -> DeliveryOutcome:
        acks: list[asyncio.Future[object]] = []
        error: BaseException | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                if self._connection is None:
                    self._connection = await self._connect()
                for line in lines:
                    acks.append(asyncio.ensure_future(await self._connection.send(line)))  # noqa: PERF401  # it may raise
                ends: list[asyncio.Future[Any]] = [asyncio.gather(*acks, return_exceptions=True), self._connection.lost]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except self._errors as problem:
            error = problem
        taken = 0
        while taken < len(acks) and acks[taken].done() and not acks[taken].exception():
            taken += 1
        if taken == len(lines):
            return DeliveryOutcome()
        if taken < len(acks) and acks[taken].done():
            error = acks[taken].exception()
        text, refused = ("the connection was lost", False) if error is None else self._describe(error)
        for ack in acks:
            ack.cancel()
        await self.close()
        return DeliveryOutcome(text, int(refused), taken=taken)

    def _describe(self, error: BaseException) -> tuple[str, bool]:
        if isinstance(error, TimeoutError) or self._connection is None:
            return str(error) or "timeout", False
        return self._connection.describe(error)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


class NatsConnection:
    """A connection to NATS that ends when it is lost: the client's own reconnection would send later messages first."""

    def __init__(self, client: Client, stream: JetStreamContext, subject: str, lost: asyncio.Future[None]) -> None:
        self._client = client
        self._stream = stream
        self._subject = subject
        self.lost = lost

    @classmethod
    async def open(cls, servers: Sequence[str], subject: str, token: str) -> NatsConnection:
        """Connect. OSError, nats.errors.Error: no broker."""
        from nats.aio.client import Client
        from nats.errors import NoServersError

        client, lost = Client(), asyncio.get_running_loop().create_future()
        problems: list[Exception] = []

        async def closed() -> None:
            if not lost.done():
                lost.set_result(None)

        async def note(error: Exception) -> None:
            problems[:] = [error]  # once it is connected, `lost` tells, and acknowledgements that are missing

        secure = servers[0].startswith("tls:")
        try:
            await client.connect(
                list(servers),
                name="xyro changes",
                allow_reconnect=False,
                connect_timeout=REACH,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                ping_interval=REACH,
                token=token or None,
                tls=ssl.create_default_context() if secure else None,
                error_cb=note,
                closed_cb=closed,
            )
        except NoServersError:
            raise OSError(f"no broker answers at {', '.join(servers)}: {', '.join(map(str, problems))}") from None
        return cls(client, client.jetstream(), subject, lost)

    async def send(self, line: Line) -> Awaitable[object]:
        name = f"{line['cursor']}" if line["change"] == "gap" else "-".join(map(str, change_name(line)))
        body, headers = json.dumps(line).encode(), {"Nats-Msg-Id": name}
        # Tasks begin in their order, and each writes before it waits.
        return asyncio.ensure_future(self._stream.publish(self._subject, body, REQUEST, headers=headers))

    def describe(self, error: BaseException) -> tuple[str, bool]:
        from nats.errors import MaxPayloadError
        from nats.js.errors import APIError, NoStreamResponseError

        if isinstance(error, NoStreamResponseError):
            return f"no stream takes {self._subject}: make one with this subject (nats stream add)", False
        if isinstance(error, APIError):
            return f"the stream refused it: {error.description}", error.err_code == TOO_LARGE
        return str(error) or type(error).__name__, isinstance(error, MaxPayloadError)

    async def close(self) -> None:
        await self._client.close()


class KafkaConnection:
    """An idempotent producer of Kafka. The key of a change is its URL: all of a page are in one partition, in order."""

    def __init__(self, producer: AIOKafkaProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.lost = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, servers: Sequence[str], topic: str, secure: bool, guard: Guard) -> KafkaConnection:
        """Connect. OSError: with --only-net a server of this cluster lies outside; KafkaError: no broker."""
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # errors are told once, by the sink
        from aiokafka import AIOKafkaProducer
        from aiokafka.client import AIOKafkaClient

        options: dict[str, Any] = {"bootstrap_servers": list(servers), "request_timeout_ms": int(REQUEST * 1e3)}
        if secure:
            options |= {"security_protocol": "SSL", "ssl_context": ssl.create_default_context()}
        if guard.only_net:  # the first server names the others: ask before one of them is contacted
            client = AIOKafkaClient(**options)
            try:
                await client.bootstrap()
                places = [f"{broker.host}:{broker.port}" for broker in client.cluster.brokers()]
            finally:
                await client.close()
            for place in places:
                if not guard.is_inside(local_address(place)):
                    raise OSError(f"the broker leads to {place}, which is outside of --only-net")
        producer = AIOKafkaProducer(**options, acks="all", enable_idempotence=True)
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return cls(producer, topic)

    async def send(self, line: Line) -> Awaitable[object]:
        key = line.get("url", "").encode()
        sent: Awaitable[object] = await self._producer.send(self._topic, json.dumps(line).encode(), key or None)
        return sent

    def describe(self, error: BaseException) -> tuple[str, bool]:
        from aiokafka.errors import MessageSizeTooLargeError

        return str(error) or type(error).__name__, isinstance(error, MessageSizeTooLargeError)

    async def close(self) -> None:
        await self._producer.stop()


def change_name(line: Line) -> tuple[int, int, int]:
    """The three numbers that name one change for ever."""
    return line["partition"], line["epoch"], line["number"]


def local_address(place: str) -> str:
    """HOST:PORT with the loopback address in place of a name that means it."""
    host, port = split_authority(place, 0)
    return f"127.0.0.1:{port}" if is_local_name(host) else place


def broker_target(table: SinkTable, guard: Guard) -> BrokerTarget:
    """The target of a broker's URL. InputError: its client is not installed, or it lies outside of --only-net."""
    scheme, _, rest = table.url.partition("://")
    kind = "kafka" if scheme.startswith("kafka") else "nats"
    module, extra = EXTRAS[kind]
    if importlib.util.find_spec(module) is None:
        raise InputError(f"[[sinks]] {table.name}: url {scheme}://: pip install 'xyro[{extra}]' brings the client")
    places = [urlsplit(f"//{place}").netloc for place in rest.strip("/").split(",")]
    if guard.only_net:
        places = [local_address(place) for place in places]
        for place in places:
            if not guard.is_inside(place):
                raise InputError(
                    f"[[sinks]] {table.name}: url {table.url}: {place} is outside of --only-net; name an address inside"
                )
    if kind == "kafka":
        from aiokafka.errors import KafkaError

        return BrokerTarget(
            lambda: KafkaConnection.open(places, table.topic, scheme == "kafka+tls", guard), (KafkaError,)
        )
    from nats.errors import Error

    servers = [f"{scheme}://{place}" for place in places]
    return BrokerTarget(lambda: NatsConnection.open(servers, table.topic, table.secret), (Error,))
