"""Options that users of other crawlers look for, as a person types them, over a real web."""

import fcntl
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios

import pytest

from tests.service.face import ENVIRONMENT, LOOPBACK, process, rows, said, started, until, xyro
from xyro.lab.child import running
from xyro.service.views.text_tables import pages_table
from xyro.wire.text import middle_cut

PAGE = "http://a.example/a/long/path/that/goes/on/and/on/and/on/for/a/while/page.html?with=a&query=too"


@pytest.fixture(scope="module")
def web():
    with running(pages=40, hosts=2, seed=3, rate_median=0.0) as site:
        yield site


def test_seeds_come_from_a_file_and_patterns_bound_what_is_read(web, tmp_path):
    (tmp_path / "seeds").write_text(f"# ours\n\n{web.entry}\n")
    words = ("--exclude", "*/d*", "--user-agent", "Tester", "-v", "--max-seconds", "30", "--data", "d", "--json")
    done = process("crawl", "--seeds", "seeds", *LOOPBACK, *words, cwd=tmp_path, XYRO_LOG__FORMAT="json")
    assert done.returncode == 0 and json.loads(done.stdout)["seeds"] == 1
    read = {row["url"] for row in rows("pages", tmp_path / "d") if row["http_status"] == 200}
    assert web.entry in read and not any("/d" in url for url in read)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    found = [line for line in lines if line.get("event") == "read"]
    assert {line["url"] for line in found if line["status"] == 200} == read
    assert all(line["host"] in line["url"] and line["seconds"] >= 0.0 and line["level"] == "debug" for line in found)


def test_include_bounds_what_is_read(web, tmp_path):
    words = ("--include", "*/", "--include", "*/d*", "--max-seconds", "30", "--data", tmp_path / "d")
    done = process("crawl", web.entry, *LOOPBACK, *words)
    assert done.returncode == 0, done.stderr
    found = {row["url"]: row["http_status"] for row in rows("pages", tmp_path / "d") if "/sitemap" not in row["url"]}
    read = {url for url, status in found.items() if status}
    assert read == {url for url in found if url.endswith("/") or "/d" in url}
    assert 1 < len(read) < len(found)


def test_standard_input_may_have_the_seeds_and_quiet_is_quiet(web, tmp_path):
    done = process("crawl", "--seeds", "-", *LOOPBACK, "-q", "--max-pages", "3", cwd=tmp_path, given=f"{web.entry}\n")
    assert done.returncode == 0 and done.stderr == "" and "(max-pages)" in done.stdout


@pytest.mark.long
def test_closing_lines_are_folded_on_a_terminal(tmp_path):
    """Standard error is a terminal of 80 columns; the sentences are longer."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    seeds = [f"http://127.0.0.1:{port}/a-seed-that-nobody-answers/{number}.html" for number in range(3)]
    command = [sys.executable, "-m", "xyro", "crawl", *seeds, *LOOPBACK, "-q", "--max-seconds", "5", "--data", "d"]
    environment = ENVIRONMENT | {"TERM": "dumb"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs, timeout=60)
    os.close(theirs)
    told = "".join(iter(lambda: _read(ours), ""))
    lines = told.replace("\r", "").splitlines()
    words = re.sub(r"\s+", " ", told)
    assert done.returncode == 4 and "says why" in words
    assert "tried again" not in words, "a seed may have failed for good"
    assert max(map(len, lines)) <= 80, told


def _read(terminal):
    """What a terminal shows next; nothing once nobody writes there any more."""
    try:
        return os.read(terminal, 4096).decode()
    except OSError:
        return ""


def test_a_daemon_begins_with_seeds_and_stops_when_it_is_asked_to(web, tmp_path):
    data = tmp_path / "d"
    with started("serve", web.entry, f"{web.entry}nothing", *LOOPBACK, data=data) as daemon:
        until(lambda: said("status", "--data", data)["states"]["error"])
        failed = {row["class"]: row for row in said("log", "--errors", "--data", data)}
        assert f"{web.entry}nothing" in [each["url"] for each in failed["http-404"]["samples"]]
        done = xyro("stop", "--data", data)
        assert done.returncode == 0 and done.stdout == f"process {daemon.pid} has ended\n"
        assert daemon.wait(10) == 0
    stopped = xyro("log", "--errors", "--data", data)
    assert stopped.returncode == 0 and f"    {web.entry}nothing" in stopped.stdout.splitlines()
    assert xyro("stop", "--data", data).returncode == 2 and xyro("log", "--data", data).returncode == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell):
    assert "_XYRO_COMPLETE" in xyro("completion", shell).stdout


def test_a_url_is_cut_in_the_middle_or_has_its_own_line():
    assert middle_cut(PAGE, 40) == "http://a.example/a/long…h=a&query=too" or len(middle_cut(PAGE, 40)) == 40
    assert middle_cut(PAGE, 400) == PAGE and middle_cut(PAGE, 3) == PAGE
    row = {
        "url": PAGE,
        "importance": 1.0,
        "cash": 65_536,
        "reads": 1,
        "change_rate": None,
        "rate_from": None,
        "next_read": None,
    }
    row |= {"score": 1.0, "convergence": 1.0, "error_bound": 2.0}
    for width in (80, 120):
        table = pages_table([row], "cash", width)
        assert (max(map(len, table.splitlines())) <= width and "page.html" in table) or "query=too" in table
    assert PAGE in pages_table([row], "cash")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("pages", "--min-importance", "2"), "--min-importance: chooses among texts and warc; `xyro export pages`"),
        (("hosts", "--by", "url"), "--by: chooses among texts and warc"),
        (("links", "--since", "24h"), "--since: chooses among texts and warc"),
        (("texts", "--to", "f", "--by", "date"), "without -o, --format and --by"),
        (("texts", "--as", "text"), "--as: only with --to FOLDER"),
        (("texts", "--delete"), "--delete: only with --to FOLDER"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(tmp_path, words, why):
    done = xyro("export", *words, "--data", tmp_path / "d")
    assert done.returncode == 2 and why in done.stderr and done.stdout == ""
