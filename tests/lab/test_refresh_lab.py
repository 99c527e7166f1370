"""`xyro lab refresh`: histories from files, replays, figures and their verdict."""

import contextlib
import functools
import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from xyro.lab import work_parts
from xyro.lab.refresh import history, jobs, quoted_claims, refresh_claims, refresh_figures, refresh_lab, where
from xyro.lab.refresh import replay as refresh_replay
from xyro.lab.refresh.hard_worlds import HARD
from xyro.lab.refresh.rates import Estimator
from xyro.lab.refresh.world import COMPUTED, PageHistory, of_events, of_histories
from xyro.wire.errors import InputError

pytestmark = pytest.mark.long

DAY = 86_400
START = 1_600_000_000
REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "changes"


def line(path, *events):
    return json.dumps({"path": path, "events": [[START + int(day * DAY), kind] for day, kind in events]})


def write(path, *lines):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def some(path, pages=40, days=200, seed=1):
    """Half of the pages change every four days or so, the others never."""
    rng = np.random.default_rng(seed)
    lines = []
    for page in range(pages):
        changes = np.sort(rng.uniform(1, days, 50 * (page % 2)))
        lines.append(
            line(f"p{page}", (0, "A"), *((day, "M") for day in changes), *([(days, "D")] if page == 0 else []))
        )
    return write(path, *lines)


# Histories


def test_a_page_is_born_at_its_first_a_and_all_later_events_are_changes(tmp_path):
    file = write(
        tmp_path / "a.gz",
        line("late", (1, "M"), (5, "A"), (5, "M"), (9, "D"), (7, "T"), (12, "A")),
        line("never", (1, "M"), (2, "D")),
        "",
        line("first", (0, "A")),
    )
    late, first = history.read([file])
    assert late == PageHistory("late", START + 5 * DAY, [START + day * DAY for day in (7, 9, 12)])
    assert first == PageHistory("first", START, [])


def test_histories_need_not_be_packed_and_files_are_taken_together(tmp_path):
    plain = tmp_path / "plain.jsonl"
    plain.write_text(line("x", (0, "A"), (4, "M")) + "\n")
    packed = write(tmp_path / "b.gz", line("x", (10, "A"), (20, "M")))
    world = of_histories(history.read([plain, packed]), np.ones(2))
    assert world.days == 20.0
    assert world.burn == pytest.approx(6.0)
    assert world.born.tolist() == [0.0, 10.0]
    assert world.times.tolist() == [4.0, 20.0]
    assert world.rate.tolist() == pytest.approx([1 / 20, 1 / 10])


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "truncated"),
        ("[]", "Expected `object`"),
        ('{"path": "x"}', "missing required field `events`"),
        ('{"path": 1, "events": []}', "Expected `str`"),
        ('{"path": "x", "events": [[1]]}', "length 2"),
        ('{"path": "x", "events": [["1", "A"]]}', "Expected `float`"),
        ('{"path": "x", "events": [[true, "A"]]}', "Expected `float`"),
        ('{"path": "x", "events": [[1, "B"]]}', "Invalid enum value 'B'"),
        ('{"path": "x", "events": [[NaN, "A"]]}', "invalid"),
        ('{"path": "x", "events": [[1e300, "A"]]}', r"events\[0\]"),
        ('{"path": "x", "events": ' + "[" * 100_000, ""),
    ],
)
def test_bad_lines_are_named(tmp_path, bad, says):
    file = write(tmp_path / "bad.jsonl.gz", line("good", (0, "A"), (9, "M")), bad)
    with pytest.raises(InputError, match=rf"bad\.jsonl\.gz:2: .*{says}"):
        history.read([file])


def test_bad_files_are_named(tmp_path):
    whole = some(tmp_path / "whole.gz").read_bytes()
    (tmp_path / "half.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "bytes.jsonl").write_bytes(b'{"path": "\xff", "events": []}\n')
    for name, says in (("half.gz", r"half\.gz:\d+: cannot be read"), ("none.gz", "none.gz"), ("bytes.jsonl", ":1: ")):
        with pytest.raises(InputError, match=says):
            history.read([tmp_path / name])
    with pytest.raises(InputError, match="cannot be read"):
        history.read([tmp_path])


def test_histories_without_a_span_are_refused(tmp_path):
    for lines, says in (
        ([line("x", (0, "M"))], "no page with an event A"),
        ([line("x", (0, "A"), (1, "M"))], "spans 1 days"),
        ([line("x", (0, "A"), (40_000, "M"))], "hundred years"),
    ):
        with pytest.raises(InputError, match=says):
            history.read([write(tmp_path / "x.gz", *lines)])


def test_a_line_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "LONGEST", 100)
    file = write(tmp_path / "x.gz", line("x", *((day, "M") for day in range(100))))
    with pytest.raises(InputError, match=r"x\.gz:1: a line of more than"):
        history.read([file])


# Replays


def replay(capsys, *arguments):
    assert refresh_lab.main([*map(str, arguments), "--json"]) == 0
    return {row["policy"]: row for row in json.loads(capsys.readouterr().out)}


def test_a_replay_has_the_two_rows_that_are_always_there(tmp_path, capsys):
    file = some(tmp_path / "a.gz")
    rows = replay(capsys, "--changes", file, "--bandwidth", 0.5, "--policy", "p1", "--policy", "p1")
    assert list(rows) == ["optimum-known", "uniform", "p1"]
    assert rows["optimum-known"]["share"] == 1.0
    assert rows["uniform"]["share"] == pytest.approx(rows["uniform"]["freshness"] / rows["optimum-known"]["freshness"])
    # 40 pages x .5 a day x 140 days after the burn-in, to within a tick's worth
    assert rows["p1"]["reads"] == rows["uniform"]["reads"] == pytest.approx(0.5 * 40 * 140, abs=6)
    # half of the pages never change: who learns that reads the others twice as often
    assert rows["optimum-known"]["freshness"] > rows["p1"]["freshness"] > rows["uniform"]["freshness"] + 0.03
    x = 0.25 / 0.5
    assert rows["uniform"]["freshness"] == pytest.approx(0.5 + 0.5 * -np.expm1(-x) / x, abs=0.02)


def test_a_replay_says_the_same_in_words(tmp_path, capsys):
    file = some(tmp_path / "a.gz")
    rows = replay(capsys, "--changes", file, "--policy", "nutch-shipped")
    assert refresh_lab.main(["--changes", str(file), "--policy", "nutch-shipped"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "40 pages, 1,001 changes, 200 days" in out[0]
    assert [text.split()[0] for text in out[1:]] == ["policy", "optimum-known", "uniform", "nutch-shipped"]
    assert float(out[4].split()[1]) == pytest.approx(rows["nutch-shipped"]["freshness"], abs=1e-4)


def test_a_policy_of_an_installed_package_is_compared_with_ours(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from xyro.lab.refresh.compared_policies import policy_of\n"
        "from xyro.lab.refresh.index_rules import Indexed\n"
        "def rule(born, seed, tick, days):\n"
        "    assert len(born) and tick and days\n"
        "    return Indexed(policy_of('obsolescence'))\n"
    )
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[xyro.policies]\nmine = mine:rule\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = replay(capsys, "--changes", some(tmp_path / "a.gz"), "--policy", "mine", "--policy", "p1")
    assert rows["mine"] == {**rows["p1"], "policy": "mine"}
    assert refresh_lab.main(["--changes", str(tmp_path / "a.gz"), "--policy", "nobody"]) == 2


def test_importance_is_uniform_or_zipf_and_seeded(tmp_path, capsys):
    file = some(tmp_path / "a.gz")
    found = [
        replay(capsys, "--changes", file, "--policy", "uniform", *more)["uniform"]["freshness"]
        for more in ((), ("--importance", "zipf"), ("--importance", "zipf"), ("--importance", "zipf", "--seed", 4))
    ]
    assert found[1] == found[2]
    assert len(set(found)) == 3


def test_an_empty_bandwidth_gives_no_read_and_no_error():
    world = of_histories([PageHistory("a", 0, [6 * DAY]), PageHistory("b", DAY, [9.5 * DAY])], np.ones(2))
    rows = list(refresh_replay.rows(world, 1e-6, ["p1"], Estimator()))
    assert [row.reads for row in rows] == [0, 0, 0]
    assert all(refresh_replay.line(row).split()[-1] == "-" for row in rows)
    # 30 % of 9.5 days, to the nearest tick, are not measured; then one of the pages is stale for 3.5 days
    assert rows[0].freshness == pytest.approx(1 - 3.5 / (2 * (9.5 - 2.75)))


def test_nothing_fresh_has_no_share():
    from xyro.lab.refresh.sim import Score

    row = refresh_replay.row_of("x", Score(0.0, 9.0, 0, 0), 0.0)
    assert row.share is None
    assert "-" in refresh_replay.line(row)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--policy", "best"], "--policy 'best'"),
        (["--policy", "mixed:x"], "mixed:ALPHA"),
        (["--bandwidth", "0"], "--bandwidth 0"),
        (["--bandwidth", "nan"], "--bandwidth nan"),
        (["--memory", "1"], "--memory 1"),
        (["--seed", "-1"], "--seed -1"),
        ([], "missing.gz"),
    ],
)
def test_bad_options_are_told_in_a_line(arguments, says, capsys):
    assert refresh_lab.main(["--changes", "missing.gz", *arguments]) == 2
    told = capsys.readouterr()
    assert says in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


@pytest.mark.skipif(not REAL.is_dir(), reason="no ../shared/data/changes")
def test_learning_pays_on_a_real_history(capsys):
    rows = replay(capsys, "--changes", REAL / "publicsuffix+list.jsonl.gz", "--bandwidth", 0.02, "--policy", "p1")
    assert rows["optimum-known"]["freshness"] > rows["p1"]["freshness"] > rows["uniform"]["freshness"]


# Figures

_parts = functools.partial(refresh_figures.parts, histories=[])
TINY = refresh_figures.RefreshScale(300, 300, 1, (0.2,), (0.05,), 150, (0.2,))


def short(name):
    """That world, 24 days of it."""

    def made(n, seed):
        world = COMPUTED[name](n, seed)
        page = np.repeat(np.arange(n), np.diff(world.indptr))
        return of_events(world.importance, world.rate, page, world.times, days=24.0, burn=8.0)

    return made


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    out = tmp_path_factory.mktemp("refresh")
    histories = history.read([some(out / "a.gz")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refresh_figures, "COMPUTED", {"poisson": short("poisson"), "bursty": short("bursty")})
        tried = ("hot", "ephemeral", "signals-good")
        patch.setattr(refresh_figures, "HARD", {name: HARD[name] for name in tried})
        yield out, histories, refresh_figures.figures(out, TINY, histories, show=False)


def test_figures_have_every_world_policy_and_verdict(computed):
    out, _, results = computed
    assert set(results["worlds"]) == {"poisson", "bursty"}
    assert set(results["worlds"]["poisson"]) == {"known", "estimated", "dated", "cold", "high", "low"}
    assert set(results["worlds"]["bursty"]) == {"known", "estimated"}
    for knowledge in results["worlds"].values():
        for bandwidths in knowledge.values():
            assert set(bandwidths["0.2"]) == set(refresh_figures.NAMES)
            assert all(0.0 <= score["freshness"] <= 1.0 for score in bandwidths["0.2"].values())
    for world, knowledge in results["hard"].items():
        assert set(knowledge) == {"known", "cold"}
        tried = set(refresh_figures.TRIED) | (set(refresh_figures.SIGNALLED) if world == "signals-good" else set())
        for bandwidths in knowledge.values():
            assert set(bandwidths["0.2"]) == tried
            assert all((score["interest"] is None) == (world != "ephemeral") for score in bandwidths["0.2"].values())
    known = results["worlds"]["poisson"]["known"]["0.2"]
    for score in known.values():
        ratio = (1.0 - score["freshness"]) / (1.0 - known["freshness"]["freshness"])
        assert score["staleness"] == pytest.approx(ratio)
    text = (out / "verdict.txt").read_text()
    assert text.count("HOLDS") + text.count("NO   ") == len(results["claims"]) + len(results["papers"])
    assert all(f'"{claim["quote"]}"' in text for claim in results["papers"])
    assert "bursty, estimated rates" in text
    assert "is freshest" in text
    assert text.count("% at most (") == len(where.USUAL)
    for name in ("poisson-known", "bursty-obsolescence", "poisson-cold", "real"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "refresh.json").read_text())["claims"] == results["claims"]


def test_statements_say_where_they_hold(computed):
    results = json.loads(json.dumps(computed[2]))
    says = "P1 6: it is fresher than reading all pages equally often"
    for worse, told in ((0.0, "    bursty           everywhere"), (1.0, "    bursty           nowhere")):
        results["worlds"]["bursty"]["estimated"]["0.2"]["uniform"]["freshness"] = worse
        (said,) = (said for said in where.statements(results) if said.says == says)
        assert said.where["bursty"] == {"0.2": worse == 0.0}
        assert set(said.where) == {"poisson", "poisson, cold", "poisson, high", "poisson, low", "bursty"}
        assert told in list(where.page({**results, "where": [asdict(said)]}))


def test_the_policy_that_loses_least_comes_first(computed):
    results = json.loads(json.dumps(computed[2]))
    for knowledge in results["worlds"].values():
        for rows in knowledge.values():
            for name in where.OURS:
                rows["0.2"][name] = {"freshness": 0.9, "obsolescence": 2.0}
    scores = results["worlds"]["bursty"]["estimated"]["0.2"]
    scores["p1"] = {"freshness": 0.45, "obsolescence": 1.0}
    scores["kolobov"] = {"freshness": 0.96, "obsolescence": 3.0}
    lines = list(where.page(results))
    first, *_, last = lines[lines.index("  B = 20 %") + 1 :]
    assert first.startswith("    kolobov           0.00 % at most (")
    assert first.endswith("misses up to 3.00 times the fewest")
    assert last.startswith("    p1               53.12 % at most (bursty); misses up to 1.00")


def test_several_processes_leave_what_one_would(tmp_path):
    scale = refresh_figures.RefreshScale(200, 200, 1, (0.2, 0.5), (), 150, (0.2,))
    names = ["analytic 0.2", "analytic 0.5"]
    jobs.ahead(tmp_path, partial(refresh_figures.parts, scale, []), names, 2, show=False)
    every = {name: part for name, part in refresh_figures.parts(scale, []).items() if name in names}
    here = work_parts.compute(every, {}, tmp_path / "here", show=False)
    for name in names:
        path = tmp_path / "parts" / f"{name.replace(' ', '-')}.json"
        assert json.loads(path.read_text())["result"] == json.loads(json.dumps(here[name]))


KILLED = """
import sys
from functools import partial
from pathlib import Path
from xyro.lab.refresh import refresh_figures, jobs

if __name__ == "__main__":
    make = partial(refresh_figures.parts, refresh_figures.RefreshScale(200, 200, 1, (0.2, 0.5), (), 150, (0.2,)), [])
    jobs.ahead(Path(sys.argv[1]), make, list(make()), 2, show=True)
"""


def test_its_processes_end_with_a_run_that_is_killed(tmp_path):
    """They wait on a pipe that they hold open themselves: without an eye on the parent for ever."""
    script, root = tmp_path / "run.py", Path(__file__).resolve().parents[2]
    script.write_text(KILLED)
    run = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
        start_new_session=True,
    )
    try:
        assert run.stderr is not None and b" of " in run.stderr.readline()  # a part is done: all are at work
        run.kill()
        run.communicate(timeout=20.0)  # the pipe is closed when the last of them has ended
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)


def test_a_run_that_was_stopped_goes_on(computed):
    out, histories, results = computed
    (out / "parts" / "bursty-known-0.2.json").unlink()
    other = out / "parts" / "poisson-known-0.2.json"
    told = json.loads(other.read_text())
    told["result"]["p1"]["reads"] += 1  # would be mended, were it computed again
    other.write_text(json.dumps(told))
    parts = work_parts.compute(refresh_figures.parts(TINY, histories), {}, out, show=False)
    again = refresh_figures.gather(parts, TINY, histories)
    assert again["worlds"]["bursty"] == results["worlds"]["bursty"]
    # and what was there is taken as it is
    before, after = (found["worlds"]["poisson"]["known"]["0.2"]["p1"]["reads"] for found in (results, again))
    assert after == before + 1


def test_histories_that_differ_in_a_date_alone_are_others(tmp_path):
    """As many pages, born at the same moments, as many changes: results of the ones are none of the others."""

    def told(seed, out):
        histories = history.read([some(tmp_path / f"{seed}.gz", 10, seed=seed)])
        part = {"real 0.05": refresh_figures.parts(TINY, histories)["real 0.05"]}
        return work_parts.compute(part, {}, out, show=False)

    one, other = told(1, tmp_path / "both"), told(2, tmp_path / "both")
    assert one != other == told(2, tmp_path / "anew") and one == told(1, tmp_path / "both")


def test_a_claim_that_does_not_hold_says_so(computed):
    results = json.loads(json.dumps(computed[2]))
    asked = "known rates (simulated), B = 0.2"
    for worse, holds in ((1.0, True), (0.9, False)):
        scores = results["worlds"]["poisson"]["known"]["0.2"]
        for name in ("p1", "freshness", "mixed:0.1", "mixed:0.3", "mixed:1"):
            scores[name]["share"] = worse
        (claim,) = (claim for claim in refresh_claims.claims(results) if claim.says.startswith(asked))
        assert claim.holds is holds
    results["worlds"]["bursty"]["estimated"]["0.2"]["p1"]["obsolescence"] = 1e9
    found = {claim.says: claim for claim in refresh_claims.claims(results)}
    assert not found["estimated rates, every world: P1's law misses fewer changes than uniform reads"].holds
    results["worlds"]["bursty"]["estimated"]["0.2"]["p1"]["reads"] -= 1
    assert not {claim.says: claim for claim in refresh_claims.claims(results)}[
        "by scan, the bandwidth is spent exactly"
    ].holds


def test_a_papers_claim_is_judged_by_the_numbers_and_told_apart_from_ours(computed):
    results = json.loads(json.dumps(computed[2]))
    cell = results["hard"]["signals-good"]["known"]["0.2"]
    for ratio, holds in ((min(score["staleness"] for score in cell.values()), True), (9.0, False)):
        cell["greedy-ncis"]["staleness"] = ratio
        found = {claim.place: claim for claim in quoted_claims.quoted_claims(results)}
        assert found["abstract, (i)"].holds is holds
    cell["greedy-ncis"]["reads"] -= 1
    assert not {c.place: c for c in quoted_claims.quoted_claims(results)}["abstract, (iii)"].holds
    assert not {c.says for c in refresh_claims.claims(results)} & {c.says for c in found.values()}


def test_the_table_of_section_f_is_of_its_own_runs_and_counts_what_is_off(computed):
    results = json.loads(json.dumps(computed[2]))
    assert refresh_claims.table(results) == []
    runs = refresh_claims.tabled_runs()
    assert {run.bandwidth for run in runs} == set(refresh_claims.TABLED)
    wanted = {("correlated", "estimated", "0.2", name): cell for name, cell in refresh_claims.CORRELATED.items()}
    for knowledge, policies in refresh_claims.TABLE.items():
        for policy, cells in policies.items():
            wanted |= {("poisson", knowledge, bandwidth, policy): cell for bandwidth, cell in cells.items()}
    named = {refresh_claims.FILED[policy]: policy for policy in refresh_claims.FILED}
    for run, names in runs.items():
        scores = {}
        for name in names:
            fresh, missed = wanted[*run, named.get(name, name)]
            scores[name] = {"freshness": fresh, "obsolescence": missed}
        results["tabled"].append({**run._asdict(), "scores": scores})
    claim = refresh_claims.claims(results)[-1]
    assert claim.holds
    assert claim.found.startswith("34 of 34")
    results["tabled"][0]["scores"]["p1"]["freshness"] *= 0.97
    claim = refresh_claims.claims(results)[-1]
    assert not claim.holds
    assert claim.found.startswith("33 of 34; furthest: p1, poisson, known, B 0.05")


def test_at_five_per_cent_design_asks_of_its_own_world_only():
    pages = refresh_claims.TABLED_PAGES
    assert refresh_claims.least_share("p1", 0.05, pages) == 0.93
    assert refresh_claims.least_share("p1", 0.05, 5000) is None
    assert refresh_claims.least_share("mixed:1", 0.5, 5000) == 0.97
    assert refresh_claims.least_share("uniform", 0.5, pages) is None
