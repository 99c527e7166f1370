"""WARC files and texts of a crawl of real sites, judged by the log of their server, warcio and pywb.

    python -m tests.plugins.contents_rig http://127.0.1.1:8080/small.html --log access.log --kills 20 --reads 20000

The log has a line a request: tabs between its fields, of which the second is the host, the fourth the status, the last
but one the User-Agent and the last the URI (the rig's nginx writes such). A crawl is killed again and again, then ends;
another reads pages again. What holds is printed, and what does not is an AssertionError:

- after each kill every read that a commit group told of has its record, and only files that were open are torn;
- of the crawls that ended in order, each request is one response or revisit, URL by URL, and the other way round;
- answers 304 are revisits, and `warcio check` finds nothing;
- random pages, replayed from the files, are byte for byte what the server sends;
- so are random captures of the indexes that are left once `[keep] bytes` has dropped a third of the files.

`--pairs N` instead prints what a page costs with WARC files, with texts, with both and with neither: N crawls of each,
in turn, from start to stop on one core; CPU by the kernel, pages by the server's log.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.plugins.test_warc import answered, files, records, sent, whole
from tests.service.face import ENVIRONMENT, ROOT, XYRO, rows, until

KEEP = ("--warc", "--text")
FILE_BYTES = "8 MB"
"""so that a crawl of some hundred MB writes many files"""
FLUSHED = 2.0
"""seconds after which the server has written its log"""
REPLAY = 18_480
"""port of pywb"""


def requests(log: Path, start: int, agent: str) -> Iterator[tuple[str, str]]:
    """(URL without its scheme and port, status) of what a crawler asked for since the log had so many bytes."""
    with log.open("rb") as file:
        file.seek(start)
        for line in file:
            fields = line.decode("utf-8", "replace").rstrip("\n").split("\t")
            if fields[-2].startswith(agent):
                yield f"{fields[1]}{fields[-1]}", fields[3]


def place(url: str) -> str:
    """A URL as `requests` has it."""
    parts = urlsplit(url)
    return f"{parts.hostname}{url.split(parts.netloc, 1)[1]}"


def command(entry: str, data: Path, agent: str, *more: str, keep: Sequence[str] = KEEP) -> list[str]:
    limits = ["--scope", "any", "--only-net", "127.0.1.0/24", "--delay", "0", "--user-agent", agent]
    return [*XYRO, "crawl", entry, "--data", str(data), *limits, *keep, *more]


def kill(entry: str, data: Path, kills: int, log: Path) -> None:
    """Kill a crawl again and again, and look each time."""
    rng, closed_before = random.Random(14), set[Path]()
    counts: collections.Counter[str] = collections.Counter()
    torn = 0
    for number in range(kills):
        crawl = subprocess.Popen(
            command(entry, data, "xyro-killed", "--refresh"),
            cwd=ROOT, env={**ENVIRONMENT, "XYRO_KEEP__FILE_BYTES": FILE_BYTES}, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        size = log.stat().st_size
        until((data / "run").exists)
        until(lambda size=size: sum(1 for _ in requests(log, size, "xyro-killed")) > 100)
        time.sleep(rng.uniform(0.0, 3.0))
        assert crawl.poll() is None, "it ended before it could be killed"
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
        (data / "run").unlink()
        parts = {path.name.removesuffix(".cdxj.part") for path in (data / "contents").glob("*.part")}
        fresh = [path for path in files(data) if path not in closed_before]
        closed = [path for path in fresh if path.name.removesuffix(".warc.gz") not in parts]
        assert all(map(whole, closed)), "a file is torn that was not open"
        torn += sum(not whole(path) for path in fresh if path not in closed)
        closed_before.update(closed)
        counts += answered(closed)
        now = counts + answered([path for path in fresh if path not in closed])
        told = {row["url"]: row["reads"] for row in rows("pages", data) if row["reads"]}
        missing = [url for url, reads in told.items() if now[url] < reads]
        assert told and not missing, f"reads that a commit group told of, and no record: {missing[:5]}"
        print(f"kill {number + 1}: {sum(told.values()):,} reads told, each has its record", flush=True)
    print(f"{kills} kills: {torn} files torn, each of them open at the kill; no record is missing")


def ended(entry: str, data: Path, log: Path, agent: str, *more: str) -> None:
    """A crawl that ends in order: its records beside the server's log."""
    before, start = set(files(data)), log.stat().st_size
    done = subprocess.run(
        command(entry, data, agent, "--json", *more), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    time.sleep(FLUSHED)
    asked = list(requests(log, start, agent))
    found = [
        (kind, place(url))
        for kind, url, *_ in records([path for path in files(data) if path not in before])
        if kind in ("response", "revisit")
    ]
    kinds = collections.Counter(kind for kind, _ in found)
    statuses = collections.Counter(status for _, status in asked)
    assert collections.Counter(url for _, url in found) == collections.Counter(url for url, _ in asked)
    assert kinds["revisit"] >= statuses["304"]
    print(f"{agent}: {kinds['response']:,} responses + {kinds['revisit']:,} revisits = {len(asked):,} requests of the "
          f"server's log, URL by URL; by status {dict(statuses)}; {json.loads(done.stdout)['pages_read']:,} pages read",
          flush=True)  # fmt: skip


def replay(data: Path, sample: int, wayback: Path) -> None:
    """Let pywb serve the files, and compare random pages with what the server sends, each as of its latest capture."""
    times: dict[str, str] = {}
    revisited: set[str] = set()
    for kind, url, date, *_ in records(files(data)):
        if kind in ("response", "revisit"):
            times[url] = max("".join(filter(str.isdigit, date))[:14], times.get(url, ""))
            if kind == "revisit":
                revisited.add(url)
    with tempfile.TemporaryDirectory() as folder:
        manager = str(wayback.with_name("wb-manager"))
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([manager, "init", "x"], check=True, **quiet)
        subprocess.run([manager, "add", "x", *map(str, files(data))], check=True, **quiet)
        chosen = random.Random(14).sample(sorted(revisited), sample)
        same = replayed(wayback, Path(folder), [(times[url], url) for url in chosen])
    print(
        f"replayed by pywb: {same} of {sample} random pages, of {len(revisited):,} whose latest capture is a revisit, "
        "byte for byte as the server sends"
    )
    assert same == sample


def retain(entry: str, data: Path, reads: int, sample: int, wayback: Path) -> None:
    """Let `[keep] bytes` drop a third of the files, and pywb replay captures that our own indexes have after it."""
    before, size = set(files(data)), sum(path.stat().st_size for path in (data / "contents").iterdir())
    bound = {**ENVIRONMENT, "XYRO_KEEP__BYTES": str(2 * size // 3)}
    words = command(entry, data, "xyro-bound", "--refresh", "--max-pages", str(reads))
    crawl = subprocess.run(words, cwd=ROOT, env=bound, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert crawl.returncode == 0, crawl.stderr.decode()[-2_000:]
    gone = before - set(files(data))
    captures, revisits = [], 0
    for index in sorted((data / "contents").glob("*.cdxj")):
        for line in index.read_text().splitlines():
            _, moment, facts = line.split(" ", 2)
            capture = json.loads(facts)
            if capture.get("status", "200") == "200" or capture["mime"] == "warc/revisit":
                captures.append((moment, capture["url"]))
                revisits += capture["mime"] == "warc/revisit"
    assert gone and revisits
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.yaml").write_text(
            f"collections:\n  x:\n    index_paths: {data}/contents/\n    archive_paths: {data}/contents/\n"
        )
        chosen = random.Random(15).sample(captures, sample)
        same = replayed(wayback, Path(folder), chosen)
    print(f"retention: {len(gone)} of {len(before)} files gone; by the indexes that are left, pywb replays {same} of "
          f"{sample} random captures, of {len(captures):,}, {revisits:,} of them revisits", flush=True)  # fmt: skip
    assert same == sample


def replayed(wayback: Path, folder: Path, captures: Sequence[tuple[str, str]]) -> int:
    """How many captures (moment, URL) pywb serves from the collection x of a folder as the server sends them."""
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([str(wayback), "-p", str(REPLAY), "-b", "127.0.0.1"], **quiet)
    try:
        until(lambda: _listens(REPLAY))
        same = [sent(f"http://127.0.0.1:{REPLAY}/x/{moment}id_/{url}") == sent(url) for moment, url in captures]
        for (moment, url), is_same in zip(captures, same, strict=True):
            if not is_same:
                print(f"replayed otherwise than it is sent: {moment} {url}", flush=True)
        return sum(same)
    finally:
        server.terminate()
        server.wait()


def cost(entry: str, folder: Path, log: Path, pairs: int, kinds: Sequence[str], *more: str) -> None:
    """Crawls that keep something beside crawls that keep nothing, each in its turn."""
    seen: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(pairs):
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            data, agent, start = folder / "cost", f"xyro-cost-{kind.replace('+', '-')}", log.stat().st_size
            words = command(
                entry, data, agent, "--json", *more, keep=[f"--{k}" for k in kind.split("+") if k != "none"]
            )
            began = time.monotonic()
            crawl = subprocess.Popen(
                ["taskset", "-c", "0", *words], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            _, status, usage = os.wait4(crawl.pid, 0)
            crawl.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - began
            assert crawl.returncode == 0
            shutil.rmtree(data)
            time.sleep(FLUSHED)
            pages = sum(not place.endswith("/robots.txt") for place, _ in requests(log, start, agent))
            seen[kind].append(1e3 * (usage.ru_utime + usage.ru_stime) / pages)
            print(f"{kind:10} {pages:,} pages, {seen[kind][-1]:.3f} ms of CPU a page, {pages / wall:,.0f} a second, "
                  f"peak {usage.ru_maxrss / 1024:.0f} MiB", flush=True)  # fmt: skip
    for kind, values in seen.items():
        print(f"{kind:10} median {statistics.median(values):.3f} ms ({min(values):.3f} to {max(values):.3f})")


def _listens(port: int) -> bool:
    try:
        HTTPConnection("127.0.0.1", port, timeout=5).connect()
    except OSError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entry")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--reads", type=int, default=20_000, help="of the crawl that reads pages again")
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--wayback", type=Path, help="pywb's command; without it nothing is replayed")
    parser.add_argument("--pairs", type=int, default=0, help="measure what a page costs instead, so many times")
    parser.add_argument("--kinds", default="none,warc,text,warc+text", help="what is kept in the crawls of --pairs")
    parser.add_argument("--max-pages", type=int, default=0, help="of each crawl of --pairs")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="contents-rig-"))
    data = folder / "data"
    try:
        if options.pairs:
            bound = ("--max-pages", str(options.max_pages)) if options.max_pages else ()
            cost(options.entry, folder, options.log, options.pairs, options.kinds.split(","), *bound)
            return
        kill(options.entry, data, options.kills, options.log)
        ended(options.entry, data, options.log, "xyro-first")
        ended(options.entry, data, options.log, "xyro-again", "--refresh", "--max-pages", str(options.reads))
        warcio = Path(XYRO[0]).with_name("warcio")
        subprocess.run([str(warcio), "check", *map(str, files(data))], check=True)
        size = sum(path.stat().st_size for path in files(data))
        print(f"warcio check: clean, {len(files(data))} files, {size / 1e6:.0f} MB", flush=True)
        if options.wayback:
            replay(data, options.sample, options.wayback)
            retain(options.entry, data, options.reads, options.sample, options.wayback)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
