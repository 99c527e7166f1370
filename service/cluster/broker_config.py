"""The configuration of nats-server as text, and the limits of a broker.

Pure: the directory, the names and the secrets come in as arguments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xyro.service.cluster.broker_link import PORT, is_loopback
from xyro.wire.errors import InputError
from xyro.wire.urls import host_and_port

MAX_PAYLOAD: Final = 1 << 20
"""bytes of one message; whatever is larger goes in pieces"""
MAX_CONNECTIONS: Final = 4096
"""a node has one or two, a command has one while it runs"""
MAX_PENDING: Final = 64 << 20
"""bytes that the broker holds for a connection which does not read, before it is cut off"""
PING_SECONDS: Final = 5
PINGS: Final = 2
"""a peer that leaves so many pings unanswered is cut off, 15 s after its last word (nats-server: 6 minutes)"""
WRITE_SECONDS: Final = 10
MEMORY_BYTES: Final = 16 << 20
FILE_BYTES: Final = 1 << 30
"""what JetStream may take: membership is a few hundred bytes a partition and node, so its bound is far away"""
ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with what the operator asked for


@dataclass(frozen=True, slots=True)
class Listen:
    """An address that the broker listens at. `host`: a name or an IP address without brackets."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Listen:
        """Take HOST:PORT, HOST or [IPV6]:PORT. InputError: it is neither."""
        host, _, port = text.rpartition(":") if not text.endswith("]") and text.count(":") != 0 else (text, "", "")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        number = int(port) if port.isdecimal() else PORT if not port else -1
        if not bare or (":" in host and bare == host) or not 0 < number <= 65_535:
            raise InputError(f"--listen {text}: expected HOST:PORT, such as 127.0.0.1:{PORT} or [::1]:{PORT}")
        return cls(bare, number)

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    @property
    def anywhere(self) -> bool:
        """Whether it stands for all addresses of the machine, and so is none that another machine can be told."""
        return self.host in ANYWHERE

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Secured:
    """The token that a client beyond loopback shows, and the certificate that the broker shows."""

    token: str
    certificate: Path
    key: Path


def server_config(listen: Listen, directory: Path, secured: Secured | None) -> str:
    """nats-server's configuration file. Values are JSON strings, which its format takes as they are."""
    lines = [
        'server_name: "xyro"',
        f"listen: {json.dumps(str(listen))}",
        "logtime: false",
        f"max_payload: {MAX_PAYLOAD}",
        f"max_connections: {MAX_CONNECTIONS}",
        f"max_pending: {MAX_PENDING}",
        f'ping_interval: "{PING_SECONDS}s"',
        f"ping_max: {PINGS}",
        f'write_deadline: "{WRITE_SECONDS}s"',
        f"pid_file: {json.dumps(str(directory / 'broker.pid'))}",
        "jetstream {",
        f"  store_dir: {json.dumps(str(directory))}",
        "  sync_interval: always",
        f"  max_memory_store: {MEMORY_BYTES}",
        f"  max_file_store: {FILE_BYTES}",
        "}",
    ]
    if secured is not None:
        lines += [
            f"authorization {{ token: {json.dumps(secured.token)}, timeout: 5 }}",
            "tls {",
            f"  cert_file: {json.dumps(str(secured.certificate))}",
            f"  key_file: {json.dumps(str(secured.key))}",
            '  min_version: "1.3"',
            "  timeout: 5",
            "}",
        ]
    return "\n".join([*lines, ""])
