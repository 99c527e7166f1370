"""The soak: how its samples are judged, and one of some seconds with real processes."""

import json
from dataclasses import replace

import pytest

from xyro.lab.crawls import soak
from xyro.lab.crawls.soak import SoakSample, _judged, main
from xyro.wire.errors import MachineError

SOUND = {"ok": True, "pages": 5, "violations": []}


def samples(growth=0.0, tasks=10, more_tasks=0.0, files=20, seconds=1800.0, every=10.0, mapped=0.0):
    """growth: bytes of anonymous memory in ten minutes; mapped: of pages of mapped files."""
    times = [every * number for number in range(int(seconds / every))]
    return [
        SoakSample(
            t,
            int(1e8 + (growth + mapped) * t / 600),
            int(6e7 + growth * t / 600),
            int(tasks + more_tasks * t),
            files,
            int(100 * t),
        )
        for t in times
    ]


def judged(seen, stopped=1.0, code=0, ready=True, checked=SOUND):
    return _judged(seen, 1800.0, stopped, code, ready, checked)


def test_a_process_that_does_not_grow_is_well():
    said = judged(samples(growth=0.9e6))
    assert said["ok"] and said["broken"] == [] and said["anon_mb_per_10_minutes"] == pytest.approx(0.9, abs=0.01)
    assert said["reads_per_second"] == pytest.approx(100.0) and said["not_judged"] == []


def test_tables_that_are_mapped_are_shown_and_not_judged():
    said = judged(samples(growth=0.1e6, mapped=3e6))
    assert said["ok"] and said["rss_mb_per_10_minutes"] == pytest.approx(3.1, abs=0.01)
    assert said["anon_mb"] == [60.1, 60.3] and said["mapped_mb"] == [44.5, 49.0]


@pytest.mark.parametrize(("seen", "options", "broken"), [
    (samples(growth=1.2e6), {}, "anon_slope"),
    (samples(more_tasks=0.1), {}, "tasks"),
    ([replace(sample, reads=9) for sample in samples()], {}, "reads"),
    (samples(), {"stopped": 6.0}, "stop"),
    (samples(), {"code": 1}, "stop"),
    (samples(), {"ready": False}, "ready"),
    (samples(), {"checked": {"ok": False, "pages": 5, "violations": ["cash"]}}, "audit"),
])  # fmt: skip
def test_whatever_does_not_hold_is_named(seen, options, broken):
    assert judged(seen, **options)["broken"] == [broken]


def test_growth_of_the_warm_up_does_not_count():
    seen = [sample if sample.moment >= 900 else SoakSample(sample.moment, 1, 1, 1, 1, 1) for sample in samples()]
    assert judged(seen)["ok"]


def test_too_short_a_soak_says_so():
    with pytest.raises(MachineError, match="more --minutes"):
        judged(samples()[:1])


@pytest.mark.long
def test_a_soak_of_some_seconds(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "EVERY", 0.2)
    code = main(["--minutes", "0.07", "--pages", "200", "--hosts", "4", "--samples", str(tmp_path / "samples")])
    said = json.loads(capsys.readouterr().out)
    assert said["broken"] == [] and code == 0
    assert said["not_judged"] == ["anon_slope"], "it is all warm-up"
    assert said["exit_code"] == 0 and said["violations"] == [] and said["known"] >= 200
    assert len((tmp_path / "samples").read_text().splitlines()) >= said["samples"]
