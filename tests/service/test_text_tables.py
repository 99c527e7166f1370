"""What people are shown of numbers: lines that say nothing are left out, a bound that bounds nothing says so."""

import pytest
from rich.cells import cell_len

from xyro.opic import confidence
from xyro.service.views.host_standing import COLUMNS, COSTS, first_hosts, hosts_table
from xyro.service.views.importance_bounds import importance_sentences
from xyro.service.views.text_tables import (
    FARTHEST,
    QUIET,
    error_phrase,
    field_lines,
    folded,
    informative_fields,
    pages_table,
    settled_phrase,
    url_lines,
)
from xyro.wire.text import middle_cut

SAID = {"importance": 2.0, "importance_low": 1.0, "importance_high": 4.0, "convergence": 0.5, "error_bound": 0.25,
        "trend": 0.6931471805599453, "trend_low": 0.1, "trend_high": 1.0, "trend_day": 0.09531017980432493,
        "trend_day_low": 0.0, "trend_day_high": 0.2}  # fmt: skip


def test_a_bound_that_holds_of_any_two_is_none():
    assert FARTHEST == confidence.FARTHEST
    assert "no bound yet" in error_phrase(FARTHEST)
    assert "probably at most 12.5% of it lies on the wrong pages" in error_phrase(0.25)


def test_how_far_the_importances_have_settled_is_said_in_words():
    assert settled_phrase(FARTHEST) == "importance has not settled yet"
    assert (
        settled_phrase(0.96) == "importance is settling: one more pass along the links would move at most 48.0% of it"
    )
    assert settled_phrase(0.1).startswith(
        "importance has settled: one more pass along the links would move at most 5.0%"
    )


def test_lines_that_say_nothing_are_left_out():
    status = {"known": 0, "running": False, "cost": None, "queue": {"scout": 0}, "clusters": [], "doubted_hosts": 0}
    assert informative_fields(status) == {"known": 0, "running": False}
    news = {"queue": {"scout": 3, "discover": 0}, **dict.fromkeys(QUIET, 2)}
    assert informative_fields(news) == news


def test_freshness_that_is_not_known_is_said_in_words():
    assert informative_fields({"freshness": None, "freshness_low": None}).keys() == {"freshness"}
    prior = {"freshness": None, "freshness_model": 1.0, "missed_changes": 0.0, "known": 1}
    assert informative_fields(prior).keys() == {"freshness", "known"}, "a prior that no read has tested says nothing"
    assert "freshness  not known yet" in field_lines(informative_fields({"freshness": None}))
    interval = {"freshness": 0.5, "freshness_low": 0.25, "freshness_high": 0.75, "freshness_evidence": 4.0}
    known = {"freshness_model": 0.6, "missed_changes": 0.1}
    headline = "0.5 (95 % interval: 0.25 to 0.75)"
    assert informative_fields({**interval, **known}) == {"freshness": headline, **known}
    young = informative_fields({**interval, **known, "freshness_evidence": 0.3})["freshness"]
    assert young == f"{headline}; hardly tested yet: so far, reads were expected to show 0.3 changes"


@pytest.mark.parametrize("width", [60, 80, 132])
def test_lines_are_folded_below_their_value_and_no_word_is_cut(width):
    url = "http://a.example/" + "b" * 70
    fields = {"seconds": 2, "states": {f"state-{n}": 1_000 * n for n in range(1, 12)}, "url": url}
    text = f"{'word ' * 50}\n{field_lines(fields)}\n{url} {url}"
    lines = folded(text, width).splitlines()
    assert all(len(line) <= width or line == line.strip() for line in lines)
    assert " ".join(text.split()) == " ".join(" ".join(lines).split()), "nothing is lost, and no word is cut"
    assert folded(text, 0) == text
    (first,) = (number for number, line in enumerate(lines) if line.startswith(" states  state-1"))
    below = lines[first + 1]
    assert width > 120 or len(below) - len(below.lstrip()) == len(" states  ")


def test_hosts_fit_into_eighty_columns():
    row = {"read": 4_389, "orders": 5_008, "unread": 12_345, "most_unread": 320_512, "poor": 70_000, "credit": 613.2,
           "introduced": 1_234, "waiting": 98_765, "failures": 12}  # fmt: skip
    name = "a-host-of-a-very-long-name.below.another-name.example.org:8080"
    rows = [
        {"host": name, **row, "site": None, "held": None},
        {"host": "b.example", **row, "site": "*.example", "held": "paused"},
    ]
    head, first, second, held, site = hosts_table(rows, 80).splitlines()
    assert held == "    paused: `xyro resume b.example` lifts it"
    assert {len(head), len(first), len(second)} == {80} and "…" in first and first.startswith("a-host")
    assert head.split() == ["host", *COLUMNS.values()] and len(second.split()) == len(head.split())
    assert site == "    [[sites]] *.example" and name in hosts_table(rows)


@pytest.mark.parametrize(
    "by, names, figures",
    [
        ("importance", ["importance", "cash"], ["4", "0.5"]),
        ("cash", ["cash", "importance"], ["0.5", "4"]),
        ("stale", ["score", "stale", "importance"], ["3", "0.75", "4"]),
        ("read", ["importance", "cash"], ["4", "0.5"]),
        ("rising", ["growth", "importance"], ["3", "4"]),
    ],
)
def test_two_columns_of_top_never_say_the_same(by, names, figures):
    score = 4.0 if by == "importance" else 3.0
    page = {"url": "http://a.example/", "importance": 4.0, "cash": 32_768, "reads": 1, "score": score, "stale": 0.75}
    row = {**page, **dict.fromkeys(("change_rate", "rate_from", "next_read")), "convergence": 2.0, "error_bound": 2.0}
    head, line, *_ = pages_table([row], by).splitlines()
    assert head.split()[: len(names)] == names and line.split()[: len(names)] == figures
    assert head.index(" url") == line.index(" http")


@pytest.mark.parametrize("by", ["importance", "read", "cash", "stale", "rising", "site"])
def test_a_table_without_rows_is_a_sentence(by):
    assert pages_table([], by).startswith("No page ") and pages_table([], by)[-1] in ".)"


@pytest.mark.parametrize("room", [16, 17, 40, 41])
def test_wide_letters_are_cut_by_the_columns_that_they_take(room):
    title = "政府采购信息公告管理办法" * 4 + " e\u0301te\u0301 " + "수도권 광역급행철도 운행" * 3
    assert room - 2 <= cell_len(middle_cut(title, room)) <= room
    line = "1  2026-11-26  "
    assert all(cell_len(part) <= 80 for part in url_lines(line, title, 80))


def test_large_numbers_are_written_out():
    page = {
        "url": "u",
        "importance": 12_345.6,
        "cash": 0,
        "reads": 1,
        "score": 1,
        "change_rate": 6_857.3,
        "rate_from": "reads",
    }
    row = {**page, "next_read": None, "convergence": 2.0, "error_bound": 2.0}
    assert pages_table([row], "importance").splitlines()[1].split() == ["12,350", "0", "1", "6,860", "-", "u"]


def test_names_of_fields_end_in_one_column():
    lines = field_lines({"a": 1, "refresh_per_second": 2.5, "state": "read"}).splitlines()
    assert {line.index("  ", len(line) - len(line.lstrip())) for line in lines} == {len("refresh_per_second")}


def test_growth_is_told_in_percent():
    assert (
        "grew: +100 % each time that all cash is passed on (+10.5 % to +172 %), +10 % a day (+0 % to +22.1 %)."
        in importance_sentences(SAID)[1]
    )
    fell = {**SAID, "trend": -0.6931471805599453, "trend_low": -1.0, "trend_high": 0.0}
    assert (
        "fell: -50 % each time that all cash is passed on" in importance_sentences(fell)[1]
        and "may be chance" in importance_sentences(fell)[1]
    )


def test_a_great_growth_has_no_exponent():
    assert "a day (+0 % to +2,840 %)" in importance_sentences({**SAID, "trend_day_high": 3.38})[1]


def test_a_growth_a_day_has_its_interval():
    assert "+10 % a day (+0 % to +22.1 %)" in importance_sentences(SAID)[1]


@pytest.mark.parametrize(
    ("model", "read", "why"),
    [(0.9, 5, "too few changes"), (None, 0, "no page was read"), (None, 5, "reads no page again")],
)
def test_a_status_says_why_it_knows_no_freshness(model, read, why):
    told = informative_fields({"freshness": None, "freshness_model": model, "states": {"read": read}})
    assert why in told["freshness"] and "freshness_model" not in told


def test_hosts_out_of_scope_are_not_among_the_first():
    row = {**dict.fromkeys((*COLUMNS, "site", "held")), **dict.fromkeys(COSTS, 0)}
    rows = [
        {**row, "host": host, "waiting": 0, "orders": 0, "in_scope": in_scope, "held": held}
        for host, in_scope, held in (("in.example", 3, None), ("out.example", 0, None), ("held.example", 0, "blocked"))
    ]
    assert [each["host"] for each in first_hosts(rows, 9)] == ["in.example", "held.example"]


def test_hosts_that_are_none_are_a_sentence():
    assert [hosts_table([], 80, by) for by in ("waiting", "bytes")] == ["No host in scope is known."] * 2
