"""Dates as they are met in feeds and sitemaps, by what the same moment is in the standard form."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.dates import feed_time, w3c_time

NOON = datetime(2023, 7, 2, 12, 0, 5, tzinfo=UTC).timestamp()
MIDNIGHT = datetime(2023, 7, 3, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 02 Jul 2023 12:00:05 GMT",
        "sun, 2 jul 2023 12:00:05 gmt",
        "Sun, 02 Jul 23 12:00:05 +0000",
        "02 Jul 2023 14:00:05 CEST",
        "Sun, 02 Jul 2023 14:00:05 (CEST)",
        "Sun, 02 Jul 2023 13:00:05 BST",
        "Sun, 02 Jul 2023 21:00:05 JST",
        "Sun, 02 Jul 2023 08:00:05 EDT",
        "Sun, 02 Jul 2023 12:00:05",
        "Tue, 02 Jul 2023 12:00:05 GMT",  # it was a Sunday
        "  2023-07-02T12:00:05Z ",
        "2023-07-02 12:00:05",
        "2023-7-2T12:00:05Z",
        "2023-07-02T14:00:05+02:00",
        "2023-07-02T14:00:05 +0200",
        "2023-07-02 12:00:05 UTC",
        "2023-07-02T12:00:05.000+00:00",
        "20230702T120005Z",
        "Sun, 02 Jul 2023 14:00:05 +02:00",
    ],
)
def test_one_moment(text: str) -> None:
    assert feed_time(text) == NOON


@pytest.mark.parametrize(
    "text", ["Sun, 02 Jul 2023 24:00:00 GMT", "2023-07-02T24:00:00Z", "2023-7-2 24:00", "2023-07-03"]
)
def test_midnight_by_its_other_name(text: str) -> None:
    assert feed_time(text) == MIDNIGHT


@pytest.mark.parametrize(
    "text",
    [
        "2023-13-01",
        "2023-02-30T00:00:00Z",
        "2023-07-02T25:00:00Z",
        "2023-07-02T12:61",
        "today",
        "Mon, 01 Jan 0001 00:00:00 GMT",
    ],
)
def test_no_date(text: str) -> None:
    assert feed_time(text) is None


@given(st.text(alphabet="0123456789-:TZ+. ADEGJMNSTUaceglnoprtuvy,", max_size=40))
def test_whatever_looks_like_a_date_is_one_or_none(text: str) -> None:
    assert isinstance(feed_time(text), float | None)
    assert isinstance(w3c_time(text), float | None)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_zones_of_minutes(when: datetime, minutes: int) -> None:
    sign, size = "-" if minutes < 0 else "+", abs(minutes)
    text = f"{when:%Y-%m-%d %H:%M} {sign}{size // 60:02}{size % 60:02}"
    expected = when.replace(tzinfo=UTC, second=0, microsecond=0).timestamp() - 60 * minutes
    assert feed_time(text) == expected
