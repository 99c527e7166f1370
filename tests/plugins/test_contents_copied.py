"""Kept contents survive what becomes of a data directory: backup while it is crawled, restore, repair, a lost index."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.plugins.test_page_contents import crawled, page, serving
from tests.service.face import LOOPBACK, process, said, started, until, xyro

__all__ = ["crawled"]


def told(data: Path, url: str) -> list[object]:
    """All that is kept of two pages: versions, the text and the HTML of each, and the rows of the exports."""
    found: list[object] = []
    for path in ("/", "/b"):
        rows = said("page", "versions", url + path, "--data", data)
        found.append([comparable(row) for row in rows])
        for row in rows:
            for form in ("html", "text", "markdown"):
                got = process("page", "get", url + path, "--version", str(row["version"]), "--as", form, "--data", data)
                assert got.returncode == 0, got.stderr
                found.append(got.stdout)
    for table in ("texts", "warc"):
        lines = xyro("export", table, "--data", data).stdout.splitlines()
        found.append([comparable(json.loads(line)) for line in lines])
    return found


def comparable(row: dict[str, object]) -> dict[str, object]:
    """Without the folder of a file, and how stale it is by now; rates to the digits that metadata records have."""
    row = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}
    return {**row, "file": Path(str(row.get("file"))).name, "stale": isinstance(row.get("stale"), float)}


def whole(contents: Path) -> int:
    """Read each WARC file to its end, by another library; the number of records."""
    records = 0
    for file in contents.glob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                record.content_stream().read()
                records += 1
    return records


@pytest.mark.long
def test_a_backup_has_the_contents_and_shares_the_files_that_cannot_change(crawled, tmp_path):
    data, url, _ = crawled
    copy = tmp_path / "copy"
    assert xyro("backup", copy, "--data", data).returncode == 0
    assert told(copy, url) == told(data, url)
    for file in (data / "contents").glob("*.warc.gz"):
        assert (copy / "contents" / file.name).stat().st_ino == file.stat().st_ino, "linked: a second costs no room"
    assert whole(copy / "contents") == whole(data / "contents") > 4


@pytest.mark.long
def test_a_backup_of_a_running_crawl_is_restored_and_gone_on_with(tmp_path):
    """Made while the file of its answers is open; what was read after it is not in it."""
    pages = {"/": page("Start", "First words."), "/b": page("B", "Of the second page.")}
    data, copy = tmp_path / "d", tmp_path / "copy"
    keep = tmp_path / "keep.toml"
    keep.write_text("[keep]\nwarc = true\ntext = true\n")
    with serving(pages) as site:
        with started("serve", site.url + "/", *LOOPBACK, "--config", keep, data=data):
            until(lambda: said("status", "--data", data)["contents"]["texts"] >= 2)
            assert list((data / "contents").glob("*.part")), "a file is open"
            assert xyro("backup", copy, "--data", data).returncode == 0
            site.pages["/"] = page("Start", "Later words.")
            assert xyro("submit", site.url + "/", "--data", data).returncode == 0
            until(lambda: said("status", "--data", data)["contents"]["texts"] >= 3)
        assert len(said("page", "versions", site.url + "/", "--data", copy)) == 1
        assert "First words." in process("page", "get", site.url + "/", "--data", copy).stdout
        assert xyro("audit", "--data", copy).returncode == 0
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        with started("serve", *LOOPBACK, "--config", keep, data=data):
            assert xyro("submit", site.url + "/", "--data", data).returncode == 0
            until(lambda: len(said("page", "versions", site.url + "/", "--data", data)) == 2)
            assert xyro("stop", "--data", data).returncode == 0
        assert "Later words." in process("page", "get", site.url + "/", "--data", data).stdout
        assert not list((data / "contents").glob("*.part")) and whole(data / "contents") > 4


@pytest.mark.long
def test_repair_leaves_the_contents_where_they_are_looked_for(crawled, tmp_path):
    data, url, _ = crawled
    mine = tmp_path / "mine"
    shutil.copytree(data, mine)
    (column,) = (mine / "p0000").glob("*.snapshot") if list((mine / "p0000").glob("*.snapshot")) else (None,)
    victim = column or max((mine / "p0000" / "store").iterdir(), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    before = told(data, url)
    done = xyro("repair", "--data", mine)
    assert done.returncode == 0, done.stderr
    after = told(mine, url)
    for row in (row for rows in (*before[-2:], *after[-2:]) for row in rows):
        row["importance"] = None  # that of now, which begins anew with the columns
    assert after == before


@pytest.mark.long
@pytest.mark.parametrize("damage", ["lost", "torn", "texts only"])
def test_an_index_is_made_anew_from_what_lies_there(crawled, tmp_path, damage):
    data, url, _ = crawled
    mine = tmp_path / "mine"
    shutil.copytree(data, mine)
    index, before = mine / "contents" / "index.sqlite", told(data, url)
    if damage == "lost":
        index.unlink()
    elif damage == "torn":
        index.write_bytes(index.read_bytes()[:8192] + b"\0" * 4096)
    else:
        for file in (mine / "contents").glob("*.warc.gz"):
            file.unlink()
    done = xyro("repair", "--contents", "--data", mine, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["texts"] == 3 and found["pages"] == 2
    if damage == "texts only":
        assert found["records"] == 0
        rows = said("page", "versions", url + "/", "--data", mine)
        assert [row["version"] for row in rows] == [1, 2] and not any(row["html"] for row in rows)
        return
    assert told(mine, url) == before
    with sqlite3.connect(data / "contents" / "index.sqlite") as old, sqlite3.connect(index) as new:
        records, sums = "SELECT * FROM records ORDER BY page, time", "SELECT * FROM totals ORDER BY name"
        was, now = (base.execute(records).fetchall() for base in (old, new))
        assert [(row[0], *row[2:-1]) for row in was] == [(row[0], *row[2:-1]) for row in now], "but for the signatures"
        assert [row[1] for row in was] == pytest.approx([row[1] for row in now], rel=0, abs=2e-6) and len(was) > 3
        assert old.execute(sums).fetchall() == new.execute(sums).fetchall()
    assert not (mine / "contents" / ".rebuilding").exists()
