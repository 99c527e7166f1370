"""The secret of a webhook, and the key that it stands for."""

from __future__ import annotations

import base64
import binascii

PREFIX = "whsec_"
MAKE = 'echo "whsec_$(head -c 24 /dev/urandom | base64)"'
"""a line for the shell that makes a secret"""


def signing_key(secret: str) -> bytes:
    """The key of a secret: base64 behind `whsec_`, as the Standard Webhooks write it; else its own characters, of which
    their libraries would make another key. ValueError: it is no base64 there."""
    text = secret.removeprefix(PREFIX)
    if text == secret:
        return secret.encode()
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError(f"expected base64 behind {PREFIX}, got something else; `{MAKE}` makes one")
    return key
