"""The crawler's key: Ed25519, in a file of its own; what it signs, and the names by which others know it.

Signatures are those of RFC 9421 (HTTP Message Signatures). Keys are named and published as Web Bot Auth says: by the
thumbprint of their JWK (RFC 7638, RFC 8037). `cryptography` signs; http-message-signatures does the same from a whole
request at ten times the cost (232 us beside 27), so the few lines that are signed are put together here, and the tests
let that library judge them.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Covered = Iterable[tuple[str, str]]
"""what a signature covers: (identifier as it is serialized, such as '"@authority"', value)"""


class MessageSignature(NamedTuple):
    """One signature, as members of the headers Signature-Input and Signature."""

    inputs: str
    signature: str


class IdentityKey:
    """A private key and its public names."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": _base64url(private.public_key().public_bytes_raw())}
        """the public key (RFC 8037)"""
        self.thumbprint = _thumbprint(self.jwk)
        """`kid` of the key, `keyid` of its signatures"""

    @classmethod
    def read(cls, path: Path) -> IdentityKey:
        """The key of a file. InputError: there is none, or `cryptography` is missing."""
        _check_cryptography()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            found = load_pem_private_key(path.read_bytes(), password=None)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}: `xyro identity` makes a key") from error
        except (ValueError, TypeError) as error:  # TypeError: it wants a password
            raise InputError(f"{path}: no private key in PEM without a password: name another file") from error
        if not isinstance(found, Ed25519PrivateKey):
            raise InputError(f"{path}: the key is not of Ed25519: `xyro identity` makes one under another name")
        return cls(found)

    @classmethod
    def make(cls, path: Path) -> IdentityKey:
        """A new key in a new file that its owner alone may read. InputError: there is such a file, or none can be."""
        _check_cryptography()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        private = Ed25519PrivateKey.generate()
        text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}: no key was written; name another file") from error
        return cls(private)

    def sign(self, label: str, covered: Covered, parameters: str) -> MessageSignature:
        """Sign what is covered (RFC 9421 3.1). `parameters`: with a semicolon before each; `keyid` is among them."""
        lines = list(covered)
        inputs = f"({' '.join(name for name, _ in lines)}){parameters}"
        base = "".join(f"{name}: {value}\n" for name, value in lines) + f'"@signature-params": {inputs}'
        signature = base64.b64encode(self._private.sign(base.encode("ascii"))).decode()
        return MessageSignature(f"{label}={inputs}", f"{label}=:{signature}:")


def _thumbprint(jwk: dict[str, str]) -> str:
    """RFC 7638: the members in the order of their names, without blanks."""
    text = f'{{"crv":"{jwk["crv"]}","kty":"{jwk["kty"]}","x":"{jwk["x"]}"}}'
    return _base64url(hashlib.sha256(text.encode()).digest())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _check_cryptography() -> None:
    """InputError: the package that signs is missing."""
    if find_spec("cryptography") is None:
        raise InputError(
            "[identity]: signing needs the package cryptography: pip install 'xyro[identity]', or sign = \"never\""
        )
