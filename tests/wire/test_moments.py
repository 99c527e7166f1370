"""Moments: what people write for a time, in all commands."""

import pytest

from xyro.wire.errors import InputError
from xyro.wire.moments import moment, moment_of

NOW = 1_795_689_000.0  # 2026-11-26T10:30:00Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-25", 1_795_564_800.0),
        ("2026-11-25T10:30:00Z", 1_795_602_600.0),
        ("2026-11-25 10:30", 1_795_602_600.0),
        ("2026-11-25T11:30:00+01:00", 1_795_602_600.0),
        ("yesterday", 1_795_564_800.0),
        ("Today", 1_795_651_200.0),
        ("now", NOW),
        ("24h", NOW - 86_400),
        ("1d", NOW - 86_400),
        ("1.5h ago", NOW - 5_400),
        (" 90 s", NOW - 90),
        ("9999w", 0.0),
    ],
)
def test_moments(text: str, seconds: float) -> None:
    assert moment(text, "--since", NOW) == seconds


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-99", "26.11.2026", "24", "-1d", "24 hours", "kZPNAZHOawPTYAA"])
def test_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    assert moment_of(text, NOW) is None
    with pytest.raises(InputError, match=r"^--since: expected a time such as 2026-11-25, .* yesterday, .* 24h "):
        moment(text, "--since", NOW)
