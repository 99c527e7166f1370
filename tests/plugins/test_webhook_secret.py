"""What signs a webhook, judged by the official library of Standard Webhooks, and by the lines of docs/data.md."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import re
import secrets
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from xyro.configs.load import load
from xyro.configs.schema import SinkTable
from xyro.configs.webhook_secret import MAKE, signing_key
from xyro.plugins.changes.sink_targets import WebhookTarget
from xyro.plugins.changes.sinks import target_of
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError

ROOT = Path(__file__).parents[2]
BODY = json.dumps({"sink": "hook", "changes": [{"url": "http://a.example/\u00e4"}]}).encode()
SITE = '[[sinks]]\nname = "hook"\nurl = "http://127.0.0.1:9/"\nsecret = '


def headers(secret: str) -> dict[str, str]:
    return WebhookTarget("hook", "http://127.0.0.1:9/", secret, None, time.time).headers(BODY)


@pytest.mark.parametrize("size", [1, 16, 24, 25, 64])
def test_the_official_library_verifies_with_the_secret_as_it_stands_in_the_settings(size: int) -> None:
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(size)).decode()
    for written in (secret, secret.rstrip("=")):
        assert Webhook(secret).verify(BODY, headers(written)) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(BODY + b" ", headers(secret))


def test_the_secret_of_the_guide_verifies() -> None:
    guide, data = ((ROOT / "docs" / name).read_text("utf-8") for name in ("guide.md", "data.md"))
    (secret,) = re.findall(r'^secret = "(.*?)"', guide, re.MULTILINE)
    assert Webhook(secret).verify(BODY, headers(secret))
    assert f'Webhook("{secret}")' in data and MAKE in guide and MAKE in data


def test_plain_words_are_verified_as_data_md_says_and_the_log_warns_that_libraries_refuse_them(caplog) -> None:
    sent = headers("any words")
    signed = f"{sent['webhook-id']}.{sent['webhook-timestamp']}.".encode() + BODY
    expected = "v1," + base64.b64encode(hmac.digest(b"any words", signed, "sha256")).decode()
    assert sent["webhook-signature"] == expected
    with pytest.raises(WebhookVerificationError):
        Webhook("any words, 12").verify(BODY, headers("any words, 12"))
    services = SimpleNamespace(settings=load(), clock=SystemClock(), followed=[])
    with caplog.at_level(logging.WARNING):
        target_of(SinkTable(name="hook", url="http://127.0.0.1:9/", secret="any words"), services)
        assert "plain words" in caplog.text and "any words" not in caplog.text
        caplog.clear()
        target_of(SinkTable(name="hook", url="http://127.0.0.1:9/", secret="whsec_MfKQ9r8G"), services)
        assert not caplog.text


@pytest.mark.parametrize("secret", ["whsec_", "whsec_any words", "whsec_a", "whsec_MfKQ-r8_"])
def test_no_base64_behind_whsec_is_refused_without_telling_it(secret: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected base64 behind whsec_"):
        signing_key(secret)
    file = tmp_path / "watch.toml"
    file.write_text(f'{SITE}"{secret}"\n')
    with pytest.raises(InputError, match="secret: expected base64 behind whsec_") as refused:
        load([file], {}, {})
    assert secret.removeprefix("whsec_") in ("", "a") or secret.removeprefix("whsec_") not in str(refused.value)
