"""Formats rows and fields for people. Canonical URLs are printable ASCII; the rest is numbers and words of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xyro.wire.text import printable

FARTHEST = 2.0
QUIET = ("doubted_hosts", "waiting_loads", "versions", "bodies", "bodies_bytes", "mean_size", "mean_depth",
         "stale_reports")  # fmt: skip
"""fields of `status` that are shown only where they are not 0"""


def pages_table(rows: Sequence[Mapping[str, Any]], by: str) -> str:
    """Format `xyro top`: aligned columns, URLs last. Cash is counted in pages' worth and stands beside importance."""
    if by == "site":
        return sites_table(rows)
    beside, wide, digits = ("cash", 7, 3) if by == "importance" else ("importance", 10, 4)
    lines = [f"{by:>10}  {beside:>{wide}}  {'reads':>5}  {'changes/day':>11}  {'next read':20}  url"]
    for row in rows:
        shown = {"importance": row["importance"], "cash": row["cash"] / 65_536}
        rate = "-" if row["change_rate"] is None else f"{row['change_rate']:.3g}"
        lines.append(
            f"{shown.get(by, row['score']):10.4g}  {shown[beside]:{wide}.{digits}g}  {row['reads']:5d}  {rate:>11}  "
            f"{row['next_read'] or '-':20}  {row['url']}"
        )
    if rows and by != "cash":
        values = rows[0]
        lines.append(f"convergence {values['convergence']:.3g} (not an error); {error_phrase(values['error_bound'])}")
    return "\n".join(lines)


def error_phrase(error: float) -> str:
    """Explain an error bound: L1, of importances of sum 1; any two of them are FARTHEST apart at most."""
    if error >= FARTHEST:
        return "how far all importances together are off is not bounded yet"
    return f"all importances together are off by {error:.3g} of their sum at most"


def informative_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Select the fields that say something: no None, no counts of which none is above 0, no zeros of QUIET."""
    zero = {name for name in QUIET if not values.get(name)}
    return {name: value for name, value in values.items() if name not in zero and _shown(value) not in ("-", "none")}


def sites_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format `xyro top --by site`."""
    lines = [f"{'site rank':>10}  {'from others':>11}  {'internal':>8}  {'importance':>10}  {'pages':>8}  site"]
    for row in rows:
        share = "-" if row["internal_share"] is None else f"{row['internal_share']:.0%}"
        lines.append(
            f"{row['site_rank']:10.4g}  {row['external_inflow']:11.4g}  {share:>8}  {row['importance']:10.4g}  "
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
