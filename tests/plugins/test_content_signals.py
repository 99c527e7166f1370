"""Content-Signal in robots.txt, by the logs of the sites: what is refused is not read, or told with what is kept."""

from __future__ import annotations

import json

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.plugins.signal_sites import signal_sites
from tests.service.face import LOOPBACK, process, rows, said, started, until, xyro
from xyro.configs.load import load
from xyro.wire.errors import InputError

NO_TRAINING = "# what you may do\nUser-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"
NO_SEARCH = "User-agent: *\nContent-Signal: search=no, ai-input=no\nAllow: /\n"
SILENT = "User-agent: *\nAllow: /\n"
TO_XYRO = "User-agent: xyro\nContent-Signal: ai-input=no\n\nUser-agent: *\nContent-Signal: search=no\n"
KEEP = {"XYRO_KEEP__TEXT": "true", "XYRO_KEEP__WARC": "true"}


def crawl(data, *sites, **environment):
    done = process("crawl", *(site.url for site in sites), *LOOPBACK, "--data", data, "--json", **environment)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("readers", ["0", "1"])
def test_what_is_refused_is_told_with_everything_that_is_kept(tmp_path, readers):
    data = tmp_path / "data"
    with signal_sites(NO_TRAINING, NO_SEARCH, SILENT, TO_XYRO) as sites:
        report = crawl(data, *sites, **KEEP, XYRO_FETCH__READERS=readers, XYRO_CHANGES__RECORD="true")
    training, search, silent, own = sites
    assert [sorted(site.log) for site in sites] == [
        ["/", "/1", "/robots.txt"],
        ["/robots.txt"],
        ["/", "/1", "/robots.txt"],
        ["/", "/1", "/robots.txt"],
    ]
    assert (report["pages_read"], report["errors"]) == (6, {"content-signal": 1})
    refused = {training.url: "ai-train", silent.url: None, own.url: "ai-input"}
    pages = {row["url"]: row for row in rows("pages", data)}
    assert {url: row["refused"] for url, row in pages.items() if row["reads"]} == {
        url + path: uses for url, uses in refused.items() for path in ("", "1")
    }
    unread = pages[search.url]
    assert (unread["state"], unread["error"], unread["reads"]) == ("disallowed", "content-signal", 0)
    assert unread["refused"] == "search,ai-input"
    assert said("why", search.url, "--data", data)["because"][0] == (
        "The robots.txt of its host refuses every use that this crawl has for it "
        "(Content-Signal: search=no, ai-input=no)."
    )
    because = said("why", training.url, "--data", data)["because"][0]
    assert "The robots.txt of its host refuses these uses: ai-train=no." in because
    assert {row["url"]: row["refused"] for row in rows("texts", data)} == {
        url + path: uses for url, uses in refused.items() for path in ("", "1")
    }
    assert {line["url"]: line["refused"] for line in said_lines("changes", "--data", data)} == {
        url + path: uses for url, uses in refused.items() for path in ("", "1")
    }
    assert signals_of(data, "response", "X-Content-Signal") == {
        url + path: f"{uses}=no" if uses else None for url, uses in refused.items() for path in ("", "1")
    }
    told = {url: f"{uses}=no" for url, uses in refused.items() if uses}
    lines = signals_of(data, "metadata", None)
    assert {url: line for url, line in lines.items() if line} == {
        url + path: f"content-signal: {signal}" for url, signal in told.items() for path in ("", "1")
    }


def said_lines(*arguments):
    return [json.loads(line) for line in xyro(*arguments).stdout.splitlines()]


def signals_of(data, kind, header):
    """URL -> what its WARC record says; header None: a line of the record's block."""
    found = {}
    for path in (data / "contents").glob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                url = record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type == kind and not url.endswith("/robots.txt"):
                    lines = record.raw_stream.read().decode("latin-1").split("\r\n")
                    block = next((line for line in lines if line.startswith("content-signal")), None)
                    found[url] = record.rec_headers.get_header(header) if header else block
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("purpose", "robots", "refused"),
    [
        ("search,ai-train", NO_SEARCH, "search,ai-input"),
        ("search,ai-input", NO_SEARCH, ""),
        ("ai-train", NO_TRAINING, ""),
        ("ai-train,search", NO_TRAINING, "ai-train"),
        ("ai-input", SILENT, None),
    ],
)
def test_one_purpose_that_is_not_refused_is_enough(tmp_path, purpose, robots, refused):
    """refused: of the pages that are read; empty: none is."""
    with signal_sites(robots) as (site,):
        crawl(tmp_path / "data", site, XYRO_IDENTITY__PURPOSE=purpose)
    read = [row["refused"] for row in rows("pages", tmp_path / "data") if row["reads"]]
    assert read == ([] if refused == "" else [refused] * 2)
    assert sorted(site.log) == (["/robots.txt"] if refused == "" else ["/", "/1", "/robots.txt"])


@pytest.mark.long
def test_a_killed_crawl_keeps_signals_and_purposes(tmp_path):
    data, slow = tmp_path / "data", [*LOOPBACK[:2], "--scope", "any", "--delay", "0.3"]
    with signal_sites(NO_TRAINING, NO_SEARCH, pages=12) as (training, search):
        seeds = [training.url, search.url]
        with started("crawl", *seeds, *slow, data=data) as running:
            until(lambda: len(training.log) >= 5)
            running.kill()
            running.wait()
        found = [row for row in rows("pages", data) if row["reads"]]
        assert found and {row["refused"] for row in found} == {"ai-train"}
        (left,) = [row for row in rows("pages", data) if row["url"] == search.url]
        assert (left["error"], left["refused"]) in (("content-signal", "search,ai-input"), (None, None))
        crawl(data)
    assert len({row["url"] for row in rows("pages", data) if row["refused"] == "ai-train"}) == 12
    assert set(search.log) == {"/robots.txt"}
    assert said("audit", "--data", data)["ok"]


@pytest.mark.long
def test_a_site_that_changes_its_mind_is_not_read_again(tmp_path):
    data = tmp_path / "data"
    with signal_sites(SILENT) as (site,):
        crawl(data, site)
        site.robots = NO_SEARCH
        done = process("crawl", *LOOPBACK, "--data", data, "--refresh", "--max-seconds", "4", "--json",
                       XYRO_REFRESH__BANDWIDTH="20")  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert site.log == ["/robots.txt", "/", "/1", "/robots.txt"]
    told = {(row["state"], row["error"], row["refused"], row["reads"]) for row in rows("pages", data)}
    assert ("disallowed", "content-signal", "search,ai-input", 1) in told
    assert xyro("why", site.url, "--data", data).returncode == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("robots", "expected"),
    [(NO_TRAINING, {"ai-train"}), (NO_SEARCH, {"search,ai-input"}), (SILENT, {None})],
)
def test_texts_tell_what_is_refused_by_now(tmp_path, robots, expected):
    """Of pages that answer 304, too, and of those that are not read any more."""
    data = tmp_path / "data"
    with signal_sites(TO_XYRO) as (site,):
        crawl(data, site, XYRO_KEEP__TEXT="true")
        assert {row["refused"] for row in rows("texts", data)} == {"ai-input"}
        site.robots = robots
        bounds = ["--refresh", "--max-seconds", "5", "--json"]
        process("crawl", *LOOPBACK, "--data", data, *bounds, XYRO_REFRESH__BANDWIDTH="20")
    assert len(site.log) == (4 if robots == NO_SEARCH else len(site.log)) > 3
    assert {row["refused"] for row in rows("texts", data)} == expected


def test_a_crawl_is_for_something(tmp_path):
    with pytest.raises(InputError, match="purpose: expected"):
        load(overrides={"identity.purpose": ["sale"]})
    path = tmp_path / "none.toml"
    path.write_text("[identity]\npurpose = []\n")
    with pytest.raises(InputError, match="one at least"):
        load([path])
