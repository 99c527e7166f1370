"""The error tree: every error says whose fault it is.

    XyroError
    |- InputError      ours to explain: a person gave us something we cannot use (exit code 2, nothing changed)
    |- TheirError      the web's: a site answered wrongly or not at all; `kind` names the failure class
    `- MachineError    this machine's: a disk, a lock, a broken store

Foreign exceptions (plyvel, aiohttp, lxml) are translated at the boundary that called the library.
"""

from __future__ import annotations


class XyroError(Exception):
    """Root of all errors that Xyro raises on purpose."""


class InputError(XyroError):
    """Bad input. The text names the place and the mend.

    For example "crawl.toml: [politeness] delay: expected a number, got 'x'".
    """


class CodecError(InputError):
    """Bytes that are not one of our messages: unknown version, unknown tag, wrong shape, over a bound."""


class TheirError(XyroError):
    """A site's failure. `kind` is the failure class stored with the page (see xyro/failures.py)."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail


class MachineError(XyroError):
    """The disk, the memory or the store of this machine failed."""
