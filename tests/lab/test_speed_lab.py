"""`xyro lab speed`: small runs of each benchmark; the figures themselves are nobody's business here."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from xyro.lab.speed.crawl_speed import PARTS, REST, part_of
from xyro.lab.speed.ram_speed import MadeUpWeb
from xyro.plugins import extensions
from xyro.service.node.stopped import open_stopped

ROOT = Path(__file__).resolve().parents[2]


def speed(*arguments):
    command = [sys.executable, "-m", "xyro.lab.speed.speed_lab", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def numbers(said, name):
    """All numbers of the line that begins with `name`."""
    line = next(line for line in said.stdout.splitlines() if line.strip().startswith(name))
    return [
        float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", line[line.index(name) + len(name) :])
    ]


@pytest.mark.long
def test_ram_tells_memory_and_rates():
    said = speed("ram", "--urls", 6_000, "--per-host", 100)
    assert said.returncode == 0, said.stderr
    half, end, *_ = numbers(said, "rss")
    assert 0 < half <= end
    for kind in ("of 60 links 20 new, 36 near, 4 far", "all known, near", "all known, far", "all new"):
        assert min(numbers(said, kind)) > 0
    assert "peer: " in said.stdout


@pytest.mark.long
def test_scale_grows_a_directory_and_goes_on_with_it(tmp_path):
    data = tmp_path / "data"
    for size in (1_500, 3_000):
        said = speed("scale", "--urls", size, "--data", data, "--no-looks")
        assert said.returncode == 0, said.stderr
        assert f"\n{size // 1_000}," in said.stdout
        for kind in ("grown, us a link", "near, us a link", "far, us a link", "turn", "commit", "RAM", "disk", "open"):
            assert min(numbers(said, kind)) >= 0
    with open_stopped(data, extensions) as crawl:
        assert sum(crawl.states().values()) >= 3_000


def test_latency_tells_rates_and_lag():
    said = speed("latency", "--hosts", 4, "--latency", 0.01, "--per-host", 15, "--runs", 1)
    assert said.returncode == 0, said.stderr
    rate, ceiling = numbers(said, "pages/s, steady")
    assert rate > 0
    assert ceiling == 400
    assert len(numbers(said, "event-loop lag 1")) == 5


@pytest.mark.long
def test_pages_tells_every_part_and_they_add_up():
    said = speed("pages", "--max-pages", 300, "--runs", 1)
    assert said.returncode == 0, said.stderr
    (whole, *_) = numbers(said, "CPU ms a page")
    shown = re.findall(r"^    (.+?) +([\d.]+) ms +([\d.]+)%$", said.stdout, re.MULTILINE)
    parts = {name: float(spent) for name, spent, _ in shown}
    assert sum(parts.values()) == pytest.approx(whole, rel=0.02)
    assert sum(float(share) for *_, share in shown) == pytest.approx(100, abs=1)
    assert parts["fetch + parse"] == max(parts.values())
    assert parts["metadata"] > 0
    assert "bare aiohttp" in said.stdout


def test_nothing_but_loopback_is_read():
    said = speed("pages", "http://192.0.2.1/", "--runs", 1)
    assert said.returncode == 2
    assert said.stderr.startswith("xyro lab speed: http://192.0.2.1/: ")


@pytest.mark.parametrize(
    "arguments", [("ram", "--urls", 0), ("ram", "--urls", "many"), ("latency", "--runs", -1), ("rum",)]
)
def test_bad_arguments_are_refused(arguments):
    assert speed(*arguments).returncode == 2


def frames(*modules):
    """A stack whose innermost frame is in the first module."""
    frame = None
    for module in reversed(modules):
        frame = SimpleNamespace(f_globals={"__name__": module}, f_back=frame)
    return frame


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (
            (
                "msgpack",
                "xyro.metadata.rows",
                "xyro.frontier.frontier",
                "xyro.service.node.partition_loop",
                "xyro.lab.speed.crawl_speed",
            ),
            "metadata",
        ),
        (("xyro.wire.urls", "xyro.links", "aiohttp.client_proto", "xyro.lab.speed.speed_lab"), "fetch + parse"),
        (("xyro.opic.cash", "xyro.frontier.ledger", "xyro.frontier.frontier"), "opic"),
        (("numpy", "xyro.frontier.ledger", "xyro.frontier.frontier"), "opic"),
        (("xyro.refresh.sharing", "xyro.frontier.scheduler"), "plan"),
        (("xyro.refresh.policy", "xyro.frontier.scheduler"), "refresh"),
        (("xyro.wire.bus", "xyro.service.node.partition_loop"), "crawl's glue"),
        (("uvloop", "xyro.lab.speed.crawl_speed", "xyro.lab.speed.speed_lab"), REST),
        (("asyncio.runners",), REST),
        ((), REST),
    ],
)
def test_time_is_booked_where_the_innermost_of_our_own_parts_used_it(stack, part):
    assert part_of(frames(*stack)) == part


def test_every_named_module_exists():
    for name in PARTS:
        path = ROOT / name.replace(".", "/")
        assert name == "aiohttp" or path.is_dir() or path.with_suffix(".py").exists(), name


def test_the_made_up_web_shows_what_was_asked_for():
    web = MadeUpWeb(per_host=10)
    assert len({web.url(number) for number in range(1_000)}) == 1_000
    first = web.links(0, new=30, near=0, far=0)
    assert first == [web.url(number) for number in range(1, 31)]
    assert web.pages_known == 31
    assert set(web.links(15, new=0, near=900, far=0)) == {web.url(number) for number in range(10, 20)}
    assert set(web.links(15, new=0, near=0, far=500)) == {web.url(number) for number in range(31)}
