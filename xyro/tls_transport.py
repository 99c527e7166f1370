"""TLS over a TCP connection, for both clients (connector.py): as asyncio and uvloop do it, with less memory.

An idle connection of theirs holds the buffer that its largest packet came through: 190 kB at pages of 60 kB as sent,
50 kB here. And neither resumes a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterable
from typing import Any, cast

STEP = 8 * 1024
"""bytes of a packet that are decrypted at a time: the memory that OpenSSL takes for them is never given back"""
RECORD = 16 * 1024
"""most bytes of a record of TLS"""
_PLAIN = memoryview(bytearray(256 * 1024))
"""what a packet decrypts to, before it is passed on: one for all, for nothing is awaited meanwhile"""


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """To the loop the protocol of a TCP connection, to `protocol` the transport beneath. Its reads and writes never
    wait for each other: the context allows no renegotiation."""

    def __init__(
        self,
        protocol: asyncio.Protocol,
        tls: ssl.SSLObject,
        coded: ssl.MemoryBIO,
        out: ssl.MemoryBIO,
        shaken: asyncio.Future[None],
    ) -> None:
        """coded: what `tls` reads of; out: what it writes to; shaken: has a result when the handshake is over."""
        super().__init__()
        self._protocol = protocol
        self._tls, self._coded, self._out = tls, coded, out
        self._shaken = shaken
        self._up = False
        """the protocol knows of the connection"""
        self._ended = False
        self._error: Exception | None = None

    # The protocol of the TCP connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tcp = cast(asyncio.Transport, transport)  # uvloop's is none by its type
        self._shake()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        view, plain = memoryview(data), 0
        try:
            for start in range(0, len(data), STEP):
                self._coded.write(view[start : start + STEP])
                if not self._up and not self._shake():
                    continue
                plain = self._decrypt(plain)
        except ssl.SSLError as error:  # what came before it is good
            self._pass_on(plain)
            self._fail(error)
            return
        self._pass_on(plain)
        self._flush()  # answers of TLS itself, as to an update of keys

    def eof_received(self) -> None:
        """As when it is lost: a server need not say goodbye."""

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = True
        if self._up:
            self._up = False
            self._protocol.connection_lost(self._error or error)
        elif not self._shaken.done():
            self._shaken.set_exception(self._error or error or ConnectionResetError("closed in the handshake"))

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _shake(self) -> bool:
        """Go on with the handshake; True: it is over, and the protocol has its transport."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            self._flush()  # it is told why
            self._fail(error)
            return False
        self._flush()
        self._up = True
        self._protocol.connection_made(self)
        if not self._shaken.done():
            self._shaken.set_result(None)
        return True

    def _decrypt(self, plain: int) -> int:
        """Decrypt what is here behind the first `plain` bytes of _PLAIN; how many they are then."""
        try:
            while True:
                if len(_PLAIN) - plain < RECORD:
                    self._pass_on(plain)
                    plain = 0
                count = cast(int, self._tls.read(RECORD, cast(Any, _PLAIN[plain:])))
                if not count:
                    break
                plain += count
        except ssl.SSLWantReadError:
            return plain
        except ssl.SSLZeroReturnError:
            pass
        self._pass_on(plain)
        self._ended = True
        self._tcp.close()  # the server said goodbye
        return 0

    def _pass_on(self, plain: int) -> None:
        if plain and self._up and not self._tcp.is_closing():
            self._protocol.data_received(bytes(_PLAIN[:plain]))

    def _flush(self) -> None:
        if self._out.pending:
            self._tcp.write(self._out.read())

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._ended = True
        self._tcp.abort() if self._up else self._tcp.close()

    # The transport of the protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes; OSError never, for a connection that is gone says so by `connection_lost`."""
        if self._ended or not data:
            return
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._flush()

    def writelines(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send bytes in one piece."""
        self.write(b"".join(pieces))

    def close(self) -> None:
        """Say goodbye, and close it when all is sent."""
        if not self._ended:
            self._ended = True
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()  # waits for the server's goodbye, which we do not
            self._flush()
        self._tcp.close()

    def abort(self) -> None:
        """Close it at once."""
        self._ended = True
        self._tcp.abort()

    def is_closing(self) -> bool:
        """Tell whether nothing can be sent any more."""
        return self._ended or self._tcp.is_closing()

    def pause_reading(self) -> None:
        """Let the server wait."""
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading after a pause."""
        self._tcp.resume_reading()

    def is_reading(self) -> bool:
        """Tell whether reading is not paused."""
        return self._tcp.is_reading()

    def get_write_buffer_size(self) -> int:
        """Bytes that wait to be sent."""
        return self._tcp.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As any transport; "ssl_object", "peercert" and "cipher" of this handshake, too."""
        if name == "ssl_object":
            return self._tls
        return self._tcp.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Pass what comes on to another protocol from now on."""
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol
