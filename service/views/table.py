"""Rows and fields for people. Canonical URLs are printable ASCII; everything else is numbers and words of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xyro.wire.text import printable

FARTHEST = 2.0
QUIET = ("doubted_hosts", "waiting_loads", "versions", "bodies", "bodies_bytes", "mean_size", "mean_depth",
         "stale_reports")  # fmt: skip
"""of `status`: what is told where it is not 0"""


def table(rows: Sequence[Mapping[str, Any]], by: str) -> str:
    """`top` for people: aligned columns, URLs last. Cash is counted in pages' worth, and told beside importance."""
    if by == "site":
        return sites(rows)
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
        said = rows[0]
        lines.append(f"convergence {said['convergence']:.3g} (not an error); {bounded(said['error_bound'])}")
    return "\n".join(lines)


def bounded(error: float) -> str:
    """What an error bound says: L1, of importances of sum 1; any two such are FARTHEST apart at most."""
    if error >= FARTHEST:
        return "how far all importances together are off is not bounded yet"
    return f"all importances together are off by {error:.3g} of their sum at most"


def telling(said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something: without None, counts of which none is above 0, and zeros that are no news."""
    zero = {name for name in QUIET if not said.get(name)}
    return {name: value for name, value in said.items() if name not in zero and _shown(value) not in ("-", "none")}


def sites(rows: Sequence[Mapping[str, Any]]) -> str:
    """`top --by site` for people."""
    lines = [f"{'site rank':>10}  {'from others':>11}  {'internal':>8}  {'importance':>10}  {'pages':>8}  site"]
    for row in rows:
        share = "-" if row["internal_share"] is None else f"{row['internal_share']:.0%}"
        lines.append(
            f"{row['site_rank']:10.4g}  {row['external_inflow']:11.4g}  {share:>8}  {row['importance']:10.4g}  "
            f"{row['pages']:8,}  {row['site']}"
        )
    return "\n".join(lines)


def fields(said: Mapping[str, Any]) -> str:
    """A name and a value a line; of counts, those that are not 0."""
    wide = max(map(len, said), default=0)
    return "\n".join(
        f"{name.replace('_', ' '):>{wide}}  {printable(_shown(value), 4000)}" for name, value in said.items()
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
