"""`xyro xml`: of a crawl that is stopped and of one that runs, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.frontier.rig import Crawl
from tests.plugins.warehouse import (
    ANY,
    BOOK,
    BOOKS,
    COPY,
    DOCUMENTS,
    DTD,
    FEED,
    FEEDS,
    MODULE,
    NOTE,
    NOTES,
    filled,
    read,
)
from tests.service.face import process, started, xyro
from xyro.plugins.warehouse.version_diff import Version, difference

SETTINGS = ("--only-net", "127.0.0.0/8", "--scope", "any")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("warehouse") / "data", partitions=2)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The same, with a process that works on it."""
    data = filled(tmp_path_factory.mktemp("running") / "data", partitions=2)
    with started("serve", *SETTINGS, data=data):
        yield data


def say(*arguments, code=0):
    done = xyro(*arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


def steady(text):
    """What is said of a page, without how stale it is: that grows with time, and is told only while it may be read."""
    return re.sub(r'"stale": [^}]+|(?m:,[0-9.]*,\r?$)', "", text)


def saved(tmp_path, *arguments):
    out = tmp_path / "out"
    say("xml", "get", *arguments, "-o", out)
    return out.read_bytes()


@pytest.mark.parametrize("which", ["data", "running"])
def test_get(which, request, tmp_path):
    data = request.getfixturevalue(which)
    where = ("--data", data)
    for url, bodies in DOCUMENTS.items():
        assert saved(tmp_path, url, *where) == bodies[-1]
    assert saved(tmp_path, BOOK, "--version", 1, *where) == BOOKS[0]
    assert saved(tmp_path, BOOK, "--at", "2023-11-15", *where) == BOOKS[0]
    assert saved(tmp_path, BOOK, "--at", "2023-11-15T22:13:20Z", *where) == BOOKS[1]
    assert saved(tmp_path, BOOK, "--at", "2099-01-01T00:00:00+02:00", *where) == BOOKS[2]
    (row,) = [one for one in exported(data) if one["url"] == NOTES]
    assert saved(tmp_path, row["id"], *where) == NOTE
    for words, told in (
        ((BOOK, "--version", 4), "has versions 1 to 3, not 4"),
        ((BOOK, "--at", "2001-01-01"), "nothing older than 2023-11-14T22:13:20Z"),
        ((BOOK, "--at", "soon"), "expected a time"),
        ((BOOK, "--at", "2023-11-15", "--version", 1), "name one of them"),
        (("http://h9.example/never",), "not known to this crawl"),
        (("http://h0.example/p.html",), "no document of it is stored"),
        ((2**40,), "no page has this id"),
        ((10**30,), "not an absolute"),
        (("nonsense",), "nonsense"),
    ):
        done = xyro("xml", "get", *words, *where)
        assert done.returncode == 2 and told in done.stderr, done.stderr


def test_get_writes_the_very_bytes_to_standard_output(data):
    done = subprocess.run(
        [sys.executable, "-m", "xyro", "xml", "get", NOTES, "--data", data],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == NOTE


def exported(data):
    return [json.loads(line) for line in say("export", "documents", "--data", data).splitlines()]


@pytest.mark.long
def test_what_runs_says_the_same_as_what_is_stopped(data, running):
    for words in (
        ("export", "documents"),
        ("export", "documents", "--format", "csv"),
        ("xml", "versions", BOOK),
        ("xml", "versions", BOOK, "--json"),
        ("xml", "query", "//title", "--by", "url"),
        ("xml", "query", "//title", "--by", "importance", "--json"),
        ("xml", "query", "//title", "--by", "date", "-n", "1"),
        ("xml", "diff", BOOK),
        ("xml", "diff", BOOK, "--from", "1", "--to", "2", "--json"),
        ("xml", "dtds"),
        ("xml", "dtds", "--json", "-n", "1"),
        ("xml", "stats"),
        ("xml", "stats", "--json"),
    ):
        skips = xyro(*words, "--data", data).returncode
        stopped, living = (steady(say(*words, "--data", each, code=skips)) for each in (data, running))
        assert stopped == living, words


def test_versions(data):
    first, second, third = json.loads(say("xml", "versions", BOOK, "--data", data, "--json"))
    assert [one["version"] for one in (first, second, third)] == [1, 2, 3]
    assert first["until"] == second["read_at"] == "2023-11-15T22:13:20Z" and third["until"] is None
    assert (first["verdict"], first["size"], first["changed"], second["changed"]) == ("valid", len(BOOKS[0]), 0, 3)
    shown = say("xml", "versions", BOOK, "--data", data).splitlines()
    assert len(shown) == 4 and "now" in shown[-1]


def test_export_documents(data):
    rows = {row["url"]: row for row in exported(data)}
    assert rows.keys() == DOCUMENTS.keys()
    book, copy = rows[BOOK], rows[COPY]
    assert (book["version"], book["versions"], book["verdict"], book["dtd"], book["root"]) == (
        3,
        3,
        "valid",
        DTD,
        "book",
    )
    assert (copy["problems"], copy["digest"]) == ("line 1: a\nline 1: b", book["digest"])
    assert rows[DTD]["kind"] == "DTD" and rows[FEEDS]["format"] == "atom" and rows[FEEDS]["size"] == len(FEED)
    assert book["change_rate"] > copy["change_rate"] > 0 and book["importance"] > 0


def queried(data, *words, code=0):
    return [line.split("\t") for line in say("xml", "query", *words, "--data", data, code=code).splitlines()]


def test_query_orders_and_chooses(data):
    title = "(//*[local-name() = 'title'])[1]"
    assert [url for url, _ in queried(data, title, "--by", "url")] == [BOOK, FEEDS, COPY]
    assert queried(data, title, "--by", "date")[0][0] == BOOK, "read last"
    by_worth = [row["url"] for row in sorted(exported(data), key=lambda row: (-row["importance"], row["id"]))]
    assert [url for url, _ in queried(data, title)] == [url for url in by_worth if url in (BOOK, FEEDS, COPY)]
    assert [url for url, _ in queried(data, title, "--host", "h3.example")] == [COPY]
    assert queried(data, title, "--host", "h9.example") == []
    assert {url for url, _ in queried(data, title, "--root", "book")} == {BOOK, COPY}
    atom = ("--namespace", "a=http://www.w3.org/2005/Atom")
    assert queried(data, "//a:entry/a:title/text()", "--root", "a:feed", *atom) == [[FEEDS, "First"]]
    assert queried(data, "//para", "--root", "{urn:none}book") == []
    assert len(queried(data, "//para", "-n", "2")) == 2


def test_query_tells_what_it_left_out(tmp_path):
    crawl = Crawl.on_disk(tmp_path / "data", settings=ANY)
    read(crawl, BOOK, b"<a>" + b"<b/>" * 3_000 + b"</a>")
    read(crawl, COPY, b"<a/>")
    crawl.close()
    slow = "count(//*[count(//*[count(//*[count(//*) > 0]) > 0]) > 0])"
    done = xyro("xml", "query", slow, "--data", tmp_path / "data", "--seconds", "0.3")
    assert done.returncode == 1 and done.stdout == f"{COPY}\t1\n"
    assert done.stderr == "1 of 2 documents: takes more than 0.3 s of CPU\n"


def test_a_document_whose_entities_only_its_dtd_has_is_asked_too(data):
    assert queried(data, "/note/text()")[0] == [NOTES, "caf\u00e9 "]


def test_query_refuses_what_is_no_xpath(data):
    for words, told in (
        (("//[",), "XPATH //[: Invalid expression"),
        (("//x:y",), "declare it with --namespace"),
        (("//a", "--namespace", "x"), "PREFIX=URI"),
    ):
        done = xyro("xml", "query", *words, "--data", data)
        assert done.returncode in (1, 2) and told in done.stderr


def test_a_query_does_not_move_a_cursor(data):
    done = xyro("xml", "query", "'\x9b2J\u202e'", "--data", data)
    assert done.stdout.isascii() and done.stdout.count("\\x9b2J\\u202e") == 4


def test_diff(data):
    told = json.loads(say("xml", "diff", BOOK, "--from", "1", "--to", "2", "--data", data, "--json"))
    assert told == {
        "from": 1, "to": 2, "method": "xmldiff", "why": "", "cut": False,
        "lines": ['[update-text, /book/title[1], "New", "Old"]'],
    }  # fmt: skip
    done = xyro("xml", "diff", COPY, "--data", data)
    assert done.returncode == 2 and "nothing to compare" in done.stderr


def version(number, body, elements=1):
    return Version(number, elements, "", body)


def test_what_is_too_large_for_the_tree_is_compared_by_lines():
    told = difference(version(1, b"<a><b>1</b><c/></a>"), version(2, b"<a><b>2</b><c/></a>", 10_000))
    assert told["method"] == "text" and told["why"] == "more than 3,000 elements"
    assert told["lines"][2:] == ["@@ -1,3 +1,3 @@", " <a>", "-<b>1</b>", "+<b>2</b>", " <c/>"]


def test_what_is_not_compared_says_why():
    assert difference(version(1, b"<a/>"), version(2, b"<a/>"))["why"] == "the bodies are equal"
    huge = version(2, b"<a>" + b"x" * (5 << 20) + b"</a>")
    assert difference(version(1, b"<a/>"), huge)["method"] == "none"


def test_what_is_not_well_formed_is_compared_by_lines():
    told = difference(version(1, b"<a>\n<b>"), version(2, b"<a>\n<c>"))
    assert told["method"] == "text" and "-<b>" in told["lines"] and "+<c>" in told["lines"]


def test_dtds(data):
    book, module = [json.loads(line) for line in say("xml", "dtds", "--data", data, "--json").splitlines()]
    assert (book["url"], book["documents"], sorted(book["used_by"])) == (DTD, 2, sorted([BOOK, COPY]))
    assert (module["url"], module["documents"], module["used_by"], module["declared"]) == (MODULE, 1, [BOOK], 1)
    (first, *_) = (json.loads(line) for line in say("xml", "dtds", "--data", data, "--json", "-n", 1).splitlines())
    assert len(first["used_by"]) == 1 and first["documents"] == 2
    told = say("xml", "dtds", "--data", data)
    assert BOOK in told and "(1 version, " in told


def test_status_counts_documents(data, running):
    for where in (data, running):
        told = json.loads(say("status", "--json", "--data", where))
        assert told["documents"] == {"XML": 4, "DTD": 2}
        assert told["validity"] == {"valid": 1, "unvalidated": 1, "no-grammar": 1, "invalid": 1}
        assert (told["versions"], told["bodies"]) == (8, 7)


def test_the_audit_holds_of_both(data, running):
    for where in (data, running):
        assert json.loads(say("audit", "--json", "--data", where))["violations"] == []


@pytest.mark.long
def test_stats_are_drawn(data, tmp_path):
    say("xml", "stats", "--data", data, "--plot", tmp_path / "stats.png")
    assert (tmp_path / "stats.png").read_bytes().startswith(b"\x89PNG")
    for name, told in (("stats.txt", "ends in .png"), ("none/stats.png", "no directory")):
        done = xyro("xml", "stats", "--data", data, "--plot", tmp_path / name)
        assert done.returncode == 2 and told in done.stderr


def test_a_missing_matplotlib_names_the_mend(data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = xyro("xml", "stats", "--data", data, "--plot", tmp_path / "stats.png")
    assert done.returncode == 2 and "xyro[lab]" in done.stderr and not (tmp_path / "stats.png").exists()


def test_an_empty_repository_has_answers(tmp_path):
    Crawl.on_disk(tmp_path / "data").close()
    where = ("--data", tmp_path / "data")
    assert say("xml", "query", "//a", *where) == say("export", "documents", *where) == ""
    assert say("xml", "dtds", *where) == "No DTD or schema is known.\n"
    assert "no document is stored" in xyro("xml", "query", "//a", *where).stderr
    assert json.loads(say("xml", "stats", "--json", *where))["documents"]["count"] == 0
    say("xml", "stats", "--plot", tmp_path / "empty.svg", *where)


def test_the_group_lists_its_commands():
    done = process("xml", "--help")
    assert all(name in done.stdout for name in ("get", "versions", "query", "diff", "dtds", "stats"))
