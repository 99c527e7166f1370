"""One coded stream of each kind, undone in steps: deflate in its three wrappings (ISA-L), Brotli, Zstandard.

decode.py feeds them a block at a time and looks at its caps between the steps. A fault is a BrokenStream.
The windows that a decoder may ask for are bounded: 32 kB of deflate, 16 MiB of Brotli, 8 MiB of Zstandard (RFC 9659).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import brotli
from backports import zstd
from isal import isal_zlib

from xyro.wire.errors import MachineError

if not hasattr(brotli.Decompressor, "process"):  # the package brotlipy installs a module of this name, too
    raise MachineError(
        f"{brotli.__file__}: not the module of the package Brotli, but of brotlipy, which another package brought: "
        "`pip uninstall brotlipy`, then `pip install --force-reinstall brotli`"
    )

STEP: Final = 64 * 1024
"""Bytes that one call of a library is to bring; Brotli's brings up to half as many more."""
_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]  # its stubs take it for an instance
_ZSTD_WINDOW: Final = 23
"""log2 of the largest window that content codings may have (RFC 9659)"""


class BrokenStream(Exception):
    """Bytes that are no such stream, or a damaged one."""


class CodedStream(Protocol):
    """A stream that has begun. `rest`: what followed its end, once it `is_over`."""

    is_over: bool
    rest: bytes

    def decoded(self, block: bytes) -> Iterator[bytes]:
        """Yield the output of the stream's next bytes, in steps. BrokenStream."""


class DeflateStream:
    """`bits`: zlib's window bits, which choose the wrapping."""

    def __init__(self, bits: int) -> None:
        self.is_over = False
        self.rest = b""
        self._inflate = isal_zlib.decompressobj(bits)

    def decoded(self, block: bytes) -> Iterator[bytes]:
        inflate = self._inflate
        while True:
            try:
                out = inflate.decompress(block, STEP)
            except _ISAL_ERROR as error:
                raise BrokenStream(str(error)) from error
            if inflate.eof:
                self.is_over, self.rest = True, inflate.unused_data
            if out:
                yield out
            block = inflate.unconsumed_tail
            if inflate.eof or (not block and len(out) < STEP):
                return


class BrotliStream:
    """The library does not tell where a stream ends in what it is fed: whatever follows in the same block breaks it."""

    def __init__(self) -> None:
        self.is_over = False
        self.rest = b""
        self._decompressor = brotli.Decompressor()

    def decoded(self, block: bytes) -> Iterator[bytes]:
        decompressor = self._decompressor
        while True:
            try:
                out = decompressor.process(block, output_buffer_limit=STEP)
            except brotli.error as error:
                raise BrokenStream(str(error)) from error
            self.is_over = decompressor.is_finished()
            if out:
                yield out
            if self.is_over or (len(out) < STEP and decompressor.can_accept_more_data()):
                return
            block = b""


class ZstdStream:
    """One frame, or the skippable ones before it."""

    def __init__(self) -> None:
        self.is_over = False
        self.rest = b""
        self._decompressor = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})

    def decoded(self, block: bytes) -> Iterator[bytes]:
        decompressor = self._decompressor
        while True:
            try:
                out = decompressor.decompress(block, STEP)
            except zstd.ZstdError as error:
                raise BrokenStream(str(error)) from error
            if decompressor.eof:
                self.is_over, self.rest = True, decompressor.unused_data
            if out:
                yield out
            if decompressor.eof or decompressor.needs_input:
                return
            block = b""
