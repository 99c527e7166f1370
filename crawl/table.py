"""Rows for people."""

from __future__ import annotations

from typing import Any


def table(rows: list[dict[str, Any]], by: str) -> str:
    """`top` for people: aligned columns, URLs last. Canonical URLs are printable ASCII."""
    head = f"{by:>12}  {'cash':>10}  {'reads':>5}  {'changes/day':>11}  {'next read':20}  url"
    lines = [head]
    for row in rows:
        first = row["score"] / 65_536 if by == "cash" else row["score"]
        rate = "-" if row["change_rate"] is None else f"{row['change_rate']:.3g}"
        lines.append(
            f"{first:12.4g}  {row['cash']:10d}  {row['reads']:5d}  {rate:>11}  {row['next_read'] or '-':20}  {row['url']}"
        )
    return "\n".join(lines)
