"""Judges signed requests by a library that is none of ours (http-message-signatures)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms


@dataclass
class ReceivedRequest:
    """A request as a server has it."""

    method: str
    url: str
    headers: dict[str, str]

    @classmethod
    def of(cls, head: str, scheme: str = "http") -> ReceivedRequest:
        """Of the head of a request. Its URL is built of the Host header, as a server would."""
        first, *lines = head.rstrip("\r\n").split("\r\n")
        headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, target, _ = first.split(" ")
        return cls(method, f"{scheme}://{headers['Host']}{target}", headers)


class KeyDirectory(HTTPSignatureKeyResolver):
    """Public keys by `kid`, of a key directory (JWKS)."""

    def __init__(self, jwks: dict[str, Any]) -> None:
        self.keys = {key["kid"]: _unpadded(key["x"]) for key in jwks["keys"]}

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.keys[key_id])

    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:
        raise KeyError(key_id)


def verify(request: ReceivedRequest, directory: KeyDirectory) -> str:
    """Check the one signature of a request as Web Bot Auth says; return its nonce. Raises where it is not good."""
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=directory)
    (found,) = verifier.verify(
        request,
        max_age=timedelta(minutes=5),
        expect_tag="web-bot-auth",
        require_components=("@authority", '"signature-agent";key="sig1"'),
    )
    assert 0 < int(found.parameters["expires"]) - int(found.parameters["created"]) <= 86_400
    return str(found.nonce)


def pem_of(jwk: dict[str, str], path: Path) -> Path:
    """A private key of a standard's examples as a file."""
    private = Ed25519PrivateKey.from_private_bytes(_unpadded(jwk["d"]))
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
