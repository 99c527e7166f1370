"""Requests and answers as they are on a wire of the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

KEEP, CLOSE, RESET, HANG = "keep", "close", "reset", "hang"
"""what a peer does with the connection after its answer"""


@dataclass(frozen=True, slots=True)
class SiteRules:
    """The rules of a robots.txt, as its server means them."""

    origin: str
    disallowed: tuple[str, ...] = ()
    """beginnings of paths"""
    delay: float = 0.0
    usable: bool = True
    """not so after an answer that forbids everything until the next one (5xx)"""


class PeerRequest(NamedTuple):
    """A GET as it arrived."""

    authority: str
    path: str
    headers: dict[str, str]
    """names in small letters"""

    @property
    def url(self) -> str:
        return f"http://{self.authority}{self.path}"


class AnswerPiece(NamedTuple):
    """Bytes of an answer, `delay` seconds after the piece before."""

    delay: float
    data: bytes


class PeerReply(NamedTuple):
    """The answer of a peer to a request."""

    pieces: Sequence[AnswerPiece]
    end: str = KEEP
    status: int = 0
    """what a sound client takes it for; 0: for no answer that counts"""
    wait: float = 0.0
    """seconds for which it asks to be left alone (Retry-After)"""
    robots: SiteRules | None = None
    """rules that it states, for robots.txt"""
