"""The directory of keys that sites look a signature's key up in, and the headers that it is served with.

draft-meunier-http-message-signatures-directory: a JWK set at a well-known path, of a media type of its own, its
response signed by each key that it lists, for the authority that it is served at: so nobody can show it as theirs.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass

from xyro.identity_key import IdentityKey

PATH = "/.well-known/http-message-signatures-directory"
TYPE = "application/http-message-signatures-directory+json"
TAG = "http-message-signatures-directory"
LABEL = "binding0"
CACHED = 86_400
"""seconds for which a site may keep it: a key that is taken out counts no longer after that"""


@dataclass(frozen=True, slots=True)
class KeyDirectory:
    """The body, and the headers of a response that brings it."""

    body: bytes
    headers: dict[str, str]


def key_directory(key: IdentityKey, authority: str, created: int, expires: int) -> KeyDirectory:
    """The directory of one key, served at `authority`; its signature holds from `created` to `expires` (seconds)."""
    jwk = {"kty": key.jwk["kty"], "crv": key.jwk["crv"], "kid": key.thumbprint, "x": key.jwk["x"], "use": "sig"}
    body = json.dumps({"keys": [jwk]}, separators=(",", ":")).encode()
    digest = f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
    signed = key.sign(
        LABEL,
        (('"@authority";req', authority), ('"content-digest"', digest)),
        f';created={created};keyid="{key.thumbprint}";alg="ed25519";expires={expires};tag="{TAG}"',
    )
    return KeyDirectory(
        body,
        {
            "Content-Type": TYPE,
            "Cache-Control": f"max-age={CACHED}",
            "Content-Digest": digest,
            "Signature-Input": signed.inputs,
            "Signature": signed.signature,
        },
    )
