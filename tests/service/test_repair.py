"""`xyro repair`: whatever an independent damager did, the audit is exact afterwards and what was lost is told, or one
line says that it cannot be done."""

import json
import random
import shutil
from pathlib import Path

import pytest

from tests.service.face import LOOPBACK, process, rows, said, xyro
from xyro.lab.child import running

UNTOUCHED = {"LOG", "LOG.old", "LOCK", "OWNER"}
SAME = ("state", "reads", "signature", "last_read", "kind", "out_links")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A crawl of two runs in three partitions, so that there are tables, logs and snapshots; its pages by URL."""
    data = tmp_path_factory.mktemp("repair") / "data"
    with running(pages=150, hosts=6, seed=3, rate_median=0.0) as web:
        for bound in (["--max-pages", "60", "--partitions", "3"], []):
            done = process("crawl", web.entry, *LOOPBACK, "--data", data, "--json", *bound)
            assert done.returncode == 0, done.stderr
    return data, {row["url"]: row for row in rows("pages", data)}


@pytest.fixture
def copy(crawled, tmp_path):
    shutil.copytree(crawled[0], tmp_path / "data")
    return tmp_path / "data"


def damage(data: Path, seed: int) -> str:
    """Flip a bit, cut, empty a block of or lose one file; what was done."""
    chance = random.Random(seed)
    files = [path for path in sorted(data.rglob("*")) if path.is_file() and path.name not in UNTOUCHED]
    path, kind = chance.choice(files), chance.choice(["flip", "flip", "cut", "block", "lose"])
    content = bytearray(path.read_bytes())
    if kind == "lose":
        path.unlink()
        return f"{kind} {path}"
    if kind == "cut":
        content = content[: chance.randrange(len(content) + 1)]
    elif content:
        place = chance.randrange(len(content))
        if kind == "flip":
            content[place] ^= 1 << chance.randrange(8)
        else:
            content[place : place + 4096] = bytes(len(content[place : place + 4096]))
    path.write_bytes(content)
    return f"{kind} {path}"


def check(data: Path, before: dict[str, dict[str, object]]) -> str:
    """Repair it; 'sound', 'repaired', or the one line of the error. Fails where the account is not true."""
    done = xyro("repair", "--data", data, "--json")
    if done.returncode:
        assert done.returncode in (2, 3) and done.stderr.count("\n") == 1, done.stderr
        return done.stderr
    told = json.loads(done.stdout)
    lost = told["lost"]
    assert said("audit", "--data", data)["ok"]
    after = {row["url"]: row for row in rows("pages", data)}
    gone = [url for url in before if url not in after]
    assert len(gone) <= lost.get("urls", 0) or lost.get("commits"), f"{len(gone)} URLs went, told is {lost}"
    again = [url for url in before.keys() & after if before[url]["state"] == "read" != after[url]["state"]]
    assert len(again) <= sum(lost.get(kind, 0) for kind in ("reads", "documents", "loads")) or lost.get("columns"), lost
    others = [url for url in before.keys() & after if any(before[url][name] != after[url][name] for name in SAME)]
    assert not others or lost, f"{others[0]} is another one, and nothing is told"
    assert not [url for url in after if url not in before and ".invalid/" not in url]
    return "repaired" if told["repaired"] else "sound"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_one_damage(copy, crawled, seed):
    done = damage(copy, seed)
    assert check(copy, crawled[1]) in ("repaired", "sound"), done


@pytest.mark.long
def test_hundreds_of_damages(crawled, tmp_path):
    outcomes = []
    for seed in range(1_000, 1_150):
        copy = tmp_path / str(seed) / "data"
        shutil.copytree(crawled[0], copy)
        damage(copy, seed)
        outcomes.append(check(copy, crawled[1]))
        shutil.rmtree(copy.parent)
    assert sum(outcome not in ("repaired", "sound") for outcome in outcomes) <= 2, outcomes


@pytest.mark.long
def test_what_was_repaired_goes_on(copy, crawled):
    log = max((copy / "p0001" / "store").glob("*.log"))
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    done = xyro("audit", "--data", copy)
    assert done.returncode == 3 and "xyro repair" in done.stderr
    started = process("crawl", *LOOPBACK, "--data", copy)
    assert started.returncode == 3 and "xyro repair" in started.stderr
    assert check(copy, crawled[1]) == "repaired"
    with running(pages=150, hosts=6, seed=3, rate_median=0.0) as web:
        done = process("crawl", web.entry, *LOOPBACK, "--data", copy, "--json")
    assert done.returncode == 0, done.stderr
    assert said("audit", "--data", copy)["ok"]


@pytest.mark.long
def test_people_are_told(copy):
    done = xyro("repair", "--data", copy)
    assert done.returncode == 0 and "nothing to repair" in done.stdout
    for snapshot in copy.rglob("snapshot-*"):
        snapshot.write_bytes(b"")
    done = xyro("repair", "--data", copy)
    assert done.returncode == 0, done.stderr
    assert f"{copy}.damaged" in done.stdout and "lost cash, importance and dates" in done.stdout
    assert "units of cash: paid to all pages alike" in done.stdout
    assert not [path for path in copy.parent.iterdir() if path.name not in ("data", "data.damaged")]
    (copy / "crawl.toml").write_text("")
    done = xyro("repair", "--data", copy)
    assert done.returncode == 2 and "data.damaged: is in the way" in done.stderr


def test_nothing_to_go_by_is_one_line(copy, tmp_path):
    done = xyro("repair", "--data", tmp_path / "nowhere")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    shutil.rmtree(copy / "p0001")
    done = xyro("repair", "--data", copy)
    assert done.returncode == 3 and "2 of 3 partitions are there" in done.stderr and (copy / "p0000").exists()
