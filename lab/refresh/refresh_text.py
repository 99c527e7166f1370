"""The page of text that `xyro lab refresh` writes beside its plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xyro.lab.refresh import where
from xyro.lab.refresh.refresh_claims import OBSOLESCENCE, TOLERANCE

Results = Mapping[str, Any]


def page(results: Results) -> str:
    """Return every claim with its verdict, ours and the papers' apart, the winners by world, then the tables."""
    holding = sum(claim["holds"] for claim in results["claims"])
    lines = [f"Refreshing, held against what is asked: {holding} of {len(results['claims'])} hold", ""]
    for claim in results["claims"]:
        lines += [f"{_verdict(claim)}  {claim['says']}", f"       {claim['found']}"]
    lines += _papers(results)
    scale = results["scale"]
    lines += where.page(results)
    lines += ["", f"{scale['pages']:,} pages (poisson, correlated) or {scale['others']:,}, {scale['hard']:,} in the "
              f"harder worlds; {results['days']:g} days, the first {results['burn_in_days']:g} not measured;",
              "weighted by importance; a cell: freshness / changes missed, and x the staleness of the freshness index "
              "with known rates in the same world"]  # fmt: skip
    for world, knowledge in (results["worlds"] | results["hard"]).items():
        for name, bandwidths in knowledge.items():
            lines += ["", *_table(world, name, bandwidths)]
    lines += _interest(results["hard"])
    lines += [*_real(results), *_section_f(results)]
    return "\n".join(lines) + "\n"


def _verdict(claim: Results) -> str:
    return "HOLDS" if claim["holds"] else "NO   "


def _papers(results: Results) -> Iterator[str]:
    """The papers' own claims: the sentence, what it was taken to mean, and what was found."""
    claims = results["papers"]
    holding = sum(claim["holds"] for claim in claims)
    yield from (
        "",
        f"What the papers claim of their own policies, in their words: {holding} of {len(claims)} hold",
    )
    for claim in claims:
        yield f'{_verdict(claim)}  "{claim["quote"]}"'
        yield f"       {claim['source']}, {claim['place']}"
        yield f"       {claim['says']}"
        yield f"       {claim['found']}"


def _table(world: str, knowledge: str, bandwidths: Mapping[str, Any]) -> Iterator[str]:
    """A row a policy, freshness / obsolescence and staleness over the optimum's a bandwidth; the freshest below."""
    yield f"{world}, {knowledge} rates"
    yield f"  {'policy':18}" + "".join(f"   B = {100 * float(b):g} % a day".ljust(29) for b in bandwidths)
    for policy in next(iter(bandwidths.values())):
        scores = (scores[policy] for scores in bandwidths.values())
        yield f"  {policy:18}" + "".join(
            f"   {s['freshness']:.4f} /{s['obsolescence']:8.3f} {_times(s['staleness'])}" for s in scores
        )
    best = (max(scores, key=lambda name: scores[name]["freshness"]) for scores in bandwidths.values())
    yield f"  {'freshest':18}" + "".join(f"   {name}".ljust(29) for name in best)
    least = (min(scores, key=lambda name: scores[name]["obsolescence"]) for scores in bandwidths.values())
    yield f"  {'least obsolete':18}" + "".join(f"   {name}".ljust(29) for name in least)


def _times(ratio: float | None) -> str:
    return f"{'-':>7}" if ratio is None else f"x{ratio:6.3f}"


def _interest(hard: Results) -> Iterator[str]:
    """The share of the interest in changes that was left when they were read, where it fades."""
    for world, knowledge in hard.items():
        for name, bandwidths in knowledge.items():
            first = next(iter(bandwidths.values()))
            if first["uniform"]["interest"] is None:
                continue
            yield from ("", f"{world}, {name} rates: interest left in changes when they were read")
            yield f"  {'policy':18}" + "".join(f"{100 * float(b):8g} %" for b in bandwidths)
            for policy in first:
                yield f"  {policy:18}" + "".join(
                    f"{scores[policy]['interest']:10.3f}" for scores in bandwidths.values()
                )


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
    numbers = f"{row['freshness']:.4f} /{row['obsolescence']:8.4f} {_times(row['staleness'])}"
    return f"  {row['policy']:18} {numbers} {row['reads']:11,} reads"


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
