"""docker-compose.yml with real containers: four nodes, a broker, a web of their own; scaled, stopped, started again.

Needs an engine, `docker compose` 2 and the image xyro:0.1.0: `.ci/containers` makes them and runs this.
What was read and when is told by the web's own log.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "compose"
PROJECT = f"xyro-test-{os.getpid()}"
PAGES = 240
DELAY = 0.2
"""politeness of the test's nodes, and pages of its web: tests/compose/web.yml"""
FILES = ("--file", str(ROOT / "docker-compose.yml"), "--file", str(HERE / "web.yml"))
PATIENCE = 240.0
PROMETHEUS = "prom/prometheus:v3.5.0"


def compose(*arguments: str, timeout: float = PATIENCE, check: bool = True) -> subprocess.CompletedProcess[str]:
    """`docker compose ARGUMENTS` of the test's own project."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith("XYRO_")}
    variables = {"XYRO_CONTACT": "me@example.org", "XYRO_SCOPE": "any", "XYRO_TEST_SITE": str(HERE / "site.py")}
    command = ["docker", "compose", "--project-name", PROJECT, *FILES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=bare | variables, timeout=timeout)
    assert not check or done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done


def has_image(image: str = "xyro:0.1.0") -> bool:
    """Tell whether there are an engine, compose and an image."""
    if not shutil.which("docker"):
        return False
    asked = (["docker", "compose", "version"], ["docker", "image", "inspect", image])
    return all(subprocess.run(command, capture_output=True).returncode == 0 for command in asked)


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not has_image(), reason="no engine, compose or image here: .ci/containers makes them"),
]


def asked(*arguments: str) -> Any:
    """What `xyro ARGUMENTS --json` says inside a node; None where it says nothing."""
    done = compose("exec", "-T", "node", "xyro", *arguments, "--json", check=False)
    return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else None


def until(found: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        if time.monotonic() > deadline:
            logs = compose("logs", "--tail", "40", check=False).stdout
            raise AssertionError(f"{what}: never within {seconds:.0f} s\n{asked('status')}\n{logs[-6000:]}")
        time.sleep(1)


def holds() -> dict[str, Any]:
    """The audit of the whole cluster, exact."""
    report = {}

    def sound() -> bool:
        nonlocal report
        report = asked("audit") or {}
        return bool(report.get("ok")) and not report.get("missing")

    until(sound, "an audit that holds", 120)
    return report


def reads() -> list[tuple[float, str, str]]:
    """(time, host, path) of each request to the web by one of its names, by its log."""
    container = compose("ps", "--quiet", "site").stdout.strip()
    log = subprocess.run(["docker", "logs", container], capture_output=True, text=True, timeout=60, check=True).stdout
    lines = [line.split() for line in log.splitlines()]
    return [(float(words[0]), words[1], words[2]) for words in lines if words[1].startswith("site")]


@pytest.fixture
def cluster() -> Iterator[None]:
    compose("up", "--detach", "--no-build", "--wait", "--scale", "node=4")
    try:
        yield
    finally:
        compose("--profile", "watch", "down", "--volumes", "--timeout", "10", check=False)


def test_four_nodes_read_a_web_are_scaled_and_come_back(cluster: None) -> None:
    shown = compose("ps", "--format", "json").stdout
    assert len(re.findall(r'"Service":"node"', shown)) == 4

    done = compose("run", "--rm", "-T", "submit", "http://site1.test:8000/0")
    assert "1 accepted, 0 refused" in done.stdout
    until(lambda: (asked("status") or {}).get("reads", 0) >= PAGES, "all pages read")
    first = holds()
    assert first["pages"] >= PAGES
    numbers = Counter(int(path[1:]) for _, _, path in reads() if path[1:].isdecimal())
    assert numbers == dict.fromkeys(range(PAGES), 1), "each page is asked for once"
    top = asked("top", "-n", "5")
    assert len(top) == 5 and all(row["url"].startswith("http://site") for row in top)

    compose("up", "--detach", "--no-build", "--wait", "--no-recreate", "--scale", "node=5")
    assert holds()["pages"] == first["pages"]

    compose("up", "--detach", "--no-build", "--wait", "--no-recreate", "--scale", "node=3")
    status = asked("status")
    assert status is not None and status.get("missing"), "two of five nodes are away, and are named"

    compose("down", "--timeout", "60")
    compose("up", "--detach", "--no-build", "--wait", "--scale", "node=5")
    last = holds()
    assert (last["pages"], last["cash_expected"]) == (first["pages"], first["cash_expected"])


def test_no_host_was_read_faster_than_politeness_allows(cluster: None) -> None:
    compose("run", "--rm", "-T", "submit", "http://site1.test:8000/0")
    until(lambda: len(reads()) >= PAGES, "all pages read")
    last: dict[str, float] = {}
    for at, host, _ in reads():
        assert at - last.get(host, 0.0) >= DELAY * 0.95, (host, at)
        last[host] = at
    assert len(last) == 6


def queried(path: str) -> Any:
    """What Prometheus answers inside the network of the services; None while it does not."""
    url = f"http://prometheus:9090/api/v1/{path}"
    code = f"from urllib.request import urlopen; print(urlopen({url!r}, timeout=5).read().decode())"
    done = compose("exec", "-T", "site", "python", "-c", code, check=False)
    return json.loads(done.stdout)["data"] if done.stdout.startswith("{") else None


def values(query: str) -> list[float]:
    found = queried(f"query?{urlencode({'query': query})}") or {"result": []}
    return [float(row["value"][1]) for row in found["result"]]


@pytest.mark.skipif(not has_image(PROMETHEUS), reason="no image of Prometheus here: .ci/containers makes it")
def test_prometheus_beside_the_nodes_scrapes_each_of_them(cluster: None) -> None:
    compose("--profile", "watch", "up", "--detach", "--no-build", "prometheus")
    compose("run", "--rm", "-T", "submit", "http://site1.test:8000/0")
    until(lambda: values('up{job="xyro"}') == [1.0] * 4, "four nodes scraped")
    until(lambda: values('sum(xyro_reads_total{result="ok"})') == [float(PAGES)], "all reads counted")
    assert Counter(number for _, _, path in reads() if (number := path[1:]).isdecimal()).total() == PAGES
    rules = [rule["name"] for group in queried("rules")["groups"] for rule in group["rules"]]
    assert "XyroReadsFail" in rules and values("sum(xyro_pages)")[0] >= PAGES
