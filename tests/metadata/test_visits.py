"""What a report means: the table of metadata/visits.py, row by row, and the row it leaves behind."""

from __future__ import annotations

import hashlib
import time

import msgspec
import pytest

from xyro.failures import POLICIES
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import State
from xyro.metadata.visits import DAY, Spend, http_date, judge, next_row, with_fault
from xyro.refresh.rate_belief import PageBelief, RatePrior
from xyro.refresh.rate_sums import RateSums
from xyro.wire.messages import Kind, PageReport

NOW = 1_700_000_000.0
BELIEF = PageBelief(RateSums(3.0, 2.5, 1.0), RatePrior.fit(-1.0, 2.0))
OLD, NEW = b"o" * 16, b"n" * 16
READ = RefreshRow(
    first_read=1_600_000_000, last_read=1_690_000_000, last_change=1_650_000_000, signature=OLD, reads=5, changes=2,
    last_modified="yesterday", etag='"1"', quiet_days=1.5, change_sum=2.0, change_days=0.5, rate=1.2, weight=0.5,
    kind=Kind.HTML, status=200,
    mime="text/html", size=100, charset="utf-8",
)  # fmt: skip


def said(**fields):
    given = {"status": 200, "kind": Kind.HTML, "signature": NEW} | fields
    return PageReport(7, "http://h.example/", 3, NOW - 1, NOW, **given)


def bad(error, **fields):
    return said(error=error, signature=b"", kind=Kind.UNKNOWN, **{"status": 0, "final": True} | fields)


def after(report, row):
    return next_row(report, judge(report, row), row, BELIEF, 0.75, 0.25)


# What the loader said against a body

FAULTY = msgspec.structs.replace(READ, fault="not-well-formed", error="not-well-formed")


@pytest.mark.parametrize(
    ("report", "now", "error", "fault"),
    [
        (said(status=304, signature=b""), None, "not-well-formed", "not-well-formed"),
        (said(signature=OLD), None, "not-well-formed", "not-well-formed"),
        (said(signature=OLD), "", "", ""),
        (said(signature=OLD), "missing-part", "missing-part", "missing-part"),
        (said(), None, "", ""),
        (said(), "missing-part", "missing-part", "missing-part"),
        (said(truncated="length", signature=b""), None, "too-large", "too-large"),
        (said(truncated="ratio", signature=b""), None, "ratio-too-large", "ratio-too-large"),
        (said(truncated="disconnect", signature=b""), "", "truncated", "truncated"),
        (said(truncated="length", signature=b""), "not-well-formed", "not-well-formed", "not-well-formed"),
        (said(status=301, location="http://h.example/2", signature=b""), None, "", ""),
        (bad("timeout", final=False), None, "timeout", "not-well-formed"),
        (bad("http-404", status=404), None, "http-404", "not-well-formed"),
        (bad("truncated", status=200), "empty", "empty", "not-well-formed"),
    ],
)
def test_what_the_loader_said_stands_as_long_as_the_body(report, now, error, fault):
    row = next_row(report, judge(report, FAULTY), FAULTY, BELIEF, 0.75, 0.25, now)
    assert (row.error, row.fault) == (error, fault)


def test_a_load_that_ends_later_changes_what_it_has_said_and_nothing_else():
    failed = msgspec.structs.replace(FAULTY, error="timeout")
    assert with_fault(READ, "") == READ
    assert with_fault(FAULTY, "") == READ
    assert with_fault(READ, "not-well-formed") == FAULTY
    cut = msgspec.structs.replace(READ, fault="too-large", error="too-large")
    assert with_fault(cut, "") == cut, "the loader cannot know what it was not given"
    assert with_fault(cut, "not-well-formed") == FAULTY
    assert with_fault(failed, "").error == "timeout"
    assert with_fault(failed, "missing-part").error == "missing-part"


# The table


@pytest.mark.parametrize(
    ("report", "row", "state", "spend", "answered", "changed"),
    [
        (bad("timeout", final=False), READ, State.ERROR, Spend.KEEP, False, None),
        (bad("http-5xx", final=False, status=503), None, State.ERROR, Spend.KEEP, True, None),
        (bad("timeout", final=False, status=200, truncated="time"), READ, State.ERROR, Spend.KEEP, True, None),
        (bad("robots-disallowed"), None, State.DISALLOWED, Spend.KEEP, False, None),
        (bad("blocked-address"), None, State.BLOCKED, Spend.KEEP, False, None),
        (bad("blocked-port"), None, State.BLOCKED, Spend.KEEP, False, None),
        (bad("only-net"), None, State.BLOCKED, Spend.KEEP, False, None),
        (bad("http-404", status=404), READ, State.FAILED, Spend.KEEP, True, None),
        (bad("http-410", status=410), None, State.FAILED, Spend.KEEP, True, None),
        (bad("not-readable", status=200), None, State.FAILED, Spend.KEEP, True, None),
        (bad("timeout"), READ, State.FAILED, Spend.KEEP, False, None),
        (said(status=301, location="http://h.example/2", signature=b""), None, State.READ, Spend.LINKS, True, None),
        (said(status=301, location="http://h.example/2", signature=b""), READ, State.READ, Spend.LINKS, True, True),
        (said(status=304, signature=b""), READ, State.READ, Spend.STORED, True, False),
        (said(signature=OLD), READ, State.READ, Spend.STORED, True, False),
        (said(), READ, State.READ, Spend.LINKS, True, True),
        (said(), None, State.READ, Spend.LINKS, True, None),
        (said(), RefreshRow(error="timeout", failures=2), State.READ, Spend.LINKS, True, None),
        (said(signature=b"", truncated="length"), READ, State.READ, Spend.LINKS, True, None),
        (said(signature=b"", truncated="length"), None, State.READ, Spend.LINKS, True, None),
        (said(kind=Kind.XML, loading=True), None, State.READ, Spend.KEEP, True, None),
        (said(kind=Kind.XML, loading=True), READ, State.READ, Spend.KEEP, True, True),
        (said(kind=Kind.XML, loading=True, signature=OLD), READ, State.READ, Spend.STORED, True, False),
    ],
)
def test_the_table(report, row, state, spend, answered, changed):
    visit = judge(report, row)
    assert (visit.state, visit.spend, visit.answered, visit.changed) == (state, spend, answered, changed)


@pytest.mark.parametrize("row", [RefreshRow(), READ])
@pytest.mark.parametrize(("vendor", "told"), [("empty", "empty"), ("akamai", "challenge")])
def test_an_empty_page_is_told_as_that(row, vendor, told):
    assert after(bad("challenge", status=200, final=False, vendor=vendor), row).error == told


@pytest.mark.parametrize("kind", sorted(POLICIES))
@pytest.mark.parametrize("final", [True, False])
def test_no_failure_moves_cash_or_teaches_a_rate(kind, final):
    visit = judge(bad(kind, final=final), READ)
    assert visit.spend is Spend.KEEP and visit.changed is None and visit.signature == OLD
    assert visit.state is not State.READ and (visit.state is State.ERROR) == (not final)


def test_a_redirect_that_moves_is_a_change():
    first = after(said(status=302, location="http://h.example/a", signature=b""), None)
    assert first.signature == hashlib.md5(b"http://h.example/a").digest() and first.location == "http://h.example/a"
    same = judge(said(status=302, location="http://h.example/a", signature=b""), first)
    assert (same.spend, same.changed) == (Spend.STORED, False)
    moved = judge(said(status=302, location="http://h.example/b", signature=b""), first)
    assert (moved.spend, moved.changed) == (Spend.LINKS, True)


def test_half_a_page_is_neither_a_change_nor_a_new_signature():
    row = after(said(signature=b"", truncated="disconnect"), READ)
    assert row.signature == OLD and row.changes == READ.changes and row.reads == READ.reads + 1
    assert judge(said(signature=OLD), row).changed is False


# Dead pages


def test_dead_after_a_second_404_a_day_later():
    gone = bad("http-404", status=404)
    first = after(gone, READ)
    assert first.gone_since == NOW
    hour = PageReport(7, gone.url, 4, NOW, NOW + 3600, status=404, error="http-404", final=True)
    day = PageReport(7, gone.url, 4, NOW, NOW + DAY, status=410, error="http-410", final=True)
    assert judge(hour, first).state is State.FAILED
    assert after(hour, first).gone_since == NOW, "counted from the first one"
    assert judge(day, first).state is State.DEAD
    assert judge(day, READ).state is State.FAILED, "never gone before"


def test_a_page_that_came_back_is_not_gone():
    back = after(said(), after(bad("http-404", status=404), READ))
    assert back.gone_since == 0.0 and back.error == "" and back.status == 200


# Rows


def test_a_good_read_replaces_what_was_known():
    report = said(etag='"2"', last_modified="today", mime="text/plain", size=5, charset="latin1", noindex=True)
    row = after(report, READ)
    assert (row.first_read, row.last_read, row.last_change) == (READ.first_read, int(NOW), int(NOW))
    assert (row.reads, row.changes, row.signature, row.epoch) == (6, 3, NEW, 3)
    assert (row.etag, row.last_modified, row.mime, row.size, row.charset) == ('"2"', "today", "text/plain", 5, "latin1")
    assert row.noindex and (row.belief, row.rate, row.weight) == (BELIEF, 0.75, 0.25)


def test_a_body_without_validators_leaves_none():
    row = after(said(), READ)
    assert (row.etag, row.last_modified) == ("", "")


def test_a_304_keeps_what_the_body_said():
    row = after(said(status=304, signature=b"", kind=Kind.UNKNOWN), READ)
    assert (row.kind, row.mime, row.size, row.charset) == (Kind.HTML, "text/html", 100, "utf-8")
    assert (row.etag, row.last_modified, row.signature) == ('"1"', "yesterday", OLD)
    assert (row.reads, row.changes, row.last_change) == (6, 2, READ.last_change)


def test_the_first_read_sets_the_dates_and_shows_no_change():
    row = after(said(), RefreshRow(last_change=1_500_000_000))  # a hint out of a sitemap
    assert row.first_read == row.last_read == row.last_change == int(NOW)
    assert (row.reads, row.changes) == (1, 0)


def test_failures_count_in_a_row_and_end_with_an_answer():
    once = after(bad("timeout", final=False), READ)
    twice = after(bad("http-5xx", final=False, status=500), once)
    assert (once.failures, twice.failures, twice.error) == (1, 2, "http-5xx")
    assert (once.reads, twice.reads) == (5, 6), "an answer is a read, whatever it says"
    assert (twice.signature, twice.etag, twice.kind) == (OLD, '"1"', Kind.HTML)
    assert after(said(), twice).failures == 0


def test_a_page_never_answered_was_never_read():
    row = after(bad("dns-timeout", final=False), None)
    assert (row.first_read, row.last_read, row.reads, row.failures) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("kind", "status"), [("http-5xx", 503), ("http-4xx", 403), ("http-429", 429), ("encoding", 200)]
)
@pytest.mark.parametrize("final", [False, True])
def test_an_answer_that_says_nothing_of_the_page_is_no_time_at_which_it_was_seen(kind, status, final):
    later = NOW + 7 * DAY
    report = PageReport(7, bad(kind).url, 4, later, later, status=status, error=kind, final=final)
    assert after(report, READ).last_read == READ.last_read
    assert after(report, None).last_read == 0 < after(report, None).first_read
    assert after(report, READ).reads == READ.reads + 1


def test_a_page_that_is_gone_was_seen_to_be():
    assert after(bad("http-404", status=404), READ).last_read == int(NOW)
    assert after(bad("http-410", status=410), None).last_read == int(NOW)


# Dates


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777.0),
        ("", None),
        ("yesterday", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", None),
        ("0" * 5000, None),
    ],
)
def test_http_dates(text, when):
    assert http_date(text) == when


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("text", ["Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 -0000"])
def test_a_date_without_zone_is_utc_everywhere(monkeypatch, zone, text):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        assert http_date(text) == 784_111_777.0
    time.tzset()


def test_a_clock_that_was_set_back_leaves_no_page_first_read_after_it_was_read_last():
    row = after(said(), msgspec.structs.replace(READ, first_read=int(NOW) + 60, last_read=int(NOW) + 60))
    assert row.first_read == row.last_read == int(NOW)


def test_the_first_sight_of_a_page_that_had_been_asked_for_in_vain_is_its_last_change():
    busy = after(bad("http-5xx", status=503, final=False, retry_at=NOW + 1), None)
    assert (busy.reads, busy.last_read, busy.last_change) == (1, 0, 0)
    assert after(said(), busy).last_change == int(NOW)
