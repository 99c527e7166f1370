"""Formats rows and fields for people. Canonical URLs are printable ASCII; the rest is numbers and words of ours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xyro.wire.text import columns_of, counted, figure, middle_cut, printable

FARTHEST = 2.0
ROOM = 40
"""columns from which on a URL is cut to fit beside a row"""
SETTLED = 0.2
"""residual, an L1 distance, up to which importance has settled"""
QUIET = ("doubted_hosts", "waiting_loads", "versions", "bodies", "bodies_bytes", "mean_size", "mean_depth",
         "stale_reports", "cut_short", "textless")  # fmt: skip
"""fields of `status` that are shown only where they are not 0"""
TESTED = 4.0
"""changes that reads were expected to show, from which on they weigh more than what is assumed before any read (DOUBT
of refresh/calibration.py)"""
UNSHOWN = ("freshness_low", "freshness_high", "freshness_evidence", "limits", "troubled_hosts", "failed_pages",
           "breeding", "recent_reads", "recent_errors", "work", "bandwidth", "convergence", "bounded_crawl",
           "bounded_reads", "troubled_nodes")  # fmt: skip
"""fields of `status` that are told beside others, or in its first lines (service/views/limits.py)"""


_IMPORTANCE, _CASH = ("importance", 10, "importance", 4), ("cash", 7, "cash", 3)
_COLUMNS = {
    "importance": (_IMPORTANCE, _CASH),
    "cash": (("cash", 10, "cash", 4), _IMPORTANCE),
    "stale": (("score", 10, "score", 4), ("stale", 7, "stale", 3), _IMPORTANCE),
    "read": (_IMPORTANCE, _CASH),
    "rising": (("growth", 10, "score", 4), _IMPORTANCE),
}
"""first columns of `xyro top` by its order: title, width, field of the row, digits"""
_NO_ROWS = {
    "stale": "No page was read yet, or what was read is gone.",
    "rising": "No page has grown by more than chance explains. (Growth shows once all cash was passed on some times.)",
    "read": "No page was read yet, or what was read is gone.",
    "site": "No page is known, so there are no sites.",
}


def audit_text(report: Mapping[str, Any]) -> str:
    """Format `xyro audit`: whether all holds, and each sentence about what does not, or is not known."""
    missing: Sequence[str] = report.get("missing", ())
    word = "BROKEN" if report["violations"] else "incomplete" if missing else "holds"
    sums = f"{counted(report['pages'], 'page')}, {report['cash_total']:,} units of cash"
    if missing:
        sums = f"{'; '.join(missing)}. Of the others: {sums}"
    else:
        sums += (
            f", {report['cash_expected']:,} minted; {report['virtual']:,} virtual, {report['in_flight']:,} in flight"
        )
        if excess := report.get("excess"):
            sums += f"; {excess:,} of them paid out twice since a partition was restored, to be taken back"
    return "\n".join([printable(f"{word}: {sums}", 2_000), *(f"  {printable(v, 500)}" for v in report["violations"])])


def pages_table(rows: Sequence[Mapping[str, Any]], by: str, width: int = 0) -> str:
    """Format `xyro top`: aligned columns, URLs last; a sentence where there is none. Cash is counted in pages' worth.

    width: columns of the terminal, 0 = no bound. A URL that does not fit is cut in the middle, or has its own line.
    """
    if not rows:
        return _NO_ROWS.get(by, "No page is known.")
    if by == "site":
        return sites_table(rows)
    columns = _COLUMNS[by]
    titles = "  ".join(f"{title:>{wide}}" for title, wide, _, _ in columns)
    lines = [f"{titles}  {'reads':>5}  {'changes/day':>11}  {'next read':20}  url"]
    for row in rows:
        values = {**row, "cash": row["cash"] / 65_536}
        cells = "  ".join(f"{_figure(values[name], digits):>{wide}}" for _, wide, name, digits in columns)
        line = f"{cells}  {row['reads']:5d}  {_rate(row):>11}  {row['next_read'] or '-':20}  "
        lines += url_lines(line, row["url"], width)
    if any(row.get("rate_from") == "others" for row in rows):
        lines.append("(changes/day): no read has shown yet how often this page changes; assumed as of others like it")
    if by == "stale":
        lines.append("score = importance x stale, the probability that the page has changed since its last read")
    if by != "cash":
        first = rows[0]
        lines.append(f"{settled_phrase(first['convergence'])}; {error_phrase(first['error_bound'])}")
    return "\n".join(lines)


def _rate(row: Mapping[str, Any]) -> str:
    """Changes a day; in brackets where nothing was shown of the page itself."""
    if row["change_rate"] is None:
        return "-"
    return f"({figure(row['change_rate'])})" if row.get("rate_from") == "others" else figure(row["change_rate"])


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else figure(value, digits)


def url_lines(line: str, url: str, width: int) -> list[str]:
    """A row that ends with a URL: in one line, cut to `width` columns (0: uncut), or the URL below it."""
    room = width - len(line)
    if not width or columns_of(url) <= room or room >= ROOM:
        return [line + (middle_cut(url, room) if width else url)]
    return [line.rstrip(), f"    {middle_cut(url, width - 4)}"]


def settled_phrase(convergence: float) -> str:
    """Explain the bound of a residual, an L1 distance of importances of sum 1."""
    if convergence >= FARTHEST:
        return "importance has not settled yet"
    settled = "has settled" if convergence <= SETTLED else "is settling"
    return f"importance {settled}: one more pass along the links would move at most {convergence / 2:.1%} of it"


def error_phrase(error: float) -> str:
    """Explain an error bound: L1, of importances of sum 1; any two of them are FARTHEST apart at most."""
    if error >= FARTHEST:
        return "its error has no bound yet"
    return f"probably at most {error / FARTHEST:.1%} of it lies on the wrong pages"


def informative_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Select the fields that say something: no None, no counts of which none is above 0, no zeros of QUIET."""
    zero = {*UNSHOWN, *(name for name in QUIET if not values.get(name))}
    if "freshness" in values:
        measured = values["freshness"] is not None
        values = {**values, "freshness": _freshness(values) if measured else _why_unknown(values)}
        if not measured:
            values |= dict.fromkeys(("freshness_model", "missed_changes"))  # the prior's, that no read has tested
    return {name: value for name, value in values.items() if name not in zero and _shown(value) not in ("-", "none")}


def _freshness(values: Mapping[str, Any]) -> str:
    """Freshness with its interval, and what it rests on while that is little."""
    text = f"{values['freshness']} (95 % interval: {values['freshness_low']} to {values['freshness_high']})"
    if (expected := values["freshness_evidence"]) >= TESTED:
        return text
    return f"{text}; hardly tested yet: so far, reads were expected to show {expected:g} changes"


def _why_unknown(values: Mapping[str, Any]) -> str:
    """Why a status has no freshness."""
    if values.get("freshness_model") is not None:
        return "not known yet: too few changes were found to tell"
    if not values.get("states", {}).get("read"):
        return "not known yet: no page was read"
    return "not known: this crawl reads no page again (`xyro serve` does, and `xyro crawl --refresh`)"


def wrapped(lines: Iterable[str], width: int = 80) -> str:
    """Format sentences at the width of a terminal; a URL gets a line of its own rather than to be cut."""
    return "\n".join(
        part
        for line in lines
        for part in textwrap.wrap(
            printable(line, 4000), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    )


_NAME = re.compile(r" *\S+(?: \S+)*  +(?=\S)")


def folded(text: str, width: int) -> str:
    """Fold the lines of a text that are wider than a terminal of `width` columns (0: none are), at blanks; what follows
    stands below the value of a line of name and value. A word that is wider, such as a URL, stays whole."""
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width)) if width else text


def _folded(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    name = _NAME.match(line)
    indent = name.end() if name is not None and name.end() <= width // 2 else 2
    parts = textwrap.wrap(
        line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False,
    )  # fmt: skip
    return [part if len(part) <= width else part.strip().rjust(width) for part in parts]


def sites_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format `xyro top --by site`."""
    lines = [f"{'site rank':>10}  {'from others':>11}  {'internal':>8}  {'importance':>10}  {'pages':>8}  site"]
    for row in rows:
        share = "-" if row["internal_share"] is None else f"{row['internal_share']:.0%}"
        lines.append(
            f"{figure(row['site_rank'], 4):>10}  {figure(row['external_inflow'], 4):>11}  {share:>8}  "
            f"{figure(row['importance'], 4):>10}  "
            f"{row['pages']:8,}  {row['site']}"
        )
    return "\n".join(lines)


def field_lines(values: Mapping[str, Any]) -> str:
    """Format a name and a value a line; of counts, those that are not 0."""
    wide = max(map(len, values), default=0)
    return "\n".join(
        f"{name.replace('_', ' '):>{wide}}  {printable(_shown(value), 4000)}" for name, value in values.items()
    )


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{name} {_shown(count)}" for name, count in value.items() if count) or "none"
    if isinstance(value, list):
        return "; ".join(map(_shown, value)) or "none"
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
