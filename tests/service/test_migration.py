"""`xyro migrate`: directories that the Xyro of format 1 made, carried over; killed anywhere, and taken up again."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from xyro.metadata import format1, rows
from xyro.metadata.states import CLASS_SHIFT, HASTENED, KIND_SHIFT, LEADS, LEASED, NAMED, QUERY, SOUGHT, WANTED, WORDED
from xyro.metadata.store import Store
from xyro.service.cli.main import main
from xyro.service.cli.stopped_crawl import stopped_views
from xyro.service.node import migration
from xyro.service.views.host_standing import HOST_STANDING
from xyro.wire.ids import local_pages

DATA = Path(__file__).parent.parent / "data" / "format1"
CRAWLS = ("one", "four", "killed")
BOUNDS = ("importance_", "error_bound", "trend", *HOST_STANDING, "challenge", "stale", "rate_from", "refused",
          "in_scope")  # fmt: skip
DATES = ("interval_s", "next_read")
"""of pages: a crawl that does not run tells none, but has them"""
KILLER = """
import os, signal, sys
from xyro.service.node import migration
from xyro.metadata import format1, rows
from xyro.service.cli import migrate_command
step, seen = int(sys.argv[1]), 0
def after(module, name):
    real = getattr(module, name)
    def wrapped(*args, **named):
        global seen
        result = real(*args, **named)
        seen += 1
        if seen == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(module, name, wrapped)
for module, name in ((format1, "_convert_rows"), (format1, "_widened"), (migration, "_convert"), (migration, "_write"),
                     (migration, "sync"), (migration, "_swap")):
    after(module, name)
migrate_command.migrate([sys.argv[2]])
"""


def unpacked(name: str, where: Path) -> Path:
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        archive.extractall(where, filter="data")
    return where / "data"


def xyro(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


def stored_lines(export: str) -> list[dict[str, Any]]:
    """Rows without the bounds that are computed as they are shown: those follow the program, not the directory."""
    return [
        {name: value for name, value in json.loads(line).items() if not name.startswith((*BOUNDS, "interval_s"))}
        for line in export.splitlines()
    ]


def of_pages(kind: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of pages without their dates, which `dates_of` compares."""
    return [{**row, "next_read": None} for row in rows] if kind == "pages" else rows


def dates_of(directory: Path) -> list[dict[str, Any]]:
    with stopped_views(directory) as views:
        rows = (view.describe(page, 1.0) for view in views.views for page in local_pages(np.flatnonzero(view.own)))
        return [{name: row[name] for name in DATES} for row in rows]


def require_same(directory: Path, expected: Path) -> None:
    """The audit and every export are those of the Xyro that wrote the directory."""
    audit = xyro("audit", "--json", "--data", directory)
    assert (audit.exit_code, audit.stdout_bytes) == (0, (expected / "audit.json").read_bytes())
    for kind in ("pages", "links", "hosts", "documents"):
        export = xyro("export", kind, "--data", directory)
        assert export.exit_code == 0, export.stderr
        before = (expected / f"{kind}.jsonl").read_text("utf-8")
        assert of_pages(kind, stored_lines(export.stdout)) == of_pages(kind, stored_lines(before)), kind
    pages = map(json.loads, (expected / "pages.jsonl").read_text("utf-8").splitlines())
    assert dates_of(directory) == [{name: page[name] for name in DATES} for page in pages]


@pytest.mark.parametrize("name", CRAWLS)
def test_a_directory_of_format_1_is_the_same_crawl_afterwards(name: str, tmp_path: Path) -> None:
    directory = unpacked(name, tmp_path)
    refused = xyro("export", "pages", "--data", directory)
    assert refused.exit_code == 2 and refused.stdout == ""
    assert refused.stderr.splitlines() == [
        f"xyro: {directory}: data of format 1, this Xyro works on format 2: run `xyro migrate --data {directory}`"
    ]
    done = xyro("migrate", directory, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["migrated"] and told["backup"] == str(tmp_path / "data.format-1")
    require_same(directory, tmp_path / "expected")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "data.format-1", "expected"]
    assert (tmp_path / "data.format-1" / "crawl.toml").read_bytes() == (directory / "crawl.toml").read_bytes()
    again = xyro("migrate", "--data", directory)
    assert (again.exit_code, again.stdout) == (0, f"{directory}: nothing to do, it is of format 2\n")


@pytest.mark.long
@pytest.mark.parametrize("step", range(1, 12))
def test_killed_anywhere_it_goes_on(step: int, tmp_path: Path) -> None:
    """Killed after each of its steps: until the exchange the old directory is whole, after it the new one."""
    directory = unpacked("killed", tmp_path)
    killed = subprocess.run(
        [sys.executable, "-c", KILLER, str(step), str(directory)], capture_output=True, timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert directory.is_dir(), "at no moment is there no directory"
    done = xyro("migrate", directory)
    assert done.exit_code == 0, done.stderr
    require_same(directory, tmp_path / "expected")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "data.format-1", "expected"]


def test_without_an_exchange_two_renames_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = unpacked("killed", tmp_path)
    monkeypatch.setattr(migration, "_swap", lambda one, other: False)
    check = {"ok": True, "pages": 1, "violations": []}
    assert migration.migrate(directory, lambda path: check)["backup"] == str(tmp_path / "data.format-1")
    os.rename(directory, tmp_path / ".data.migrating")  # as if killed between the two
    half = xyro("crawl", "http://127.0.0.1:1/", "--only-net", "127.0.0.0/8", "--data", directory)
    assert half.exit_code == 2 and "xyro migrate" in half.stderr and not directory.exists()
    assert not migration.migrate(directory, lambda path: check)["migrated"]
    require_same(directory, tmp_path / "expected")


def test_what_is_in_the_way_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = unpacked("killed", tmp_path)
    blocker = tmp_path / "data.format-1"
    blocker.mkdir()
    assert "in the way" in xyro("migrate", directory).stderr
    blocker.rmdir()
    store = Store.open(directory / "p0000" / "store")
    assert "in use" in xyro("migrate", directory).stderr
    store.close()
    monkeypatch.setattr(migration, "_SPARE", 1e12)
    with pytest.raises(migration.InputError, match="bytes are free"):
        migration.migrate(directory, lambda path: {})
    assert xyro("migrate", tmp_path / "nothing").exit_code == 2


def test_a_failed_audit_changes_nothing(tmp_path: Path) -> None:
    directory = unpacked("one", tmp_path)
    with pytest.raises(migration.MachineError, match="cash is lost"):
        migration.migrate(directory, lambda path: {"ok": False, "violations": ["cash is lost"]})
    assert xyro("migrate", directory).exit_code == 0
    require_same(directory, tmp_path / "expected")


def test_commits_of_the_old_xyro_between_two_tries_are_not_lost(tmp_path: Path) -> None:
    """A partition that was converted is converted again if it was written to since."""
    directory = unpacked("one", tmp_path)
    with pytest.raises(migration.MachineError):
        migration.migrate(directory, lambda path: {"ok": False, "violations": ["not yet"]})
    fresh = tmp_path / ".data.migrating" / "p0000"
    store = Store.open(fresh / "store")
    batch = store.batch()
    batch.put(rows.META.key("scalars"), b"\x81\xa6commit\x01")  # as of an earlier commit
    store.write(batch)
    store.close()
    assert xyro("migrate", directory).exit_code == 0
    require_same(directory, tmp_path / "expected")


def test_every_flag_has_its_place() -> None:
    old = np.array([0x01, 0x02, 0x04, 0x08, 0x30, 0x0080, 0x0780, 0x0800, 0x1000, 0x2000, 0x4000, 0x8000], np.uint16)
    now = [LEASED, WANTED, 4, NAMED, 3 << KIND_SHIFT, 1 << CLASS_SHIFT, 15 << CLASS_SHIFT]
    assert format1.convert_flags(old).tolist() == [*now, WORDED, QUERY, SOUGHT, LEADS, HASTENED]
    assert format1.convert_flags(np.array([0xFFFF], np.uint16)).tolist() == [0x00FF_00FF]


def test_keys_of_crawl_toml_that_went_are_left_out() -> None:
    text = '[crawl]\nscope = "any"\n\n[opic]\nselect = "greedy"\ndamping = 0.9\n'
    assert migration._without_gone(text) == '[crawl]\nscope = "any"\n\n[opic]\ndamping = 0.9\n'
