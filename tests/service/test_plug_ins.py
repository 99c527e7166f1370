"""Plug-ins of an installed package: the three of examples/, and clumsy ones, which raise, hang or end their process."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import tomllib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import pytest

import xyro
from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, process, started, until
from tests.service.face import xyro as command
from tests.service.test_metrics import free_port
from xyro.wire.clock import SystemClock

DEPTH = 60


@contextmanager
def two_topics():
    """A hub that links to 12 pages about wind and 12 about cats; each links to the next of its kind, DEPTH in all."""
    log = []

    def body(path):
        if path.partition("?")[0] == "/":
            found = [f"/{topic}/{n}" for n in range(12) for topic in ("wind", "cats")]
            return "".join(f'<a href="{link}">{link}</a>' for link in found)
        topic, n = path.split("/")[1], int(path.split("/")[2])
        words = hashlib.sha256(path.encode()).hexdigest()
        found = [f"/{topic}/{m}" for m in (n + 12, n + 13, n + 24) if m < DEPTH * 12]
        return f"<p>{topic} {words} {words[::-1]}</p>" + "".join(f'<a href="{link}">{link}</a>' for link in found)

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one piece

        def do_GET(self):
            known = self.path != "/robots.txt"
            if known:
                log.append(self.path)
            text = f"<html><body>{body(self.path)}</body></html>".encode() if known else b""
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            """Nothing: the log is a list."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", log
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def installed(tmp_path):
    """The environment of a command that finds the example package, and a clumsy one, installed."""
    place = tmp_path / "site"
    place.mkdir()
    for name in ("xyro_topic.py", "xyro_count.py", "xyro_markdown.py"):
        shutil.copy(ROOT / "examples" / name, place)
    points = tomllib.loads((ROOT / "examples" / "pyproject.toml").read_text())["project"]["entry-points"]
    (place / "clumsy.py").write_text(
        textwrap.dedent("""
            import itertools, os, signal, time
            import xyro

            def raises(page):
                raise RuntimeError("no model here")

            def boasts(page):
                return 7 if page.url.count("/") > 3 else 0.5

            def leaves(page):
                raise SystemExit("no licence")

            def on_the_hub(act):
                return lambda page: (page.url.count("/") == 3 and act(), 1.0)[1]

            def catches_everything():
                while True:
                    try:
                        while True:
                            pass
                    except BaseException:
                        pass

            def puts_off_alarms():
                signal.signal(signal.SIGALRM, signal.SIG_IGN)
                catches_everything()

            hangs = on_the_hub(catches_everything)
            counts = on_the_hub(lambda: sum(itertools.count()))
            sleeps = on_the_hub(lambda: time.sleep(3600))
            stubborn = on_the_hub(puts_off_alarms)
            exits = on_the_hub(lambda: os._exit(3))
            crashes = on_the_hub(lambda: os.kill(os.getpid(), signal.SIGSEGV))

            def parses(page):
                if page.url.endswith("/raises.md"):
                    raise RuntimeError("no parser here")
                while page.url.endswith("/hangs.md"):
                    pass
                if page.url.endswith("/nonsense.md"):
                    return ["/a"]
                return xyro.ParsedPage(links=["/fine.md", "beside.md"], text="by the plug-in")

            def take(changes):
                raise OSError("the other end is gone")

            def lists(changes):
                time.sleep(1.5)
                with open(os.environ["LIST_FILE"], "a") as out:
                    print(*(change["number"] for change in changes), sep="\\n", file=out)
        """)
    )
    (place / "shy.py").write_text(
        textwrap.dedent("""
            import os, sys
            with open(os.environ["IMPORTS_FILE"], "a") as out:
                print(os.path.basename(sys.argv[0]), file=out)
            if os.environ.get("ENDS"):
                os._exit(3)
            def value(page):
                return 0.5
        """)
    )
    points["xyro.values"]["shy"] = "shy:value"
    names = ("raises", "leaves", "boasts", "hangs", "counts", "sleeps", "stubborn", "exits", "crashes")
    points["xyro.values"] |= {name: f"clumsy:{name}" for name in names}
    points["xyro.parsers"] |= {"clumsy": "clumsy:parses"}
    points["xyro.sinks"] |= {"gone": "clumsy:take", "lists": "clumsy:lists"}
    info = place / "xyro_examples-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: xyro-examples\nVersion: 1.0\n")
    text = "".join(
        f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in found.items()) for group, found in points.items()
    )
    (info / "entry_points.txt").write_text(text)
    return {"PYTHONPATH": f"{place}:{ROOT}"}


@pytest.mark.long
@pytest.mark.parametrize("readers", ["0", "2"])
def test_what_pages_about_the_topic_link_to_is_read_first(installed, tmp_path, readers):
    share = {}
    for name in ("", "topic"):
        with two_topics() as (entry, log):
            data = tmp_path / f"data-{name}"
            options = {**installed, "XYRO_OPIC__VALUES": name, "TOPIC_WORDS": "solar, wind"}
            done = process(
                "crawl", entry, *LOOPBACK, "--data", data, "--readers", readers, "--max-pages", 150, **options
            )
            assert done.returncode == 0, done.stderr
            share[name] = sum(path.startswith("/wind") for path in log) / len(log)
            assert command("audit", "--data", data).returncode == 0
            said = command("why", f"{entry}cats/0", "--data", data).stdout
            assert ("The plug-in topic lets it pass on 10% of its importance." in said) is bool(name)
    assert abs(share[""] - 0.5) < 0.1 and share["topic"] > 0.75, share


@pytest.mark.long
@pytest.mark.parametrize("readers", ["0", "1"])
def test_values_out_of_range_are_said_once_and_counted(installed, tmp_path, readers):
    with two_topics() as (entry, _):
        bounds = [*LOOPBACK, "--data", tmp_path / "data", "--max-pages", 30, "--readers", readers]
        options = {"XYRO_OPIC__VALUES": "boasts", "XYRO_LOG__FORMAT": "json", **installed}
        done = process("crawl", entry, *bounds, **options)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stderr.splitlines() if "boasts" in line]
        told = [(line["plug_in"], line["clipped"]) for line in lines if line.get("event") == "plug-in-value"]
        assert told == [("boasts", 1), ("boasts", 10)], done.stderr
        because = command("why", lines[0]["url"], "--data", tmp_path / "data").stdout
        assert "value 7 by plug-in boasts is not within 0 to 1: 1 is taken" in " ".join(because.split())


@pytest.mark.long
def test_values_out_of_range_and_failures_are_counted_by_a_metric(installed, tmp_path):
    for name in ("boasts", "raises"):
        settings = {"XYRO_OPIC__VALUES": name, "XYRO_METRICS__LISTEN": f"127.0.0.1:{(port := free_port())}"}
        with (
            two_topics() as (entry, log),
            started("serve", entry, *LOOPBACK, data=tmp_path / name, environment={**installed, **settings}),
        ):
            until(lambda log=log: len(log) > 100)
            until(lambda log=log, port=port: 100 < faults_told(port) <= len(log))


def faults_told(port):
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        found = re.search(r"^xyro_plug_in_faults_total (\S+)$", answer.read().decode(), re.MULTILINE)
    return float(found[1])


@pytest.mark.long
@pytest.mark.parametrize("readers", ["0", "1"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "no model here"),
        ("leaves", "no licence"),
        ("hangs", "not done after 1 s"),
        ("counts", "not done after 1 s"),
        ("sleeps", "not done after 1 s"),
        ("stubborn", "not done after 1 s"),
        ("exits", "its process ended, exit 3"),
        ("crashes", "its process ended by SIGSEGV"),
    ],
)
def test_a_plug_in_that_fails_costs_the_value_of_that_page(installed, tmp_path, name, words, readers):
    with two_topics() as (entry, log):
        bounds = [*LOOPBACK, "--data", tmp_path / "data", "--max-pages", 30, "--readers", readers]
        done = process("crawl", entry, *bounds, XYRO_OPIC__VALUES=name, **installed)
        assert done.returncode == 0 and len(log) == 30, done.stderr
        assert "reader-lost" not in done.stdout and " ended; " not in done.stderr
        lines = [line for line in done.stderr.splitlines() if f"no value by plug-in {name}" in line]
        assert lines and all(words in line for line in lines)
        urls = {line.split(": no value")[0].split()[-1] for line in lines}
        assert entry in urls and (name in ("raises", "leaves") or urls == {entry}), "it costs other pages nothing"
        said = command("why", entry, "--data", tmp_path / "data", XYRO_OPIC__VALUES=name).stdout
        assert f"At its last read: no value by plug-in {name}: " in said and words in " ".join(said.split())


@pytest.mark.long
@pytest.mark.parametrize("readers", ["0", "1"])
def test_a_crawl_ends_in_time_and_on_sigterm_beside_a_plug_in_that_hangs(installed, tmp_path, readers):
    settings = {"XYRO_OPIC__VALUES": "counts", **installed}
    with two_topics() as (entry, log):
        seeds = [f"{entry}?{n}" for n in range(40)]  # each costs a second
        bounds = [*LOOPBACK, "--data", tmp_path / "data", "--readers", readers]
        began = SystemClock().monotonic()
        done = process("crawl", *seeds, *bounds, "--max-seconds", 3, **settings)
        assert done.returncode == 0 and SystemClock().monotonic() - began < 20, done.stderr
        before = len(log)
        with started("serve", *LOOPBACK, "--readers", readers, data=tmp_path / "data", environment=settings) as run:
            until(lambda: len(log) > before)
            run.terminate()
            assert run.wait(20) == 0


MARKDOWN = {
    "/": '# Home\n\nSee [one](one.md), [two](/two.md "Two") and <{entry}deep/three.md>.\n',
    "/one.md": "# One\n\nWords of one. [up](./) [raises](raises.md) [hangs](hangs.md) [nonsense](nonsense.md)\n",
    "/two.md": "No title, no link.\n",
    "/deep/three.md": "# Three\n\n[beside](four.md) [page](/page.html)\n",
    "/deep/four.md": "[nowhere](mailto:a@b.example)\n",
    "/raises.md": "# Raises\n",
    "/hangs.md": "# Hangs\n",
    "/nonsense.md": "# Nonsense\n",
    "/page.html": '<p>A page of HTML</p><a href="/linked.md">linked</a><a href="/table.csv">.</a>',
    "/table.csv": "name,page\nTable,<{entry}of-a-table.md>\n",
    "/of-a-table.md": "linked by a table\n",
    "/linked.md": "linked by HTML\n",
}


@contextmanager
def markdown():
    """A site of MARKDOWN, whose log is a list of paths."""
    log = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            log.append(self.path)
            text = MARKDOWN.get(self.path, "").replace("{entry}", entry).encode()
            self.send_response(200 if text else 404)
            kinds = {"html": "text/html", "csv": "text/csv"}
            kind = kinds.get(self.path.rpartition(".")[2], "text/markdown; charset=utf-8")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            """Nothing: the log is a list."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        entry = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield entry, log
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
@pytest.mark.parametrize("readers", ["0", "1"])
def test_a_parser_gives_links_and_text_of_a_media_type(installed, tmp_path, readers):
    data, texts = tmp_path / "data", tmp_path / "texts.jsonl"
    (settings := tmp_path / "s.toml").write_text(
        '[fetch]\nparsers = { "text/markdown" = "markdown", "text/csv" = "markdown" }\n[keep]\ntext = true\n'
    )
    words = ["--data", data, "--config", settings, "--readers", readers]
    with markdown() as (entry, log):
        done = process("crawl", entry, *LOOPBACK, *words, **installed)
        assert done.returncode == 0, done.stderr
        assert sorted(set(log) - {"/robots.txt"}) == sorted(MARKDOWN)
        assert command("export", "texts", "-o", texts, "--data", data).returncode == 0
        found = {row["url"]: row for row in map(json.loads, texts.read_text().splitlines())}
        assert found[f"{entry}one.md"]["title"] == "One"
        assert found[f"{entry}deep/three.md"]["text"] == MARKDOWN["/deep/three.md"]
        assert found[f"{entry}page.html"]["text"].startswith("A page of HTML")
        assert found[f"{entry}table.csv"]["text"].startswith("name,page"), ".csv is one of skip_suffixes"
        assert command("audit", "--data", data).returncode == 0
        said = json.loads(command("why", f"{entry}one.md", "--json", "--data", data).stdout)
        assert (said["kind"], said["http_status"]) == ("OTHER", 200)


@pytest.mark.long
@pytest.mark.parametrize("readers", ["0", "1"])
def test_a_parser_that_fails_costs_links_and_text_of_that_page(installed, tmp_path, readers):
    (settings := tmp_path / "s.toml").write_text(
        '[fetch]\nparsers = { "text/markdown" = "clumsy", "text/html" = "clumsy" }\n'
    )
    data = tmp_path / "data"
    words = ["--data", data, "--config", settings, "--readers", readers]
    with markdown() as (entry, log):
        seeds = [f"{entry}{name}" for name in ("raises.md", "hangs.md", "nonsense.md", "page.html")]
        done = process("crawl", *seeds, *LOOPBACK, *words, **installed)
        assert done.returncode == 0, done.stderr
        faults = {"raises.md": "no parser here", "hangs.md": "not done after", "nonsense.md": "expected a ParsedPage"}
        for name, words in faults.items():
            (line,) = [line for line in done.stderr.splitlines() if f"{name}: no links and text by plug-in cl" in line]
            because = command("why", f"{entry}{name}", "--data", data).stdout
            assert words in line, line
            assert "At its last read: no links and text by plug-in clumsy: " in because, because
            assert words.split()[0] in because
        # Of HTML, our links stay, and the plug-in's are added: relative ones, to the page.
        assert {"/linked.md", "/fine.md", "/beside.md"} < set(log)
        assert "by plug-in" not in command("why", f"{entry}page.html", "--data", data).stdout


def test_a_plug_in_that_hangs_in_the_crawl_of_a_script_costs_the_value_of_that_page(installed, tmp_path):
    """Such a crawl runs in a thread, which no signal interrupts."""
    script = """
        import sys, xyro
        options = {"only_net": ["127.0.0.0/8"], "delay": 0, "max_pages": 5, "opic__values": "hangs"}
        print(sum(not page.error for page in xyro.crawl(sys.argv[1], data=sys.argv[2], **options)))
    """
    with two_topics() as (entry, _):
        words = [sys.executable, "-c", textwrap.dedent(script), entry, tmp_path / "data"]
        done = subprocess.run(words, env={**ENVIRONMENT, **installed}, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
        said = command("why", entry, "--data", tmp_path / "data").stdout
        assert "At its last read: no value by plug-in hangs: not done after 1 s" in said, said


def test_a_plug_in_that_is_not_there_is_named_before_anything_is_done(installed, tmp_path):
    done = process(
        "crawl", "http://127.0.0.1:1/", *LOOPBACK, "--data", tmp_path / "data", XYRO_OPIC__VALUES="nobody", **installed
    )
    assert done.returncode == 2 and "'nobody': no installed package has this entry point of xyro.values" in done.stderr
    assert "hangs, leaves, raises, shy, sleeps, stubborn, topic" in done.stderr


@pytest.mark.parametrize("readers", ["0", "1"])
def test_no_process_but_that_of_plug_ins_imports_one(installed, tmp_path, readers):
    """Neither to try it at the start nor later."""
    imports = tmp_path / "imports"
    places = {"IMPORTS_FILE": str(imports), "XYRO_OPIC__VALUES": "shy", **installed}
    with two_topics() as (entry, _):
        options = ["--data", tmp_path / "data", "--max-pages", 3, "--readers", readers]
        done = process("crawl", entry, *LOOPBACK, *options, **places)
    assert done.returncode == 0, done.stderr
    assert set(imports.read_text().split()) == {"plug_in_child.py"}
    assert "lets it pass on 50%" in command("why", entry, "--data", tmp_path / "data").stdout


def test_a_plug_in_that_cannot_be_imported_is_named_before_a_directory_is_made(installed, tmp_path):
    places = {"IMPORTS_FILE": str(tmp_path / "imports"), "ENDS": "1", "XYRO_OPIC__VALUES": "shy", **installed}
    done = process("crawl", "http://127.0.0.1:1/", *LOOPBACK, "--data", tmp_path / "data", **places)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "[opic] values, [fetch] parsers: its process ended, exit 3" in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.long
def test_a_sink_of_a_package_gets_each_change_once_and_one_that_fails_holds_nobody_up(installed, tmp_path):
    settings, table = tmp_path / "sinks.toml", '[[sinks]]\nname = "{0}"\nplugin = "{0}"\nwait = 0.1\nbatch = 50\n'
    settings.write_text("".join(map(table.format, ("count", "gone", "lists"))))
    counts, listed = tmp_path / "counts.json", tmp_path / "list"
    places = {"COUNT_FILE": str(counts), "LIST_FILE": str(listed)}
    with two_topics() as (entry, _):
        data = tmp_path / "data"
        options = ["--config", settings, "--data", data, "--max-pages", 100]
        done = process("crawl", entry, *LOOPBACK, *options, **places, **installed)
        assert done.returncode == 0, done.stderr
        # The rest of what a bounded crawl had no time for is delivered by the next process, which has some.
        again = [*options[:4], "--refresh", "--max-seconds", 3]
        done = process("crawl", *LOOPBACK, *again, **places, **installed)
        assert done.returncode == 0, done.stderr
        changes = [json.loads(line) for line in command("changes", "--data", data).stdout.splitlines()]
        (host,) = json.loads(counts.read_text())["hosts"].values()
        sinks = json.loads(process("status", "--json", "--data", data, **installed).stdout)["sinks"]
        assert len(changes) >= 100 and 0 < host == sinks["count"]["delivered"] <= len(changes)
        # Both crawls ended while it was slowly taking some.
        numbers = [int(number) for number in listed.read_text().split()]
        assert numbers == [change["number"] for change in changes[: len(numbers)]]
        assert 50 < len(numbers) == sinks["lists"]["delivered"]
        assert "the other end is gone" in str(sinks["gone"]) or sinks["gone"]["delivered"] == 0


async def test_the_library_gives_texts_where_they_are_asked_for(tmp_path):
    with two_topics() as (entry, _):
        local = {"only_net": ["127.0.0.0/8"], "delay": 0, "scope": "any", "max_pages": 20}
        found = [page async for page in xyro.crawl(entry, data=tmp_path / "d", text=True, **local)]
        about = [page for page in found if "/wind/" in page.url]
        assert about and all(re.match(r"wind [0-9a-f]{64}", page.text) and page.markdown for page in about)
        assert not any([page.text async for page in xyro.crawl(entry, data=tmp_path / "e", **local)])
