"""`xyro export texts --to FOLDER`: file names of hostile URLs; a folder that follows a site, judged by reading it."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import unicodedata
from pathlib import Path

import pytest
import yaml

from tests.plugins.test_page_contents import LONG, page, serving
from tests.service.face import LOOPBACK, process, started, until, xyro
from xyro.plugins.contents.page_paths import page_path
from xyro.wire.errors import InputError
from xyro.wire.urls import canonical

PLAIN = {
    "https://example.org/": "example.org/index.md",
    "https://example.org/docs/": "example.org/docs/index.md",
    "https://example.org/docs": "example.org/docs.md",
    "https://example.org/docs/a_1.html": "example.org/docs/a_1.html.md",
    "http://example.org/": "example.org+80/index.md",
    "http://127.0.0.1:8000/a--b/c": "127.0.0.1+8000/a--b/c.md",
    "https://example.org:8443/a": "example.org+https+8443/a.md",
}
PIECES = [
    *("..", ".", "%2e%2e", "%2f", "%5c", "..%2f..%2fetc%2fpasswd", "%00", "%0a", "%1b[2J", "%7f", "%ff"),
    *("con", "NUL", "aux.txt", "COM1", "lpt9.md", "con.", "com%C2%B9", "nul%20", "a.", "a..", ".git", ".ssh", "-rf"),
    *("index", "Index", "index.md", "INDEX.MD", "a", "A", "a.md", "a.MD", "a~0", "a%7e0", "~", "_pages.jsonl"),
    *("caf%C3%A9", "cafe%CC%81", "CAF%C3%89", "%E6%97%A5%E6%9C%AC", "%EF%BC%8E%EF%BC%8E", "%E2%84%AA", "k", "K"),
    *("%C5%BF", "s", "%f0%9f%98%80", "%E2%80%AE", "a" * 300, "a" * 299 + "A", "%C3%A9" * 200, "", " ", "*"),
    *("a:b", "a|b", "c:", "$(id)", "`id`", "a;b", "%5fpages.jsonl"),
]
HOSTS = [
    *("a.example", "A.example", "con", "a+80", "a", "a:80", "[::1]", "a_b.example", "xn--caf-dma.example"),
    *("x" * 60 + "." + "y" * 60 + ".example", "nul.example", "_pages.jsonl", "a.md", "127.0.0.1:8000"),
]
DEVICES = re.compile(r"(?i)(con|prn|aux|nul|(com|lpt)[0-9\u00b9\u00b2\u00b3])(\.|$)")


def hostile_urls() -> list[str]:
    """Canonical URLs of odd pieces, alone, in pairs and in long rows."""
    chance, found = random.Random(7), []
    paths = ["/".join(row) for size in (1, 2) for row in itertools.product(PIECES, repeat=size)]
    paths += ["/".join(chance.choices(PIECES, k=chance.randint(3, 40))) for _ in range(2_000)]
    for path in paths:
        scheme = chance.choice(["http", "https"])
        query = chance.choice(["", "", "?", "?a=1", "?A=1", "?" + "q" * 500, "?../../x"])
        for text in (f"{scheme}://{chance.choice(HOSTS)}/{path}", f"https://a.example/{path}"):
            try:
                found.append(canonical(text + query))
            except InputError:
                continue
    return list(dict.fromkeys(found))


def test_plain_urls_are_their_names():
    assert {url: page_path(url, ".md") for url in PLAIN} == PLAIN
    assert page_path("https://example.org/a", ".txt") == "example.org/a.txt"
    assert re.fullmatch(r"example\.org\+80/Find-q-1~[0-9a-v]{13}\.md", page_path("http://example.org/Find?q=1", ".md"))
    assert page_path("https://example.org/%E6%97%A5/x", ".md").startswith("example.org/日/x~")


def test_no_url_leaves_the_folder_or_takes_the_name_of_another():
    urls = hostile_urls()
    assert len(urls) > 5_000
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for url in urls:
        path = page_path(url, ".md")
        names = path.split("/")
        assert len(path.encode()) <= 260 and len(names) <= 14, path
        for name in names:
            assert all(unicodedata.category(c)[0] in "LMN" or c in "._-+~" for c in name), name
            assert name[0].isalnum() and name[-1] != "." and not DEVICES.match(name) and len(name.encode()) <= 97, name
        folded = [unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()) for name in names]
        for count in range(1, len(names)):
            folders.setdefault("/".join(folded[:count]), url)
        assert files.setdefault("/".join(folded), url) == url, (url, files["/".join(folded)])
    assert not files.keys() & folders.keys()
    assert not any(name.startswith("_") for name in folders)


def test_they_can_all_be_written(tmp_path):
    """As many files as URLs."""
    urls = hostile_urls()[::5]
    for url in urls:
        file = tmp_path / page_path(url, ".md")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(url)
    found = [Path(folder) / name for folder, _, names in os.walk(tmp_path) for name in names]
    assert sorted(file.read_text() for file in found) == sorted(urls)


TITLE = 'A "title": {x} # no --- comment\u2028\u0085 \\n \U0001f600'


def front(path: Path) -> tuple[dict, str]:
    """What a file's front matter says, read by a library for YAML, and what stands below it."""
    _, head, body = path.read_text().split("---\n", 2)
    return yaml.safe_load(head), body


def listed(folder: Path) -> dict[str, dict]:
    rows = map(json.loads, (folder / "_pages.jsonl").read_text().splitlines())
    return {row["url"]: row for row in rows}


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*.md") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.long
@pytest.mark.parametrize("delete", [False, True])
def test_a_folder_follows_a_site(tmp_path, delete):
    """Pages that change, stay and go, with hostile names; a file that is written anew has another time."""
    data, folder = tmp_path / "data", tmp_path / "deep" / "markdown"
    links = ["/still", "/goes/away", "/Case", "/case", "/..%2F..%2Fescape", "/nul", "/a?q=1", "/x.md/", "/x"]
    pages = {name: page(f"T {name}", f"Words of {name}.") for name in links}
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    pages["/"] = page(TITLE, "The price is ten euros.").replace("<footer>", f"<p>{anchors}</p><footer>")
    export = ["export", "texts", "--to", folder, "--data", data, *(["--delete"] if delete else [])]
    with serving(pages) as site:
        done = process("crawl", site.url + "/", *LOOPBACK, "--data", data, "--text")
        assert done.returncode == 0, done.stderr
        done = xyro(*export)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"10 new, 0 changed, 0 unchanged, 0 gone; {folder}/_pages.jsonl lists them\n"
        first, rows = snapshot(folder), listed(folder)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "deep"]
        assert {url.removeprefix(site.url) for url in rows} == pages.keys()
        assert {row["file"] for row in rows.values()} == first.keys()
        assert len({name.casefold() for name in first}) == len(pages)
        head, body = front(folder / rows[site.url + "/"]["file"])
        assert (head["url"], head["language"], head["version"]) == (site.url + "/", "en", 1)
        assert head["title"] == " ".join(TITLE.split()) or head["title"] == TITLE, head["title"]
        assert head["importance"] > 0 and 0 <= head["stale"] < 1 and head["read_at"].endswith("Z")
        assert body.strip().startswith("# A") and "The price is ten euros." in body and LONG.strip() in body

        assert "0 new, 0 changed, 10 unchanged, 0 gone" in xyro(*export).stdout
        assert snapshot(folder) == first

        site.pages["/"] = site.pages["/"].replace("ten", "twelve")
        del site.pages["/goes/away"]
        (folder / rows[site.url + "/nul"]["file"]).unlink()
        reads = ["--refresh", "--max-pages", "40", "--max-seconds", "20", "--data", data]
        assert process("crawl", *LOOPBACK, *reads).returncode == 0
        texts = map(json.loads, xyro("export", "texts", "--data", data).stdout.splitlines())
        reasons = {row["url"].removeprefix(site.url): row["gone"] for row in texts}
        assert reasons == dict.fromkeys(["/", *links]) | {"/goes/away": "http-404"}, "its text stays, and says so"
        said = xyro(*export).stdout.splitlines()
        assert said[0] == f"gone (http-404): {site.url}/goes/away"
        assert said[1].startswith(f"0 new, 2 changed, 7 unchanged, 1 gone{' and deleted' * delete};"), said
        now, rows = snapshot(folder), listed(folder)
        changed = {rows[site.url + name]["file"] for name in ("/", "/nul")}
        gone = rows[site.url + "/goes/away"]
        assert {name for name in first if now.get(name) != first[name]} == changed | (
            {gone["file"]} if delete else set()
        )
        assert gone["gone"] == "http-404" and (folder / gone["file"]).parent.exists() is not delete
        head, body = front(folder / rows[site.url + "/"]["file"])
        assert head["version"] == 2 and "twelve" in body
        again = xyro(*export).stdout
        assert "0 new, 0 changed, 9 unchanged, 0 gone" in again and len(again.splitlines()) == 1, "told once"


def test_of_a_running_crawl_and_as_text_from_a_time_on(tmp_path):
    data, folder = tmp_path / "data", tmp_path / "texts"
    with serving({"/": page("Start", 'To <a href="/b">B</a>.'), "/b": page("B", "Nothing new.")}) as site:
        with started("serve", site.url + "/", *LOOPBACK, "--text", data=data):
            until(lambda: len(xyro("export", "texts", "--data", data).stdout.splitlines()) == 2)
            export = ["export", "texts", "--to", folder, "--as", "text", "--data", data]
            assert "0 new" in xyro(*export, "--since", "2999-01-01").stdout
            assert "0 new" in xyro(*export, "--min-importance", "1000").stdout
            assert "2 new" in xyro(*export).stdout
        text = (folder / f"127.0.0.1+{site.server_port}" / "b.txt").read_text()
        assert text == f"B\n\nNothing new.\n\n{LONG.strip()}\n"
        done = xyro("export", "texts", "--to", folder, "--data", data)
        assert done.returncode == 2 and "another form than markdown" in done.stderr


def test_what_cannot_be_is_said(tmp_path):
    data, other = tmp_path / "data", tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("mine")
    with serving({"/": page("Start", "Words.")}) as site:
        assert process("crawl", site.url + "/", *LOOPBACK, "--data", data).returncode == 0
        done = xyro("export", "texts", "--to", tmp_path / "new", "--data", data)
        assert done.returncode == 2 and "--text" in done.stderr and not (tmp_path / "new").exists()
        assert process("crawl", site.url + "/", *LOOPBACK, "--data", data, "--text").returncode == 0
    done = xyro("export", "texts", "--to", other, "--data", data)
    assert done.returncode == 2 and "has other files" in done.stderr and (other / "mine").read_text() == "mine"
    for words in (["pages", "--to", other], ["texts", "--to", other, "-o", "x"], ["texts", "--delete"]):
        done = xyro("export", *words, "--data", data)
        assert done.returncode == 2 and "--to" in done.stderr, words
