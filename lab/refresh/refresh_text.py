"""The page of text that `xyro lab refresh` writes beside its plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xyro.lab.refresh import where
from xyro.lab.refresh.refresh_claims import OBSOLESCENCE, TOLERANCE

Results = Mapping[str, Any]


def page(results: Results) -> str:
    """Return every claim with its verdict, the winners by world, then the tables."""
    holding = sum(claim["holds"] for claim in results["claims"])
    lines = [f"Refreshing, held against what is asked: {holding} of {len(results['claims'])} hold", ""]
    for claim in results["claims"]:
        lines += [f"{'HOLDS' if claim['holds'] else 'NO   '}  {claim['says']}", f"       {claim['found']}"]
    scale = results["scale"]
    lines += where.page(results)
    lines += ["", f"{scale['pages']:,} pages (poisson, correlated) or {scale['others']:,}; {results['days']:g} days, "
              f"of which the first {results['burn_in_days']:g} are not measured; weighted by importance;",
              "a cell: freshness / changes missed, and the share of what the freshness index reaches with known rates "
              "in the same world"]  # fmt: skip
    for world, knowledge in results["worlds"].items():
        for name, bandwidths in knowledge.items():
            lines += ["", *_table(world, name, bandwidths)]
    lines += [*_real(results), *_section_f(results)]
    return "\n".join(lines) + "\n"


def _table(world: str, knowledge: str, bandwidths: Mapping[str, Any]) -> Iterator[str]:
    """A row a policy, freshness / obsolescence and share of the optimum a bandwidth; the freshest named below."""
    yield f"{world}, {knowledge} rates"
    yield f"  {'policy':18}" + "".join(f"   B = {100 * float(b):g} % a day".ljust(29) for b in bandwidths)
    for policy in next(iter(bandwidths.values())):
        scores = (scores[policy] for scores in bandwidths.values())
        yield f"  {policy:18}" + "".join(
            f"   {s['freshness']:.4f} /{s['obsolescence']:8.3f} {100 * s['share']:6.2f}%" for s in scores
        )
    best = (max(scores, key=lambda name: scores[name]["freshness"]) for scores in bandwidths.values())
    yield f"  {'freshest':18}" + "".join(f"   {name}".ljust(29) for name in best)
    least = (min(scores, key=lambda name: scores[name]["obsolescence"]) for scores in bandwidths.values())
    yield f"  {'least obsolete':18}" + "".join(f"   {name}".ljust(29) for name in least)


def _real(results: Results) -> Iterator[str]:
    for name, bandwidths in results["real"].items():
        for bandwidth, rows in bandwidths.items():
            yield from ("", f"{name} histories, rates learned online, B = {100 * float(bandwidth):g} % a day")
            for row in rows:
                yield _row(row)
    if results["estimators"]:
        yield from (
            "",
            "real histories, P1's law at the least of these bandwidths, by estimator (dated: Last-Modified)",
        )
        yield from map(_row, results["estimators"])
        best = max(results["estimators"], key=lambda row: row["freshness"])
        default = results["estimators"][0]
        gain = best["freshness"] - default["freshness"]
        stale = gain / (1.0 - default["freshness"]) if default["freshness"] < 1.0 else 0.0
        yield f"  {best['policy']} is freshest: {gain:+.5f} on {default['policy']}, {100 * stale:.1f} % of the stale"


def _row(row: Results) -> str:
    share = "      -" if row["share"] is None else f"{100 * row['share']:6.2f}%"
    return f"  {row['policy']:18} {row['freshness']:.4f} /{row['obsolescence']:8.4f} {share} {row['reads']:11,} reads"


def _section_f(results: Results) -> Iterator[str]:
    if not results["table F"]:
        return
    yield from ("", "The prototype's simulation, ours, and ours / its (freshness / changes missed)")
    yield f"OFF: off by more than {100 * TOLERANCE:g} % in freshness; ~: by {100 * OBSOLESCENCE:g} % in changes missed"
    for cell in results["table F"]:
        theirs, ours = cell["wanted_obsolescence"], cell["found_obsolescence"]
        fresh, missed = cell["found"] / cell["wanted"], ours / theirs
        mark = ("  OFF" if abs(fresh - 1.0) > TOLERANCE else "") + ("  ~" if abs(missed - 1.0) > OBSOLESCENCE else "")
        yield (
            f"  {cell['world']:10} {cell['knowledge']:9} {cell['policy']:12} B {cell['bandwidth']:4} "
            f"{cell['wanted']:.3f} /{theirs:7.3f}   {cell['found']:.4f} /{ours:7.3f}   {fresh:.3f} / {missed:.2f}{mark}"
        )
