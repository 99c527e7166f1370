"""Signs requests by Web Bot Auth (draft-meunier-web-bot-auth-architecture, RFC 9421), so that a site can know whose
they are without lists of addresses.

    Signature-Agent: sig1="https://bot.example.org"       where the key directory is (xyro/plugins/identity)
    Signature-Input: sig1=("@authority" "signature-agent";key="sig1");created=...;expires=...;tag="web-bot-auth"
    Signature: sig1=:...:

Each request has a signature of its own, for the authority that it goes to, good for LIFETIME seconds, with a nonce that
is never used again. `sign = "challenged"` signs for hosts that showed a challenge, or asked by an Accept-Signature
header (RFC 9421 5.1), and for those from then on: their names are lines of a file, over restarts.
"""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from xyro.identity_key import IdentityKey
from xyro.wire.clock import Clock
from xyro.wire.errors import MachineError
from xyro.wire.urls import authority

if TYPE_CHECKING:
    from xyro.page_client import Reply

LIFETIME = 300
"""seconds for which a signature is good; clocks of servers may differ by as much, less the seconds of the way"""
LABEL = "sig1"
TAG = "web-bot-auth"
MOST_HOSTS = 100_000
"""whose names are kept; those that asked longest ago go first"""
_log = logging.getLogger("xyro")
_TRAILING_DOT = re.compile(r"\.(?=:\d+$|$)")


class SigningOptions(Struct, frozen=True, kw_only=True):
    """Options of a reader that signs."""

    sign: Literal["challenged", "always"]
    key: str
    """file of the private key"""
    agent: str
    """origin of the key directory, https://..."""
    hosts: str = ""
    """file of the hosts that asked; empty: they are forgotten with the process"""


def signing_options(sign: str, key: str, agent: str) -> SigningOptions | None:
    """Options for the settings of [identity]; None where nothing is signed. InputError: the key cannot be used."""
    if sign == "never":
        return None
    IdentityKey.read(Path(key))
    return SigningOptions(
        sign="always" if sign == "always" else "challenged", key=str(Path(key).absolute()), agent=agent
    )


class RequestSigner:
    """The signer of one reading process."""

    def __init__(self, options: SigningOptions, clock: Clock) -> None:
        self._key = IdentityKey.read(Path(options.key))
        self._agent = f'"{options.agent}"'
        self._clock = clock
        self._always = options.sign == "always"
        self._hosts = AskingHosts(Path(options.hosts) if options.hosts else None)

    def headers(self, url: str, others: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """`others` with those of a signature, if the URL's host is to get one."""
        if not self._always and authority(url) not in self._hosts:
            return others
        created = int(self._clock.time())
        nonce = base64.b64encode(os.urandom(18)).decode()
        found = self._key.sign(
            LABEL,
            (('"@authority"', _host_header(authority(url))), (f'"signature-agent";key="{LABEL}"', self._agent)),
            f';created={created};expires={created + LIFETIME};keyid="{self._key.thumbprint}";alg="ed25519"'
            f';nonce="{nonce}";tag="{TAG}"',
        )
        return {
            **(others or {}),
            "Signature-Agent": f"{LABEL}={self._agent}",
            "Signature-Input": found.inputs,
            "Signature": found.signature,
        }

    def asked(self, url: str, reply: Reply) -> bool:
        """Note whether an answer asks for signatures. True: it refuses the request for want of one, so the next try of
        it, which is signed, is another request."""
        if self._always or "Accept-Signature" not in reply.headers:
            return False
        return self._hosts.add(authority(url)) and reply.status >= 400

    def add(self, host: str) -> bool:
        """A host (authority) showed a challenge: it gets signatures from now on. Tell whether it got none before."""
        return not self._always and self._hosts.add(host)


class AskingHosts:
    """Hosts that asked for signatures, by authority. `path`: their file, one a line; several processes append to it,
    each line with one write. A name that a power cut takes is asked for once more."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            text = path.read_text("utf-8", "replace") if path is not None and path.exists() else ""
        except OSError as error:
            raise MachineError(f"{path}: {error.strerror}") from error
        self._hosts = dict.fromkeys(text.split("\n")[:-1][-MOST_HOSTS:])

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def add(self, host: str) -> bool:
        """Tell whether the host is a new one."""
        if host in self._hosts:
            return False
        self._hosts[host] = None
        if len(self._hosts) > MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        if self._path is not None:
            try:
                with self._path.open("ab", buffering=0) as file:
                    file.write(f"{host}\n".encode())
            except OSError as error:
                _log.warning("%s: %s: %s is asked again after a restart", self._path, error.strerror, host)
        return True


@lru_cache(maxsize=4096)
def _host_header(place: str) -> str:
    """An authority as the Host header has it, which is what a server compares: without a dot at the name's end."""
    return _TRAILING_DOT.sub("", place)
