"""From Answer to PageReport: every field arrives, and the failure policy is applied."""

from __future__ import annotations

import pytest

from xyro.answer import Answer
from xyro.reports import report_of
from xyro.wire.messages import FetchOrder, Kind, Links, PageReport, Priority

ORDER = FetchOrder(7, "http://h/7", Priority.REFRESH, epoch=3, attempt=1)


def answer(**fields: object) -> Answer:
    return Answer(started=100.0, ended=101.5, **fields)  # type: ignore[arg-type]


def report(said: Answer, host_wait: float = 2.0) -> PageReport:
    return report_of(ORDER, said, host_wait=host_wait, host_failures=0, sitemaps=("http://h/s.xml",))


def test_everything_the_two_have_in_common_arrives() -> None:
    said = answer(
        status=200, kind=Kind.XML, mime="text/xml", charset="utf-8", size=9, signature=b"s" * 16, etag='"e"',
        last_modified="Sun", location="http://h/", links=Links(("http://h/a",), b"\0"), noindex=True, nofollow=True,
        address="192.0.2.1", bytes=5, body=b"<x/>",
    )  # fmt: skip
    made = report(said)
    common = set(Answer.__struct_fields__) & set(PageReport.__struct_fields__)
    assert {name: getattr(made, name) for name in common} == {name: getattr(said, name) for name in common}
    assert (made.page, made.url, made.epoch) == (7, "http://h/7", 3)
    assert made.loading
    assert made.sitemaps == ("http://h/s.xml",)
    assert made.host_next == 103.5


def test_html_never_goes_to_a_loader() -> None:
    assert not report(answer(status=200, kind=Kind.HTML, body=b"<p>")).loading
    assert not report(answer(status=200, kind=Kind.XML)).loading


def test_a_temporary_failure_is_retried_but_not_before_its_host_may_be_read() -> None:
    made = report(answer(error="disconnect"))
    assert (made.final, made.retry_at) == (False, 101.5 + 20.0)  # the second wait of 5 s
    assert report(answer(error="disconnect"), host_wait=500.0).retry_at == 101.5 + 500.0
    assert report(answer(error="disconnect", retry_after=90.0)).retry_at == 101.5 + 90.0


def test_a_final_failure_has_no_retry() -> None:
    made = report(answer(status=404, error="http-404"))
    assert (made.error, made.final, made.retry_at) == ("http-404", True, 0.0)


@pytest.mark.parametrize(
    ("error", "word"), [("truncated", "unspecified"), ("too-large", "length"), ("ratio-too-large", "ratio")]
)
def test_a_body_kept_although_truncated_is_no_failure(error: str, word: str) -> None:
    links = Links(("http://h/a",), b"\0")
    made = report(answer(status=200, error=error, truncated=word, links=links))
    assert (made.error, made.final, made.truncated, made.links) == ("", False, word, links)


def test_without_a_status_even_such_a_failure_has_its_name() -> None:
    made = report(answer(error="truncated"))
    assert (made.error, made.final) == ("truncated", True)


def test_a_clock_set_back_during_the_read_makes_no_invalid_report() -> None:
    made = report(Answer(started=100.0, ended=40.0, status=200))
    assert (made.started, made.ended) == (100.0, 100.0)
