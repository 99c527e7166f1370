"""The command line: what it is called, what it prints, and how it says no."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgpack
import pytest
from click.testing import CliRunner

from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, process, rows, said, started, until, xyro
from xyro.lab.child import running
from xyro.lab.command import lab
from xyro.metadata import rows as stored_rows
from xyro.metadata.store import Store
from xyro.service.cli import running_crawl

HEAVY = {"aiohttp", "numpy", "lxml", "msgspec", "uvloop", "plyvel", "rich", "selectolax", "asyncio", "yarl", "aiodns"}
SEED = "http://127.1.0.1:9999/"
PAGE_FIELDS = {
    *("id", "url", "host", "kind", "http_status", "state", "error", "depth", "importance", "cash", "change_rate"),
    *("interval_s", "first_seen", "first_read", "last_read", "last_change", "next_read", "reads", "changes"),
    *("out_links", "signature"),
}
STATES = {"unread", "queued", "leased", "read", "error", "dead", "out-of-scope", "disallowed", "blocked"}


@pytest.fixture(scope="module")
def web():
    with running(pages=300, hosts=4, seed=3, rate_median=0.0) as web:
        yield web


@pytest.fixture(scope="module")
def crawled(web, tmp_path_factory):
    """A data directory of the whole web, its closing report, and what was told meanwhile."""
    data = tmp_path_factory.mktemp("cli") / "data"
    done = process("crawl", web.entry, *LOOPBACK, "--data", data, "--json")
    assert done.returncode == 0, done.stderr
    return data, done


# It starts at once


@pytest.mark.parametrize("words", [["--help"], ["crawl", "--help"], ["--version"], []])
def test_help_imports_nothing_heavy(words):
    script = (
        "import sys; from xyro.service.cli.main import main\n"
        f"try: main({words})\n"
        "except SystemExit as end: print(end.code, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    code, *modules = done.stderr.split()
    assert code == "0" and done.stdout
    assert not HEAVY & set(modules)


def test_submit_imports_nothing_that_crawls(tmp_path):
    script = (
        "import sys; from xyro.service.cli.main import main\n"
        f"try: main(['submit', 'http://a/', '--data', {str(tmp_path / 'none')!r}])\n"
        "except SystemExit as end: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout and not HEAVY & set(done.stdout.split())


def test_a_command_loads_no_other():
    script = (
        "import sys; from xyro.service.cli.main import main\n"
        "try: main(['crawl', '--help'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    loaded = {name.rpartition(".")[2] for name in done.stderr.split() if name.startswith("xyro.service.cli.")}
    assert "crawl_commands" in loaded and not {"view_commands", "xml_commands", "cluster_command"} & loaded


def test_records_of_a_crawl_are_cheap_to_make():
    """A dataclass takes half a millisecond, a Struct a tenth of it: the modules of a crawl had 107."""
    script = (
        "import dataclasses, sys\n"
        "make, made = dataclasses._process_class, []\n"
        "dataclasses._process_class = lambda cls, *rest: (made.append(cls.__module__), make(cls, *rest))[1]\n"
        "import xyro.service.node.life_cycle\n"
        "print(sum(name.startswith('xyro.') for name in made))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout and int(done.stdout) <= 12, done


# The contract


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("command", ["--help", "status", "top", "status --json", f"why {SEED}", "export hosts"])
def test_a_full_disk_behind_standard_output_is_one_line(crawled, command):
    words = [*command.split(), *(() if command == "--help" else ("--data", crawled[0]))]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*XYRO, *words], cwd=ROOT, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3
    assert done.stderr == "xyro: standard output: No space left on device: free or mend the disk\n"


def test_crawl_json_is_one_object_on_stdout_and_nothing_else(crawled):
    _, done = crawled
    report = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert {"pages_read", "pages_known", "errors", "seconds", "bytes"} <= report.keys()
    assert report["pages_known"] == 300 and report["ended"] == "complete" and report["bytes"] > 100_000
    assert all(isinstance(count, int) for count in report["errors"].values())
    assert "listening at 127.0.0.1:" in done.stderr


def test_pages_have_all_fields_and_cash_adds_up(crawled):
    data, done = crawled
    pages, audit = rows("pages", data), said("audit", "--data", data)
    assert {"ok", "pages", "cash_total", "cash_expected", "virtual", "in_flight", "violations"} <= audit.keys()
    assert audit["ok"] and audit["violations"] == []
    assert all(page.keys() >= PAGE_FIELDS and page["state"] in STATES for page in pages)
    cash = sum(page["cash"] for page in pages)
    assert cash + audit["virtual"] + audit["in_flight"] == audit["cash_total"] == 65_536 * audit["pages"]
    assert sum(page["reads"] for page in pages) == json.loads(done.stdout)["pages_read"]
    assert sum(page["importance"] for page in pages) / len(pages) == pytest.approx(1.0, abs=1e-3)


def test_links_and_hosts_agree_with_pages(crawled):
    data, _ = crawled
    pages = {page["id"]: page for page in rows("pages", data)}
    links, hosts = rows("links", data), rows("hosts", data)
    assert len(links) == sum(page["out_links"] or 0 for page in pages.values())
    assert all(pages[link["target"]]["url"] == link["target_url"] for link in links)
    assert sum(host["pages"] for host in hosts) == len(pages)
    assert {host["host"] for host in hosts} == {page["host"] for page in pages.values()}


@pytest.mark.parametrize("by", ["importance", "cash", "stale"])
def test_top_is_sorted_and_limited(crawled, by):
    data, _ = crawled
    best = said("top", "--data", data, "-n", 7, "--by", by)
    scores = [row["score"] for row in best]
    assert len(best) == 7 and scores == sorted(scores, reverse=True)
    table = xyro("top", "--data", data, "-n", 7, "--by", by).stdout.splitlines()
    later = said("top", "--data", data, "-n", 7, "--by", by)  # staleness grows, and places change with it
    told = [line.split()[-1] for line in table[1:8]]
    assert told in [[row["url"] for row in rows] for rows in (best, later)]
    assert all(line.startswith(("importance has ", "score = ", "(changes/day): ")) for line in table[8:])


def test_why_explains_what_is_read_what_is_not_and_what_is_unknown(crawled, web):
    data, _ = crawled
    assert any("It was read" in sentence for sentence in said("why", web.entry, "--data", data)["because"])
    kept = next(page for page in rows("pages", data) if page["state"] == "disallowed")
    assert "robots.txt" in " ".join(said("why", kept["url"], "--data", data)["because"])
    zipped = next(page for page in rows("pages", data) if page["state"] == "out-of-scope")
    assert "suffix" in " ".join(said("why", zipped["url"], "--data", data)["because"])
    unknown = said("why", "http://127.1.0.1:1/nowhere", "--data", data)
    assert unknown["state"] == "unknown" and unknown["because"]
    assert web.entry in xyro("why", web.entry, "--data", data).stdout


def test_status_of_a_stopped_crawl(crawled):
    data, _ = crawled
    status = said("status", "--data", data)
    assert status["running"] is False and status["known"] == 300 and status["scope"] == "any"
    assert sum(status["states"].values()) == 300
    assert "running  no" in xyro("status", "--data", data).stdout


def test_looking_changes_nothing(crawled):
    data, _ = crawled
    before = rows("pages", data)
    for words in (["status"], ["top"], ["audit"], ["export", "links"]):
        assert xyro(*words, "--data", data).returncode == 0
    assert rows("pages", data) == before


def test_a_reader_that_has_seen_enough_is_no_error(crawled):
    data, _ = crawled
    command = " ".join([*XYRO, "export", "pages", "--data", str(data)])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == "" and json.loads(done.stdout)["id"] == 0


# Resuming


def test_a_resumed_crawl_keeps_its_scope_and_reads_nothing_twice(crawled, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(crawled[0], data)
    before = rows("pages", data)
    report = said("crawl", "--only-net", "127.0.0.0/8", "--data", data)
    assert (report["pages_read"], report["ended"]) == (0, "complete")
    assert [(page["url"], page["reads"], page["state"]) for page in rows("pages", data)] == [
        (page["url"], page["reads"], page["state"]) for page in before
    ]


def test_bounds_hold_and_the_rest_is_read_later(web, tmp_path):
    data = tmp_path / "data"
    first = said("crawl", web.entry, *LOOPBACK, "--data", data, "--max-pages", 40)
    assert (first["pages_read"], first["ended"]) == (40, "max-pages")
    second = said("crawl", *LOOPBACK, "--data", data, "--max-seconds", 60)
    assert second["ended"] == "complete" and second["reads_total"] == second["pages_read"] + 40
    assert max(page["reads"] for page in rows("pages", data)) == 1


def test_refreshing_goes_on_to_the_bound(web, tmp_path):
    report = said("crawl", web.entry, *LOOPBACK, "--data", tmp_path / "data", "--refresh", "--max-pages", 700)
    assert (report["pages_read"], report["ended"]) == (700, "max-pages")


# How it says no


BAD = {
    "bare host": (["crawl", "example.org"], ["example.org", "write http://example.org"]),
    "no URL": (["crawl", "http://exa[mple/"], ["http://exa[mple/", "absolute http"]),
    "other scheme": (["crawl", "ftp://example.org/"], ["ftp://example.org/", "only http"]),
    "userinfo": (["crawl", "http://me:secret@example.org/"], ["user name or password", "write http://example.org/"]),
    "escape": (["crawl", "http://\x1b[31m/"], ["absolute http"]),
    "nothing to resume": (["crawl", "--data", "new"], ["new", "seed URL"]),
    "no contact": (["crawl", "http://example.org/"], ["--contact you@example.org"]),
    "contact with blanks": (["crawl", "http://example.org/", "--contact", "a b"], ["contact", "mail address"]),
    "network": (["crawl", SEED, "--only-net", "300.0.0.0/8"], ["only_net", "10.0.0.0/8"]),
    "host bits": (["crawl", SEED, "--only-net", "10.0.0.1/8"], ["got ['10.0.0.1/8']; write 10.0.0.0/8"]),
    "contact that is none": (["crawl", "http://example.org/", "--contact", "me"], ["contact", "mail address"]),
    "delay below 0": (["crawl", SEED, "--delay", "-1"], ["delay", "0 or more"]),
    "delay of nan": (["crawl", SEED, "--delay", "nan"], ["delay", "0 or more"]),
    "depth below 0": (["crawl", SEED, "--max-depth", "-1"], ["max_depth", "0 or more"]),
    "pages below 0": (["crawl", SEED, "--max-pages", "-1"], ["max_pages", "0 or more"]),
    "seconds of nan": (["crawl", SEED, "--max-seconds", "nan"], ["max_seconds", "0 or more"]),
    "scope": (["crawl", SEED, "--scope", "galaxy"], ["--scope", "domain", "--help"]),
    "partitions": (["crawl", SEED, "--partitions", "0"], ["--partitions", "1<=x<=4096"]),
    "option": (["crawl", SEED, "--deley", "1"], ["--deley", "xyro crawl --help"]),
    "command": (["crwal"], ["crwal", "Did you mean 'crawl'? see `xyro --help`"]),
    "file as directory": (["crawl", SEED, "--data", "file"], ["file", "--data"]),
    "not a crawl": (["crawl", SEED, "--only-net", "127.0.0.0/8", "--data", "."], ["no p0000"]),
    "no such config": (["crawl", SEED, "--config", "none.toml"], ["none.toml", "--config"]),
    "config that is none": (["crawl", SEED, "--config", "file"], ["file", "line 1"]),
    "unknown key": (["crawl", SEED, "--config", "key.toml"], ["key.toml", "[politeness]", "did you mean min_delay"]),
    "wrong type": (["crawl", SEED, "--config", "type.toml"], ["type.toml", "concurrency", "whole number", "'many'"]),
    "open interface": (["serve", *LOOPBACK, "--config", "open.toml"], ["[api] host", "0.0.0.0", "127.0.0.1"]),
    "named interface": (["serve", *LOOPBACK, "--config", "name.toml"], ["[api] host", "example.org"]),
    "no crawl to look at": (["top", "--data", "new"], ["new", "xyro crawl URL --data new"]),
    "no crawl to audit": (["audit", "--data", "new"], ["new"]),
    "why of a bare host": (["why", "example.org", "--data", "new"], ["write http://example.org"]),
    "why of nothing": (["why"], ["URL", "xyro why --help"]),
    "table": (["export", "everything"], ["everything", "hosts"]),
    "parquet to stdout": (["export", "pages", "--format", "parquet"], ["-o FILE"]),
    "missing folder": (["export", "pages", "-o", "none/pages.csv"], ["none", "make it first"]),
    "no daemon": (["submit", "http://example.org/", "--data", "new"], ["new", "xyro serve --data new"]),
    "no daemon to pause": (["pause", "example.org", "--data", "new"], ["new", "xyro serve"]),
    "demo over a crawl": (["lab", "demo", "--data", "."], ["exists", "--data"]),
    "lab": (["lab", "wbe"], ["wbe", "xyro lab --help"]),
}  # fmt: skip


@pytest.mark.parametrize(("words", "told"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line_with_place_and_mend_and_changes_nothing(tmp_path, words, told):
    (tmp_path / "file").write_text("what is this\n")
    (tmp_path / "key.toml").write_text("[politeness]\nmin_dealy = 1\n")
    (tmp_path / "type.toml").write_text('[fetch]\nconcurrency = "many"\n')
    (tmp_path / "open.toml").write_text('[api]\nhost = "0.0.0.0"\n')
    (tmp_path / "name.toml").write_text('[api]\nhost = "example.org"\n')
    before = sorted(os.listdir(tmp_path))
    done = xyro(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("xyro: ") and done.stderr.count("\n") == 1 and done.stderr[:-1].isprintable()
    assert all(word in done.stderr for word in told), done.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_an_unknown_variable_is_named(tmp_path):
    done = xyro("crawl", SEED, cwd=tmp_path, XYRO_FETCH__CONCURENCY="7")
    assert done.returncode == 2 and "XYRO_FETCH__CONCURENCY" in done.stderr and "concurrency" in done.stderr


def test_a_port_that_is_taken_is_told_before_anything_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = xyro("crawl", SEED, *LOOPBACK, cwd=tmp_path, XYRO_API__PORT=str(port))
    assert done.returncode == 2 and f"127.0.0.1:{port}" in done.stderr and "another port" in done.stderr
    assert os.listdir(tmp_path) == []


def test_other_partitions_are_refused_on_resume(crawled):
    for words, environment in (["--partitions", 4], {}), ([], {"XYRO_CRAWL__PARTITIONS": "4"}):
        done = xyro("crawl", *LOOPBACK, "--data", crawled[0], *words, **environment)
        assert done.returncode == 2 and "1 partition, not 4" in done.stderr


def test_partitions_of_a_new_crawl_may_come_from_settings(web, tmp_path):
    report = said("crawl", web.entry, *LOOPBACK, "--data", tmp_path / "data", XYRO_CRAWL__PARTITIONS="3")
    assert report["pages_known"] == 300
    assert said("status", "--data", tmp_path / "data")["partitions"] == 3
    assert said("audit", "--data", tmp_path / "data")["ok"]


def test_a_directory_of_another_version_is_refused_and_left_as_it_is(crawled, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(crawled[0], data)
    store = Store.open(data / "p0000" / "store")
    batch = store.batch()
    facts = msgpack.unpackb(store.get(stored_rows.META.key("facts")))
    batch.put(stored_rows.META.key("facts"), msgpack.packb({**facts, "format": 99}))
    store.write(batch)
    store.close()
    for words in (["crawl", *LOOPBACK], ["audit"], ["top"], ["export", "pages"]):
        done = xyro(*words, "--data", data)
        assert done.returncode == 2 and "format 99" in done.stderr and done.stderr.count("\n") == 1


def test_a_refused_seed_is_told_recorded_and_exits_1(tmp_path):
    seeds = ["http://10.0.0.1/", "http://169.254.169.254/latest/", "http://example.org/photo.jpg"]
    done = process("crawl", *seeds, "--contact", "me@example.org", "--data", "d", "--json", cwd=tmp_path)
    assert done.returncode == 1 and json.loads(done.stdout)["pages_read"] == 0
    assert all(f" error {seed}: not read: " in done.stderr for seed in seeds)
    found = {page["url"]: (page["state"], page["error"]) for page in rows("pages", tmp_path / "d")}
    assert found[seeds[0]] == found[seeds[1]] == ("blocked", "blocked-address")
    assert found[seeds[2]] == ("out-of-scope", "suffix")
    assert said("audit", "--data", tmp_path / "d")["ok"]


@pytest.mark.parametrize("command", ["crawl", "serve"])
def test_a_variable_that_is_no_setting_is_refused_and_nothing_is_made(tmp_path, command):
    done = xyro(command, SEED, *LOOPBACK, "--data", "d", cwd=tmp_path, XYRO_SITES="[{host='a.example'}]")
    assert done.returncode == 2 and done.stderr.startswith("xyro: environment: XYRO_SITES: not a setting; [[sites]]")
    assert not [*tmp_path.iterdir()]


def test_a_crawl_that_read_nothing_says_where_to_ask_why(tmp_path):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens
        seed = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
        done = process("crawl", seed, *LOOPBACK, "--data", "d", cwd=tmp_path)
    assert done.returncode == 4 and "0 pages read, 1 known" in done.stdout
    assert f"Seeds that failed: {seed} (connect-refused)." in done.stdout
    assert "no seed gave a page; `xyro why URL --data d` says why" in done.stderr
    assert "connect-refused" in xyro("why", seed, "--data", tmp_path / "d").stdout


def test_a_seed_that_is_forbidden_is_named_and_one_that_answers_is_enough(tmp_path):
    class Forbidding(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response({"/ok": 200, "/no": 403}.get(self.path, 404))
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"<p>a")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Forbidding) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        entry = f"http://127.0.0.1:{server.server_port}"
        none = process("crawl", f"{entry}/no", *LOOPBACK, "--data", "none", "--json", cwd=tmp_path)
        some = process("crawl", f"{entry}/no", f"{entry}/ok", *LOOPBACK, "--data", "some", "--json", cwd=tmp_path)
        server.shutdown()
    failed = [{"url": f"{entry}/no", "error": "http-403"}]
    assert none.returncode == 4 and json.loads(none.stdout)["failed_seeds"] == failed
    assert some.returncode == 0 and json.loads(some.stdout)["failed_seeds"] == failed
    because = said("why", f"{entry}/no", "--data", tmp_path / "none")["because"]
    assert "http-403" in because[0] and not any("turnover (" in sentence for sentence in because)


# While it runs


def test_a_daemon_takes_urls_answers_and_ends_in_order(web, tmp_path):
    data = tmp_path / "data"
    with started("serve", "--only-net", "127.0.0.0/8", "--delay", "0", data=data) as daemon:
        assert said("status", "--data", data)["running"] is True
        _submit_in_all_ways(web, data, tmp_path)
        until(lambda: said("status", "--data", data)["states"]["read"] > 50)
        _look(web, data)
        _hold(web, data)
        _refuse_a_second_process(web, data, daemon)
        daemon.terminate()
        _, told = daemon.communicate(timeout=60)
        assert daemon.returncode == 0 and "(stopped)" in told
    assert not (data / "run").exists()
    assert said("audit", "--data", data)["ok"] and said("status", "--data", data)["running"] is False


def _submit_in_all_ways(web, data, tmp_path):
    assert "1 accepted, 0 refused" in xyro("submit", web.entry, "--data", data).stdout
    listed = tmp_path / "urls"
    listed.write_bytes(f"# seeds\n\n{web.entry}a.html\nexample.org\nhttp://10.0.0.1/\n\xff\x1b[2J\n".encode("latin-1"))
    done = xyro("submit", "--file", listed, "--data", data)
    assert done.returncode == 1 and done.stdout == "1 accepted, 3 refused\n"
    assert "example.org: refused: " in done.stderr and "only-net" in done.stderr and "\x1b" not in done.stderr
    done = xyro("submit", "--data", data, given=f"{web.entry}b.html\n{web.entry}picture.png\n")
    assert done.stdout == "1 accepted, 1 refused\n" and "suffix" in done.stderr
    done = xyro("submit", "--file", "-", "--data", data, given="\n")
    assert done.returncode == 2 and "no URL" in done.stderr
    assert "--file none" in xyro("submit", "--file", "none", "--data", data).stderr


def _look(web, data):
    assert said("why", web.entry, "--data", data)["reads"] >= 1
    assert said("top", "--data", data, "-n", 3)[0]["score"] > 1
    for _ in range(3):
        assert said("audit", "--data", data)["ok"]
    pages = [page["url"] for page in rows("pages", data)]
    assert len(pages) == len(set(pages)) > 50
    assert xyro("export", "hosts", "--data", data, "--format", "csv").stdout.startswith("host,pages,")
    assert "read" in xyro("status", "--data", data).stdout


def _hold(web, data):
    host = web.entry.removeprefix("http://").rstrip("/")
    held = {"pause": "paused", "block": "blocked", "resume": None}
    for action, name in held.items():
        done = xyro(action, web.entry if action == "block" else host, "--data", data)
        assert done.returncode == 0 and host in done.stdout
        assert next(row["held"] for row in rows("hosts", data) if row["host"] == host) == name
    done = xyro("pause", "nowhere.example", "--data", data)
    assert done.returncode == 2 and "nowhere.example" in done.stderr


def _refuse_a_second_process(web, data, daemon):
    for words in (["crawl", web.entry], ["serve"]):
        done = xyro(*words, *LOOPBACK, "--data", data)
        assert done.returncode == 2 and f"process {daemon.pid}" in done.stderr and "xyro submit" in done.stderr


def test_a_locked_directory_without_interface_is_in_use(crawled, tmp_path, monkeypatch):
    monkeypatch.setattr(running_crawl, "STARTS", 0.3)
    data = tmp_path / "data"
    shutil.copytree(crawled[0], data)
    store = Store.open(data / "p0000" / "store")
    try:
        for words in (["audit"], ["crawl", *LOOPBACK]):
            done = xyro(*words, "--data", data)
            assert done.returncode == 2 and "in use by another process" in done.stderr
    finally:
        store.close()


# The laboratory


@pytest.mark.long
def test_the_demo_ends_by_itself_beside_the_truth(tmp_path):
    done = process("lab", "demo", "--pages", "600", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3,000 pages read, 600 known" in done.stdout and "rank correlation 0.9" in done.stdout
    table = done.stdout.split("\n\n")[1].splitlines()
    assert table[0].split() == ["importance", "true", "true", "place", "reads", "changes", "url"] and len(table) == 11
    assert all(abs(float(ours) / float(true) - 1) < 0.5 for ours, true in (line.split()[:2] for line in table[1:]))
    assert (tmp_path / "xyro-demo" / "p0000").is_dir() and said("audit", "--data", tmp_path / "xyro-demo")["ok"]


def test_the_laboratory_tells_what_makes_it_slow(monkeypatch):
    assert "numba" not in CliRunner().invoke(lab, ["opic", "--help"]).stderr
    monkeypatch.setitem(sys.modules, "numba", None)
    assert "pip install 'xyro[lab]'" in CliRunner().invoke(lab, ["opic", "--help"]).stderr


def test_lab_web_shows_its_own_help():
    done = process("lab", "web", "--help")
    assert done.returncode == 0 and "--pages" in done.stdout and "--truth" in done.stdout


ONE_THREAD = """
import contextlib, os
from xyro.service.cli.main import main

with contextlib.suppress(SystemExit):
    main(["--version"])
import numpy
print(len(os.listdir("/proc/self/task")), os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_linear_algebra_starts_no_threads_but_where_a_person_wants_them():
    for named, told in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")):
        environment = {name: text for name, text in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | named
        child = [sys.executable, "-c", ONE_THREAD]
        done = subprocess.run(child, env=environment, check=True, capture_output=True, text=True, timeout=60)
        threads, variable = done.stdout.split()[-2:]
        assert variable == told and int(threads) <= int(told)
