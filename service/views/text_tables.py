"""Formats rows and fields for people. Canonical URLs are printable ASCII; the rest is numbers and words of ours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xyro.wire.text import figure, printable

FARTHEST = 2.0
ROOM, LEAST_ROOM = 40, 16
"""columns from which on a URL is cut to fit beside a row, and below which nothing is cut"""
SETTLED = 0.2
"""residual, an L1 distance, up to which importance has settled"""
QUIET = ("doubted_hosts", "waiting_loads", "versions", "bodies", "bodies_bytes", "mean_size", "mean_depth",
         "stale_reports")  # fmt: skip
"""fields of `status` that are shown only where they are not 0"""
UNSHOWN = ("limits", "troubled_hosts", "failed_pages", "breeding", "recent_reads", "recent_errors", "work",
           "bandwidth", "convergence")  # fmt: skip
"""fields of `status` that its first lines are made of (service/views/limits.py)"""


def audit_text(report: Mapping[str, Any]) -> str:
    """Format `xyro audit`: whether all holds, and each sentence about what does not, or is not known."""
    missing: Sequence[str] = report.get("missing", ())
    word = "BROKEN" if report["violations"] else "incomplete" if missing else "holds"
    sums = f"{report['pages']:,} pages, {report['cash_total']:,} units of cash"
    if missing:
        sums = f"{'; '.join(missing)}. Of the others: {sums}"
    else:
        sums += (
            f", {report['cash_expected']:,} minted; {report['virtual']:,} virtual, {report['in_flight']:,} in flight"
        )
        if excess := report.get("excess"):
            sums += f"; {excess:,} of them paid out twice since a partition was restored, to be taken back"
    return "\n".join([printable(f"{word}: {sums}", 2_000), *(f"  {printable(v, 500)}" for v in report["violations"])])


def middle_cut(text: str, room: int) -> str:
    """A text in so many columns: what does not fit is cut out of its middle, for URLs differ at both ends."""
    if len(text) <= room or room < LEAST_ROOM:
        return text
    head = (room - 1) * 3 // 5
    return f"{text[:head]}…{text[head + 1 - room :]}"


def pages_table(rows: Sequence[Mapping[str, Any]], by: str, width: int = 0) -> str:
    """Format `xyro top`: aligned columns, URLs last. Cash is counted in pages' worth and stands beside importance.

    width: columns of the terminal, 0 = no bound. A URL that does not fit is cut in the middle, or has its own line.
    """
    if by == "site":
        return sites_table(rows)
    beside, wide, digits = ("cash", 7, 3) if by == "importance" else ("importance", 10, 4)
    lines = [f"{by:>10}  {beside:>{wide}}  {'reads':>5}  {'changes/day':>11}  {'next read':20}  url"]
    for row in rows:
        shown = {"importance": row["importance"], "cash": row["cash"] / 65_536}
        rate = "-" if row["change_rate"] is None else figure(row["change_rate"])
        first, second = figure(shown.get(by, row["score"]), 4), figure(shown[beside], digits)
        line = f"{first:>10}  {second:>{wide}}  {row['reads']:5d}  {rate:>11}  {row['next_read'] or '-':20}  "
        lines += url_lines(line, row["url"], width)
    if rows and by != "cash":
        values = rows[0]
        lines.append(f"{settled_phrase(values['convergence'])}; {error_phrase(values['error_bound'])}")
    return "\n".join(lines)


def url_lines(line: str, url: str, width: int) -> list[str]:
    """A row that ends with a URL: in one line, cut to `width` columns (0: uncut), or the URL below it."""
    room = width - len(line)
    if not width or len(url) <= room or room >= ROOM:
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
    if "freshness" in values and values["freshness"] is None:
        values = {**values, "freshness": _why_unknown(values)}
        values |= dict.fromkeys(("freshness_model", "missed_changes"))  # the prior's, that no read has tested
    return {name: value for name, value in values.items() if name not in zero and _shown(value) not in ("-", "none")}


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
