"""Tests that read from servers run with both clients."""

from __future__ import annotations

import pytest

from tests.xyro import raw_server


@pytest.fixture(params=["fast", "aiohttp"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The client (`[fetch] client`) that raw_server.reading reads with in this test."""
    monkeypatch.setattr(raw_server, "CLIENT", request.param)
    return str(request.param)
