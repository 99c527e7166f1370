"""The command `xyro plan`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import FiniteFloat, as_json_too, tell
from xyro.service.cli.stopped_crawl import exported, stopped_crawl
from xyro.wire.errors import InputError
from xyro.wire.text import counted, figure

POLICIES = ("obsolescence", "mixed", "freshness", "uniform", "all")
JUST = 0.05
"""changes that come by less of what is believed oftener or seldomer come as often"""


@click.command(short_help="Show what bandwidth a freshness needs, or the reverse.")
@with_place
@click.option("--target", type=FiniteFloat(0), help="A freshness, such as 0.9: say what bandwidth it takes.")
@click.option("--bandwidth", help="Reads a second, or such as 4000/day: say how fresh that keeps the collection.")
@click.option(
    "--policy", "policies", type=click.Choice(POLICIES), multiple=True, help="Of the crawl, or these; may be repeated."
)
@click.option("--replay", is_flag=True, help="Replay what the crawl has seen: what these would have given.")
@as_json_too
def plan(place: CrawlPlace, as_json: bool, replay: bool, **asked: Any) -> None:
    """Show what bandwidth a freshness needs, or what freshness a bandwidth gives.

    Freshness is that of the long run, in which copies have grown as old as the bandwidth lets them; beside it that of
    the day and the week from now, which begin with the copies of now.

    Weighs all refreshed pages by importance, with the change rates of the crawl, running or stopped. The policy and the
    limits ([refresh]) are those of the running crawl; of a stopped one, those that `xyro serve` begins with. Without
    --target or --bandwidth it shows a range of bandwidths. Proposes one. Includes reads for audits, but not for
    discovery.

    Policy obsolescence (P1) minimises missed changes. To keep as much as possible up to date, set policy mixed or
    freshness; --policy all shows the difference.

    --replay uses the changes that the crawl recorded ([changes] record): how fresh its pages were, how fresh they would
    have been with other policies and bandwidths (the same, half, twice), and what the records cannot tell.
    """
    if replay:
        _replay(place, as_json, **asked)
        return
    forecast = _answer(place, **asked)
    if as_json:
        click.echo(json.dumps(forecast))
    else:
        tell(plan_table(forecast))


def _answer(place: CrawlPlace, target: float | None, bandwidth: str | None, policies: tuple[str, ...]) -> Any:
    from xyro.service.views.forecast import PlanQuestion, report
    from xyro.wire.clock import SystemClock

    question = PlanQuestion(target, bandwidth, policies)
    remote = place.find()
    if remote is not None:
        asked = {"target": target, "bandwidth": bandwidth, "policies": ",".join(policies) or None}
        return remote.get("/plan", **{name: value for name, value in asked.items() if value is not None})
    with stopped_crawl(place.directory) as crawl:
        now = SystemClock().time()
        return report(crawl.plan_part(now), crawl.refresh, question, now)


def _replay(
    place: CrawlPlace, as_json: bool, target: float | None, bandwidth: str | None, policies: tuple[str, ...]
) -> None:
    """Hand the history of the crawl to the laboratory. InputError: a target, which only the model can reach."""
    import tempfile
    from importlib.metadata import entry_points
    from pathlib import Path

    from xyro.service.views.export import write_rows
    from xyro.service.views.forecast import per_day

    if target is not None:
        raise InputError("--target: a replay answers for bandwidths; give --bandwidth, or leave both out")
    names = [name for each in policies for name in (POLICIES[:-1] if each == "all" else (each,))]
    options = [word for name in names for word in ("--policy", name)] + ["--json"] * as_json
    options += ["--reads-per-day", str(per_day(bandwidth))] if bandwidth else []
    (lab,) = entry_points(group="xyro.commands", name="lab")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "histories.jsonl")
        with exported(place, "histories") as rows:
            write_rows("histories", rows, "jsonl", file)
        lab.load().main(["refresh", "--crawl", str(file), *options])


def _rate_line(ratio: float) -> str:
    """How often changes came beside what was believed, by which the freshness is corrected."""
    if abs(ratio - 1.0) < JUST:
        return "changes came as often as believed"
    often = f"{figure(ratio, 2)} times" if ratio > 1.0 else f"only {figure(ratio, 2)} times"
    return f"changes came {often} as often as believed; the freshness is corrected by that"


def _gives(row: dict[str, Any]) -> tuple[float, ...]:
    """Freshness, changes missed and pages given up: what a bandwidth gives, as far as it matters."""
    return round(row["freshness"], 3), round(row["obsolescence"] or 0.0, 2), round(row["never_read"], 3)


def _rows_of(forecast: dict[str, Any]) -> Iterator[str]:
    """A line a policy and bandwidth; of those of a policy that give the same, the cheapest, and a line that says so."""
    for policy, group in groupby(forecast["rows"], key=lambda row: row["policy"]):
        rows = list(group)
        for place, row in enumerate(rows):
            if place and _gives(row) == _gives(rows[place - 1]):
                continue
            missed = "-" if row["obsolescence"] is None else figure(row["obsolescence"])
            reads = "not reached" if row["reads_per_day"] is None else _daily(row["reads_per_day"])
            share = "-" if row["share_per_day"] is None else f"{row['share_per_day']:,.1%}"
            given_up = f"{row['never_read']:8.1%}"
            shares = (row["freshness"], row["next_day"], row["next_week"])
            fresh = "  ".join("     -" if each is None else f"{each:6.1%}" for each in shares)
            yield f"{policy:13}  {reads:>12}  {share:>8}  {fresh}  {missed:>14}  {given_up}"
        if len(rows) > 1 and rows[0]["reads_per_day"] == rows[1]["reads_per_day"]:
            yield "[refresh] max_interval takes so many reads: less bandwidth could not keep it"
        elif (limit := forecast.get("hosts_allow_per_day") or math.inf) < (rows[-1]["reads_per_day"] or math.inf):
            yield f"politeness allows {_daily(limit)} reads of these hosts a day: more bandwidth would change nothing"
        elif len(rows) > 1 and _gives(rows[-1]) == _gives(rows[-2]):
            yield "more bandwidth would change nothing: so seldom do these pages change"


def _daily(reads: float) -> str:
    """A number of reads a day."""
    return f"{reads:,.0f}" if reads >= 100.0 else figure(reads)


def plan_table(forecast: dict[str, Any]) -> str:
    """For people: a line a policy and bandwidth."""
    lines = [
        f"{'policy':13}  {'reads/day':>12}  {'of pages':>8}  {'fresh':>6}  {'1 day':>6}  {'1 week':>6}  "
        f"{'changes missed':>14}  {'given up':>8}",
        *_rows_of(forecast),
        f"over {counted(forecast['pages'], 'refreshed page')}, each weighed by its importance",
        "fresh: in the long run; 1 day and 1 week from now begin with the copies as they are",
    ]
    lines.append(_rate_line(forecast["changes_over_believed"]))
    proposed = forecast["proposed"]
    if proposed is None:
        best = max(row["freshness"] for row in forecast["rows"])
        lines.append(
            f"no bandwidth gives {forecast['target']:.1%}: reading each page as often as [refresh] min_interval and "
            f"least_chance, and its host as often as [politeness], allow gives {best:.1%}"
        )
    else:
        reason = "twice as much would add less than a point" if forecast["target"] is None else "the target is reached"
        lines.append(
            f'proposed: [refresh] bandwidth = "{max(proposed["reads_per_day"], 1.0):.0f}/day" '
            f"({proposed['freshness']:.1%} fresh; {reason})"
        )
    return "\n".join(lines)
