"""The pages of text that `xyro lab opic` writes beside its plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from xyro.lab.opic.history_policies import TRIED
from xyro.lab.opic.paper_claims import OURS, verdict

Results = Mapping[str, Any]


def page(results: Results) -> str:
    """Every claim with its verdict and numbers, those of the papers first; then the prototype's tables beside ours."""
    lines = [f"Held against the laboratory: {verdict(results['claims'])}", ""]
    for claim in sorted(results["claims"], key=lambda claim: claim["source"] == OURS):
        lines += [
            f"{'HOLDS' if claim['holds'] else 'NO   '}  {claim['source']}: {claim['says']}",
            *([f"       {claim['quote']}"] if claim["quote"] else []),
            f"       {claim['found']}",
        ]
    return "\n".join([*lines, *_acceptance(results), *_table(results["table B"])]) + "\n"


def _acceptance(results: Results) -> list[str]:
    rows = results["acceptance"]
    if not rows:
        return []
    met = sum(row["met"] for row in rows)
    head = f"Acceptance (the prototype's table, N = {results['strategies']['n']:,}): {met} of {len(rows)} met"
    return ["", head, "", *(_accepted(row) for row in rows)]


def _accepted(row: Results) -> str:
    verdict = "within 10 %" if row["met"] and not row["better"] else "better" if row["better"] else "NOT MET"
    return f"  {row['what']:22} {row['wanted']:>7g} {row['found']:>8.3f}  {verdict}"


def _table(cells: list[Results]) -> list[str]:
    """Return lines with the number of cells of table B that are met, and each cell that the mean does not meet."""
    if not cells:
        return []
    count = Counter(cell["verdict"] for cell in cells)
    lines = [
        "",
        f"Changing graph (the prototype's table, one seed): {len(cells)} numbers; the mean of our seeds is within 10 % "
        f"of {count['within 10 %']},",
        f"single seeds come within 10 % of {count['within a seed']} more, {count['off']} are off",
        "",
        f"  {'policy':22} {'change':>7} {'pages':>5} {'theirs':>7} {'ours':>8} {'ratio':>6}  {'our seeds':>17}",
    ]
    for cell in cells:
        if cell["verdict"] != "within 10 %":
            seeds = f"{cell['least']:.3g} to {cell['most']:.3g}"
            lines.append(
                f"  {cell['policy']:22} {100 * cell['rate']:>5g} % {cell['pages']:>5} {cell['wanted']:>7g} "
                f"{cell['found']:>8.3g} {cell['found'] / cell['wanted']:>6.2f}  {seeds:>17}  {cell['verdict']}"
            )
    return [*lines, "", *(f"  {line}" for line in TRIED)]


def patterns(results: Results) -> str:
    """The patterns as a table, and what becomes of a link farm."""
    lines = [
        "Importance (mean 1) in patterns; per cent that the offline reference and OPIC (sweep, 50 N reads) are off the "
        "formula at most,",
        "and OPIC's mean error over all pages",
        "",
        f"{'pattern':10} {'pages':>7} {'greatest':>9} {'least':>7} {'offline off':>11} {'OPIC off':>8} {'all %':>7}  "
        "formula: importance of page",
    ]
    for name, row in results.items():
        values = ", ".join(f"{page}: {value:.4f}" for page, value in list(row["known"].items())[:4])
        lines.append(
            f"{name:10} {row['pages']:>7,} {row['greatest']:>9.3f} {row['least']:>7.4f} {row['offline off']:>11.1e} "
            f"{row['OPIC off']:>8.3f} {row['all']:>7.3f}  {values}"
        )
    return "\n".join([*lines, "", *_farm(results["link farm"]["farm"])]) + "\n"


def _farm(farm: Results) -> list[str]:
    return [
        "What OPIC does to a link farm (a boss and its minions link to each other, one honest page links to the boss):",
        f"  it is {100 * farm['pages']:.1f} % of the pages, gets {100 * farm['reads']:.1f} % of the reads and "
        f"{100 * farm['importance']:.2f} % of the importance: a farm moves importance, it hardly makes any",
        f"  ({100 * farm['importance, no link leads in']:.2f} % if no link leads into it);",
        f"  but it moves it to the boss, whose importance is {farm['boss']:.1f} (OPIC after 10 N reads: "
        f"{farm['boss by OPIC']:.1f}), rank {farm[_RANK]}; {farm['boss, no link leads in']:.1f} without the link,",
        f"  and who is read {farm['reads of the boss']:.1f} times as often as the mean page.",
        f"  What helps: cash that the virtual page gives to honest pages only (personalisation); then the boss has "
        f"{farm['boss, honest jumps']:.2f}.",
    ]


_RANK = "boss's rank"
