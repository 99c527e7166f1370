"""`xyro page` and `export texts|warc`, over a crawl of a small site whose pages change."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.service.face import LOOPBACK, process, said, started, until, xyro

LONG = "A sentence that is long enough to be the content of a page, with commas, and an end. " * 8
KEEP = {"XYRO_KEEP__WARC": "true", "XYRO_KEEP__TEXT": "true"}


class Site(http.server.ThreadingHTTPServer):
    """Pages of a dictionary; no robots.txt, and validators only where asked for."""

    pages: dict[str, str]
    tags: bool = False
    statuses: list[tuple[str, int]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Site)
        body = self.server.pages.get(self.path, "").encode()
        tag = f'"{zlib.crc32(body)}"' if self.server.tags and body else ""
        status = 304 if tag and self.headers["If-None-Match"] == tag else 200 if body else 404
        self.server.statuses.append((self.path, status))
        body = b"" if status == 304 else body
        self.send_response(status)
        if tag:
            self.send_header("ETag", tag)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(pages: dict[str, str]) -> Iterator[Site]:
    with Site(("127.0.0.1", 0), _Page) as site:
        site.pages, site.statuses = pages, []
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()


def page(title: str, words: str) -> str:
    return (
        f'<html lang="en"><head><title>{title}</title></head><body><nav><a href="/">Home</a> <a href="/b">B</a></nav>'
        f"<h1>{title}</h1><p>{words}</p><p>{LONG}</p><footer>Imprint</footer></body></html>"
    )


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """A site of two pages, of which one changes between two crawls."""
    data = tmp_path_factory.mktemp("contents") / "data"
    first = {"/": page("Start", "The price is ten euros."), "/b": page("B", "Nothing new.")}
    with serving(dict(first)) as site:
        done = process("crawl", site.url + "/", *LOOPBACK, "--data", data, **KEEP)
        assert done.returncode == 0, done.stderr
        site.pages["/"] = page("Start", "The price is twelve euros.")
        time.sleep(1.0)  # moments are shown in whole seconds: --time could not tell two versions of one
        done = process("crawl", *LOOPBACK, "--data", data, "--refresh", "--max-pages", "6", "--max-seconds", "20")
        assert done.returncode == 0, done.stderr
        yield data, site.url, first


@pytest.mark.long
def test_pages_that_were_read_before_anything_was_kept_are_read_once_as_a_whole(tmp_path):
    """And then with their validators again."""
    data = ("--data", tmp_path / "data")
    with serving({"/": page("Start", "Nothing new."), "/b": page("B", "Nothing new, either.")}) as site:
        site.tags = True
        assert process("crawl", site.url + "/", *LOOPBACK, *data).returncode == 0
        often = {"XYRO_REFRESH__MIN_INTERVAL": "1s", "XYRO_REFRESH__MAX_INTERVAL": "1s", **KEEP}
        done = process("crawl", *LOOPBACK, *data, "--refresh", "--max-pages", "5", "--max-seconds", "20", **often)
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in xyro("export", "texts", *data).stdout.splitlines()]
        assert [row["title"] for row in rows] == ["Start", "B"]
        statuses = [status for path, status in site.statuses if path == "/b"]
        assert statuses[:2] == [200, 200] and set(statuses[2:]) == {304}
        assert process("page", "get", site.url + "/b", "--as", "html", *data).stdout == site.pages["/b"]


@pytest.mark.long
def test_texts_of_long_pages_are_kept_and_pages_without_one_are_counted(tmp_path):
    data = ("--data", tmp_path / "data")
    manual = "<title>M</title><main>" + f"<h2>An option</h2><p>{LONG} <b>and</b> <i>more</i></p>" * 2_600
    deep = "<title>D</title>" + "<div>" * 600 + f"<p>{LONG}"
    assert manual.count("<") > 20_000 and len(manual) > 1 << 20
    with serving({"/": '<a href="/manual">m</a> <a href="/deep">d</a>', "/manual": manual, "/deep": deep}) as site:
        done = process("crawl", site.url + "/", *LOOPBACK, *data, **KEEP)
        assert done.returncode == 0 and "No text could be found in 1 page." in done.stdout + done.stderr
        text = process("page", "get", site.url + "/manual", "--as", "text", *data).stdout
        assert text.count("An option") == 2_600 and text.count(LONG.strip()) == 2_600
        refused = process("page", "get", site.url + "/deep", *data)
        assert refused.returncode == 2 and "4 MiB, 200,000 tags, 512 levels" in refused.stderr


def test_versions_are_those_of_the_text(crawled):
    data, url, _ = crawled
    rows = said("page", "versions", url + "/", "--data", data)
    assert [row["version"] for row in rows] == [1, 2]
    assert rows[0]["until"] == rows[1]["read_at"] and rows[1]["until"] is None
    assert all(row["html"] and row["title"] == "Start" and row["language"] == "en" for row in rows)
    assert [row["version"] for row in said("page", "versions", url + "/b", "--data", data)] == [1]


def test_get_gives_each_form_of_each_version(crawled):
    data, url, first = crawled
    got = process("page", "get", url + "/", "--data", data)
    assert got.stdout == f"# Start\n\nThe price is twelve euros.\n\n{LONG.strip()}\n"
    old = process("page", "get", url + "/", "--version", "1", "--as", "text", "--data", data)
    assert old.stdout.splitlines()[2] == "The price is ten euros."
    for options, words in ((("--version", "1"), "ten"), ((), "twelve")):
        out = data.parent / "page.html"
        assert xyro("page", "get", url + "/", "--as", "html", *options, "-o", out, "--data", data).returncode == 0
        assert out.read_text() == first["/"].replace("is ten", f"is {words}")


def test_two_versions_of_one_second_are_told_apart(crawled, tmp_path):
    data, url, first = crawled
    shutil.copytree(data, tmp_path / "data")
    with closing(sqlite3.connect(tmp_path / "data" / "contents" / "index.sqlite")) as index, index:
        for table in ("records", "texts"):  # their times become fractions of one second, in their order
            times = [time for (time,) in index.execute(f"SELECT DISTINCT time FROM {table} ORDER BY time")]
            index.executemany(f"UPDATE {table} SET time = 5 + ?1 / 1e10 WHERE time = ?1", [(each,) for each in times])
    for number, words in ((1, "ten"), (2, "twelve")):
        got = process("page", "get", url + "/", "--as", "html", "--version", str(number), "--data", tmp_path / "data")
        assert got.stdout == first["/"].replace("is ten", f"is {words}")


def test_get_takes_a_version_or_a_time(crawled):
    data, url, _ = crawled
    done = xyro("page", "get", url + "/", "--version", "1", "--time", "now", "--data", data)
    assert done.returncode == 2 and "--version and --time" in done.stderr and not done.stdout


@pytest.mark.long
def test_get_gives_what_held_at_a_time(crawled):
    data, url, _ = crawled
    assert "twelve" in process("page", "get", url + "/", "--time", "2999-01-01", "--data", data).stdout
    for row in said("page", "versions", url + "/", "--data", data):
        for form in ("markdown", "html"):
            got = {
                process("page", "get", url + "/", *which, "--as", form, "--data", data).stdout
                for which in (("--time", row["read_at"]), ("--version", str(row["version"])))
            }
            assert len(got) == 1, "the moment that is shown gives the version that it is shown for"
    done = xyro("page", "get", url + "/", "--time", "1999-01-01", "--data", data)
    assert done.returncode == 2 and "page versions" in done.stderr


def test_a_crawl_of_seconds_keeps_to_its_bound_of_bytes(tmp_path):
    contents = tmp_path / "data" / "contents"
    with serving(
        {f"/{number}": page(str(number), "word " * 9 + os.urandom(50_000).hex()) for number in range(12)}
    ) as site:
        options = {"XYRO_KEEP__TEXT": "true", "XYRO_KEEP__BYTES": "300 kB"}
        done = process(
            "crawl",
            *(f"{site.url}/{number}" for number in range(12)),
            *LOOPBACK,
            "--data",
            tmp_path / "data",
            **options,
        )
        assert done.returncode == 0, done.stderr
    assert 0 < sum(path.stat().st_size for path in contents.iterdir()) <= 300_000
    kept = [json.loads(line) for line in xyro("export", "texts", "--data", tmp_path / "data").stdout.splitlines()]
    assert 0 < len(kept) < 12


def test_diff_tells_words(crawled):
    data, url, _ = crawled
    assert "The price is [-ten-] {+twelve+} euros." in xyro("page", "diff", url + "/", "--data", data).stdout
    found = said("page", "diff", url + "/", "--data", data)
    assert (found["from"], found["to"]) == (1, 2)
    assert [(change["removed"], change["added"]) for change in found["changes"]] == [("ten", "twelve")]
    done = xyro("page", "diff", url + "/b", "--data", data)
    assert done.returncode == 2 and "nothing to compare" in done.stderr


def test_a_large_change_is_shown_whole(tmp_path):
    data = ("--data", tmp_path / "data")
    old, new = ("".join(f"<p>{word}{number}." for number in range(600)) for word in ("before", "after"))
    with serving({"/": page("Start", old)}) as site:
        assert process("crawl", site.url + "/", *LOOPBACK, *data, **KEEP).returncode == 0
        site.pages["/"] = page("Start", new)
        done = process("crawl", *LOOPBACK, *data, "--refresh", "--max-pages", "3", "--max-seconds", "20")
        assert done.returncode == 0, done.stderr
        shown = xyro("page", "diff", site.url + "/", *data).stdout
    assert len(shown.splitlines()) == 1 and len(shown) > 8_000
    assert "before599.-] {+after0." in shown and "after599.+}" in shown


def test_export_texts(crawled, tmp_path):
    data, url, _ = crawled
    rows = [json.loads(line) for line in xyro("export", "texts", "--data", data).stdout.splitlines()]
    assert [(row["url"], row["version"]) for row in rows] == [(url + "/", 2), (url + "/b", 1)]
    assert rows[0]["markdown"].startswith("# Start\n\nThe price is twelve")
    ranked = [
        json.loads(line) for line in xyro("export", "texts", "--by", "importance", "--data", data).stdout.splitlines()
    ]
    assert [row["importance"] for row in ranked] == sorted((row["importance"] for row in rows), reverse=True)
    assert ranked[0]["importance"] > 0
    limits = {"--min-importance": ("0", str(max(row["importance"] for row in rows) - 1e-5), "1000")}
    limits["--since"] = ("2020-01-01", rows[0]["read_at"], "2999-01-01")
    for option, values in limits.items():
        found = [xyro("export", "texts", option, value, "--data", data).stdout.count("\n") for value in values]
        assert found == [2, 1, 0], option
    out = tmp_path / "texts.parquet"
    assert xyro("export", "texts", "-o", out, "--data", data).returncode == 0
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert pyarrow.read_table(out).column("url").to_pylist() == [url + "/", url + "/b"]


def test_export_warc_names_the_files(crawled):
    data, _, _ = crawled
    rows = [json.loads(line) for line in xyro("export", "warc", "--data", data).stdout.splitlines()]
    assert {row["file"] for row in rows} == set(map(str, (data / "contents").glob("*.warc.gz")))
    rows = [row for row in rows if row["records"]]
    assert len(rows) == 2 and all(Path(row["file"]).is_file() for row in rows)
    assert sum(row["records"] for row in rows) == said("status", "--data", data)["contents"]["records"] == 8
    assert not xyro("export", "warc", "--min-importance", "1000", "--data", data).stdout


def test_what_was_never_kept_is_told_in_a_line(crawled, tmp_path):
    data, url, _ = crawled
    done = xyro("page", "get", url + "/nothing", "--data", data)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    with serving({"/": page("Start", "x")}) as site:
        assert process("crawl", site.url + "/", *LOOPBACK, "--data", tmp_path / "plain").returncode == 0
        done = xyro("page", "get", site.url + "/", "--data", tmp_path / "plain")
    assert done.returncode == 2 and "[keep]" in done.stderr


@pytest.mark.long
def test_versions_beyond_the_setting_are_dropped(tmp_path):
    pages = {"/": page("Start", "Number 0.")}
    options = [*LOOPBACK, "--data", tmp_path / "data", "--refresh", "--max-seconds", "20"]
    with serving(pages) as site:
        for number in range(4):
            site.pages["/"] = page("Start", f"Number {number}.")
            done = process("crawl", site.url + "/", *options, "--max-pages", "1", XYRO_STORE__VERSIONS="2", **KEEP)
            assert done.returncode == 0, done.stderr
        rows = said("page", "versions", site.url + "/", "--data", tmp_path / "data")
    assert [row["version"] for row in rows] == [3, 4]
    assert said("status", "--data", tmp_path / "data")["contents"]["texts"] == 2


@pytest.mark.long
def test_another_extractor_makes_no_version_of_a_page_that_did_not_change(tmp_path):
    table = "<table><tr><th>A<th>B<tr><td>1<td>2</table>"
    pages = {"/": page("Start", "Nothing new.").replace("<footer>", table + "<footer>")}
    options = [*LOOPBACK, "--data", tmp_path / "data", "--refresh", "--max-seconds", "20", "--max-pages", "1"]
    texts = []
    with serving(pages) as site:
        for extractor in ("xyro", "resiliparse"):
            done = process("crawl", site.url + "/", *options, XYRO_KEEP__EXTRACTOR=extractor, **KEEP)
            assert done.returncode == 0, done.stderr
            texts.append(process("page", "get", site.url + "/", "--data", tmp_path / "data").stdout)
            assert len(said("page", "versions", site.url + "/", "--data", tmp_path / "data")) == 1
    assert "| 1 | 2 |" in texts[0] != texts[1] != ""
    assert said("status", "--data", tmp_path / "data")["contents"]["texts"] == 1


def test_another_package_of_brotlis_name_is_named_at_the_start(tmp_path):
    """brotlipy, which pywb brings, installs its own module `brotli` over that of Brotli."""
    (tmp_path / "brotli.py").write_text("class Decompressor:\n    def decompress(self, block): ...\n")
    done = process("crawl", "http://127.0.0.1:9/", *LOOPBACK, "--data", tmp_path / "d", PYTHONPATH=str(tmp_path))
    assert done.returncode == 3 and "pip uninstall brotlipy" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("table", ["texts", "warc"])
def test_an_export_of_nothing_says_so(tmp_path, table):
    """0: the crawl keeps them, and read no page; 2: it does not keep them. Nothing is written then."""
    with serving({"/": page("Home", LONG)}) as site:
        other = {"texts": "--warc", "warc": "--text"}[table]
        for name, option, path in (("other", other, "/"), ("none", f"--{table.removesuffix('s')}", "/none")):
            done = process("crawl", site.url + path, *LOOPBACK, option, "--data", tmp_path / name)
            assert done.returncode == (4 if name == "none" else 0), done.stderr
    where = {"texts": ["-o", tmp_path / "rows.jsonl"], "warc": []}[table]
    for more in (where, *([["--to", tmp_path / "folder"]] if table == "texts" else [])):
        done = xyro("export", table, *more, "--data", tmp_path / "other")
        assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
        assert "0 pages: this crawl kept no" in done.stderr and f"--{table.removesuffix('s')}" in done.stderr
    assert not (tmp_path / "rows.jsonl").exists() and not (tmp_path / "folder").exists()
    done = xyro("export", table, "--data", tmp_path / "none")
    assert done.returncode == 0 and bool(done.stdout) is (table == "warc"), "WARC files have 404s, too"
    assert done.stderr.startswith("0 pages: no page was read yet whose ") is (table == "texts")
    done = xyro("export", {"texts": "warc", "warc": "texts"}[table], "--since", "now", "--data", tmp_path / "other")
    assert (done.returncode, done.stderr) == (0, "0 pages: nothing that is kept is of that time and importance\n")


@pytest.mark.long
def test_the_importance_of_texts_is_that_of_now(tmp_path):
    """`/hub` is read early, when one page links to it; then 30 pages do."""

    def written(title, links):
        return f"<title>{title}</title><main><h1>{title}</h1><p>{LONG}</p>{links}</main>"

    data, pages = tmp_path / "data", {"/": written("Home", "<a href=/hub>hub</a>")}
    pages["/hub"] = written("Hub", "".join(f"<a href=/p{number}>p</a>" for number in range(30)))
    pages |= {f"/p{number}": written(f"Page {number}", "<a href=/hub>hub</a>") for number in range(30)}

    def exported(*words):
        done = xyro("export", *words, "--data", data)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def check(close):
        """close: by which share importances may differ between two exports of a crawl that goes on."""
        now = {row["url"]: row["importance"] for row in exported("pages")}
        texts = exported("texts", "--by", "importance")
        assert len(texts) == 32 and {row["url"] for row in texts} <= now.keys()
        for row in texts:
            assert row["importance"] == pytest.approx(now[row["url"]], rel=close, abs=1e-5)
        order = [row["importance"] for row in texts]
        assert order == sorted(order, reverse=True) and texts[0]["url"] == f"{site.url}/hub"
        least = 0.7 * order[0]
        assert [row["url"] for row in exported("texts", "--min-importance", str(least))] == [f"{site.url}/hub"]
        assert max(row["importance"] for row in exported("warc")) == pytest.approx(order[0], rel=close)
        with closing(sqlite3.connect(data / "contents" / "index.sqlite")) as index:
            stored = dict(index.execute("SELECT url, importance FROM pages"))
        assert stored[f"{site.url}/hub"] < order[0] / 2, "that of its read, which it said until now"

    with serving(pages) as site:
        with started("serve", f"{site.url}/", *LOOPBACK, "--text", "--warc", "--partitions", "2", data=data):
            until(lambda: said("status", "--data", data)["states"]["read"] == 32)
            until(lambda: not sum(said("status", "--data", data)["queue"].values()))
            check(0.2)
        check(1e-5)
