"""Rows to files: each format says the same, a file is whole or not there, and failures are ours to tell."""

import csv
import json
import logging
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from xyro.service.node.progress import PLAIN, LogPace, line, rate
from xyro.service.views.export import COLUMNS, check, form_of, write_rows
from xyro.service.views.text_tables import field_lines, pages_table
from xyro.wire.errors import InputError, MachineError
from xyro.wire.log_setup import set_up

PAGE = dict.fromkeys(COLUMNS["pages"]) | {"id": 1, "url": "http://a/?q=1,2", "importance": 1.5, "cash": 7}
OTHER = PAGE | {
    "id": 2,
    "url": 'http://a/"',
    "signature": "ab",
    "http_status": 404,
    "next_read": "2026-01-01T00:00:00Z",
}


def typed(row):
    """A CSV row with the types of its columns."""
    return {name: COLUMNS["pages"][name](value) if value else None for name, value in row.items()}


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("given", [[], [PAGE], [PAGE, OTHER]], ids=["none", "one", "two"])
def test_what_is_written_is_read_again(tmp_path, form, given):
    path = tmp_path / f"pages.{form}"
    if form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    assert write_rows("pages", (dict(row) for row in given), form, path) == len(given)
    assert os.listdir(tmp_path) == [path.name]
    if form == "jsonl":
        assert [json.loads(one) for one in path.read_text().splitlines()] == given
    elif form == "csv":
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            assert [typed(row) for row in reader] == given
            assert reader.fieldnames == list(COLUMNS["pages"])
    else:
        found = parquet.read_table(path)
        told = {"next_read": datetime(2026, 1, 1, tzinfo=UTC)}
        assert found.to_pylist() == [row | (told if row["next_read"] else {}) for row in given]
        assert found.column_names == list(COLUMNS["pages"])
        times = {
            name
            for name, kind in zip(found.column_names, found.schema.types, strict=True)
            if "[ms, tz=UTC]" in str(kind)
        }
        assert times == {"first_seen", "first_read", "last_read", "last_change", "next_read"}


def test_fields_that_came_later_do_not_spoil_a_table(tmp_path):
    write_rows("pages", [PAGE | {"new": 1}], "csv", tmp_path / "pages.csv")
    assert "new" not in (tmp_path / "pages.csv").read_text()


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_breaks_off_leaves_the_old_file_as_it_was(tmp_path, form):
    path = tmp_path / "pages"
    path.write_text("old")

    def rows():
        yield PAGE
        raise MachineError("process 1 stopped")

    with pytest.raises(MachineError, match="stopped"):
        write_rows("pages", rows(), form, path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["pages"]


def test_a_pipe_is_written_to_as_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_rows("links", [{"source": 1}], "jsonl", tmp_path / "pipe")
    reader.join()
    assert got == ['{"source": 1}\n'] and os.listdir(tmp_path) == ["pipe"]


def _read(terminal):
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody writes to it any more
        return b""


HOSTILE = "title\x1b]0;owned\x07 \x9b2J \u202egnp.exe\r\nzwei\u00a0Wörter\t水 \rover"
WRITES = f"""
import sys
from xyro.service.views.export import write_bytes, write_rows
text = {HOSTILE!r}
write_bytes((text + "\\n").encode() + b"\\x9b\\xff\\n", None)
write_rows("texts", [{{"id": 1, "title": text}}], sys.argv[1], None)
"""


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_pages_cannot_steer_the_terminal(form):
    """What they contain is escaped there, and goes into a pipe byte by byte."""
    command = [sys.executable, "-c", WRITES, form]
    piped = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    assert piped.startswith(HOSTILE.encode() + b"\n\x9b\xff\n")
    ours, theirs = os.openpty()
    done = subprocess.run(command, stdout=theirs, check=False)
    os.close(theirs)
    text = b"".join(iter(lambda: _read(ours), b"")).replace(b"\r\n", b"\n").decode()
    os.close(ours)
    assert done.returncode == 0
    assert not any(char in text for char in "\x1b\x07\x9b\u202e\r")
    first = "title\\x1b]0;owned\\x07 \\x9b2J \\u202egnp.exe\nzwei\u00a0Wörter\t水 \\rover\n\\x9b\\xff\n"
    assert text.startswith(first)


def test_a_full_disk_is_told(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(MachineError, match="full: No space left"):
        write_rows("links", [{"source": 1}], "jsonl", tmp_path / "full")


def test_what_cannot_be_written_is_refused_first(tmp_path):
    check("csv", tmp_path / "there.csv")
    check("jsonl", None)
    with pytest.raises(InputError, match="make it first"):
        check("csv", tmp_path / "none" / "there.csv")
    with pytest.raises(InputError, match="-o FILE"):
        check("parquet", None)


@pytest.mark.parametrize(
    "asked, name, form",
    [
        (None, "pages.csv", "csv"),
        (None, "a.b.Parquet", "parquet"),
        (None, "pages.csv.gz", "csv"),
        (None, "pages.jsonl.GZ", "jsonl"),
        (None, "pages.txt", "jsonl"),
        (None, "csv", "jsonl"),
        (None, None, "jsonl"),
        ("jsonl", "pages.csv", "jsonl"),
        ("csv", None, "csv"),
    ],
)
def test_a_file_is_written_as_its_name_ends(asked, name, form):
    assert form_of(asked, None if name is None else Path(name)) == form


@pytest.mark.parametrize("name", ["pages.xls", "pages.csv.bz2", "pages.tsv", "pages.xls.gz"])
def test_a_name_that_promises_another_form_is_refused_before_anything_is_written(tmp_path, name):
    with pytest.raises(InputError, match=r"is not written; end it in .jsonl, .csv or .parquet \(.*\), or add --format"):
        form_of(None, tmp_path / name)
    assert form_of("csv", tmp_path / name) == "csv"


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_file_whose_name_ends_in_gz_is_gzipped(tmp_path, form):
    plain, packed = tmp_path / f"hosts.{form}", tmp_path / f"hosts.{form}.gz"
    rows = [{"host": "ü.example", "pages": 1}, {"host": "b.example", "pages": 2}]
    for out in (plain, packed):
        assert write_rows("hosts", rows, form_of(None, out), out) == 2
    assert subprocess.run(["gzip", "-dc", packed], stdout=subprocess.PIPE, check=True).stdout == plain.read_bytes()


def test_parquet_is_not_gzipped(tmp_path):
    with pytest.raises(InputError, match="Parquet is compressed by itself"):
        check(form_of(None, out := tmp_path / "pages.parquet.gz"), out)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'xyro\[parquet\]'"):
        check("parquet", tmp_path / "pages.parquet")


# What people read


def test_a_table_has_a_line_a_row_and_lines_up():
    row = {"url": "http://a/", "score": 131_072.0, "cash": 131_072, "importance": 1.5, "reads": 3, "change_rate": 0.25,
           "rate_from": "reads", "next_read": None, "convergence": 2.0, "error_bound": 2.0}  # fmt: skip
    head, first, second = pages_table([row, row | {"change_rate": None}], "cash").splitlines()
    assert head.split() == ["cash", "importance", "reads", "changes/day", "next", "read", "url"]
    assert first.split() == ["2", "1.5", "3", "0.25", "-", "http://a/"] and second.split()[3] == "-"
    assert head.index("url") == first.index("http") == second.index("http")
    _, own, others, note = pages_table([row, row | {"rate_from": "others"}], "cash").splitlines()
    assert (own.split()[3], others.split()[3]) == ("0.25", "(0.25)") and others.index("http") == own.index("http")
    assert note.startswith("(changes/day): no read has shown yet")


def test_fields_leave_out_what_is_nought_and_escape_the_rest():
    said = {
        "states": {"read": 1200, "dead": 0},
        "none_at_all": {"a": 0},
        "running": True,
        "error": "\x1b[2Jx\n",
        "x": None,
    }
    lines = [one.split(maxsplit=1) for one in field_lines(said).splitlines()]
    assert [words[0] for words in lines] == ["states", "none", "running", "error", "x"]
    assert "read 1,200" in field_lines(said) and "dead" not in field_lines(said) and "\x1b" not in field_lines(said)


def test_fields_show_words_fractions_and_tables_within_a_field():
    said = {
        "execution": {"by": "folders", "dated": 3_200},
        "audit": {"freshness": 0.98, "low": None, "audits": 0},
        "clusters": [{"name": "front", "pages": 2_000, "due": None}, {"name": "rest", "pages": 1}],
        "empty": [],
    }
    shown = [line.split(None, 1)[1] for line in field_lines(said).splitlines()]
    assert shown == ["by folders  dated 3,200", "freshness 0.98", "name front  pages 2,000; name rest  pages 1", "none"]


def test_the_progress_line_tells_speed_known_queue_and_errors():
    said = {
        "reads_this_run": 1200, "pages_per_second": 99.6, "known": 5000, "states": {"unread": 7}, "in_flight": 4,
        "queue": {"blocking": 0, "ordered": 2, "refresh": 0, "discover": 31, "scout": 0}, "errors": {"timeout": 1},
    }  # fmt: skip
    assert line(said) == (
        "1,200 read  100/s  5,000 known  7 unread  queue: ordered 2 discover 31  4 being read  1 error"
    )


@pytest.mark.parametrize(
    ("reads", "told"),
    [
        (0, "0/s"),
        (12_345.6, "12,346/s"),
        (99.6, "100/s"),
        (9.96, "10/s"),
        (2.5, "2.5/s"),
        (0.5, "0.5/s"),
        (0.0123, "44/h"),
    ],
)
def test_a_rate_has_the_digits_that_matter(reads, told):
    assert rate(reads) == told


def test_an_idle_crawl_logs_its_progress_once_an_hour_and_one_that_reads_each_minute_later_on():
    def lines(seconds, reads):
        """Times of the lines of a crawl that is looked at every PLAIN seconds."""
        pace, said = LogPace(), {"known": 1, "states": {}, "queue": {}, "in_flight": 0, "errors": {}}
        times = [PLAIN * step for step in range(1, round(seconds / PLAIN) + 1)]
        return [t for t in times if pace.wants({**said, "reads_this_run": reads(t), "pages_per_second": 1 / t}, t)]

    idle = lines(86_400, lambda _: 7)
    assert len(idle) <= 25 and idle[0] == PLAIN
    busy = lines(86_400, lambda t: t)
    assert busy[:59] == [PLAIN * step for step in range(1, 60)] and len(busy) <= 60 + 1_440
    wakes = lines(7_200, lambda t: 7 if t < 5_000 else 8)
    assert 5_000 in wakes, "what happens is told at once"


@pytest.fixture
def logger():
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield logging.getLogger("xyro")
    root.handlers[:] = before
    root.setLevel(level)


def fail():
    raise ValueError("\x1b[31mred")


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_lines_cannot_be_forged(logger, capfd, form):
    set_up("info", form)
    logger.info("read %s", "http://a/\r\n2026-01-01T00:00:00Z error forged \x1b]52;c;eA==\x07 \u202e %s%n {}")
    logger.debug("not told")
    try:
        fail()
    except ValueError:
        logger.exception("it failed")
    _, told = capfd.readouterr()
    lines = told.splitlines()
    assert "\x1b" not in told and "\u202e" not in told and "forged" in lines[0] and "%s%n {}" in lines[0]
    if form == "json":
        first, second = map(json.loads, lines)
        assert first["level"] == "info" and first["time"].endswith("Z") and "ValueError" in second["trace"]
    else:
        assert lines[0].split()[1:3] == ["info", "read"]
        assert all(one.startswith("  ") for one in lines[2:]) and "ValueError" in lines[-1]


def test_log_lines_go_where_standard_error_is_now(logger, capsys):
    set_up("info", "text")
    logger.warning("here")
    assert "warning here" in capsys.readouterr().err
