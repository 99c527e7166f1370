"""Looks at a stopped crawl where nothing can be written: a read-only mount, a full disk, another user's directory."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, process, xyro
from xyro.lab.child import running
from xyro.metadata.directories import Shadow
from xyro.metadata.store import LookedAt, Store
from xyro.wire.errors import InputError, MachineError

NOBODY = 65_534
LOOKS = (("audit", "--json"), ("status",), ("top", "--json"), ("why", "{entry}"), ("export", "pages"), ("plan",))


@pytest.fixture(scope="module")
def crawled():
    """A directory that every user may read, with a log that no table holds yet, and the URL that it began with."""
    with tempfile.TemporaryDirectory() as place, running(pages=60, hosts=3, seed=3, rate_median=0.0) as web:
        Path(place).chmod(0o755)
        data = Path(place) / "data"
        done = process("crawl", web.entry, *LOOPBACK, "--data", data, "--json")
        assert done.returncode == 0, done.stderr
        subprocess.run(["chmod", "-R", "a+rX", str(data)], check=True)
        yield data, web.entry


def mounted(script, *arguments):
    """Run a shell script that may mount things, in a name space of its own."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this needs a user who may mount")
    words = ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh", *map(str, arguments)]
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def looks(entry):
    """The looks as words, and as lines of a shell script whose first argument is the directory."""
    words = [[word.format(entry=entry) for word in look] for look in LOOKS]
    return words, "\n".join(" ".join([*XYRO, *look, "--data", '"$1"']) for look in words)


def content(directory):
    return {path: path.stat().st_mtime_ns for path in sorted(directory.rglob("*"))}


def shadows(data):
    """Links of shadows to tables of this directory; other tests look at others meanwhile."""
    links = (link for link in Path("/dev/shm").glob("xyro-look-*/*") if link.is_symlink())
    return [link for link in links if link.readlink().is_relative_to(data)]


def expected(data, entry):
    """What they print where everything can be written, but for what the clock changes."""
    return [line for look in looks(entry)[0] for line in steady(xyro(*look, "--data", data).stdout)]


def steady(text):
    """Lines that say the same a second later, without how stale pages are."""
    lines = [line for line in text.splitlines() if line.startswith(("{", "[")) and "days" not in line]
    return [re.sub(r'"stale": [^,}]+', "", line) for line in lines]


def test_a_look_leaves_no_trace_and_others_may_look_too(crawled):
    data, entry = crawled
    before = content(data)
    with_another = LookedAt(data / "p0000" / "store")
    for words in looks(entry)[0]:
        done = xyro(*words, "--data", data)
        assert done.returncode == 0, done.stderr
    with_another.close()
    assert content(data) == before
    assert shadows(data) == [], "a shadow was left"


@pytest.mark.long
def test_a_read_only_mount_is_looked_at(crawled, tmp_path):
    data, entry = crawled
    script = f"""
        mount --bind "$1" "$2"; mount -o remount,ro,bind "$2"; ! touch "$2"/x 2>/dev/null
        set -- "$2"; {looks(entry)[1]}"""
    code, out, err = mounted(script, data, tmp_path)
    assert code == 0, err
    assert sorted(steady(out)) == sorted(expected(data, entry))
    assert json.loads(out.splitlines()[0])["ok"]


@pytest.mark.long
def test_a_full_disk_is_looked_at(crawled, tmp_path):
    """Not a byte is free there, nor where temporary files go."""
    data, entry = crawled
    script = f"""
        mount -t tmpfs -o size=24m none "$2"; cp -a "$1" "$2"/data; mkdir "$2"/tmp; export TMPDIR="$2"/tmp
        dd if=/dev/zero of="$2"/filler bs=64k 2>/dev/null || true; ! sh -c 'echo x > "$0"/y' "$2" 2>/dev/null
        set -- "$2"/data; {looks(entry)[1]}"""
    code, out, err = mounted(script, data, tmp_path)
    assert code == 0, err
    assert sorted(steady(out)) == sorted(expected(data, entry))


@pytest.mark.long
def test_the_directory_of_another_user_is_looked_at_if_he_lets_us(crawled, tmp_path):
    """By a process without root's right to pass over permissions: it may read everything, and write nothing."""
    data, entry = crawled
    if os.geteuid():
        pytest.skip("this needs root, to give a directory away")
    theirs = tmp_path / "data"
    shutil.copytree(data, theirs)
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(theirs)], check=True)
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    refused = subprocess.run([*powerless, "touch", str(theirs / "x")], capture_output=True, check=False)
    assert refused.returncode, "it may write there: this test shows nothing"
    before = content(theirs)
    for words in looks(entry)[0]:
        line = [*powerless, *XYRO, *words, "--data", str(theirs)]
        done = subprocess.run(line, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    assert content(theirs) == before


def test_who_writes_shuts_out_who_looks_and_waits_for_them(crawled, tmp_path, monkeypatch):
    copy = tmp_path / "data"
    shutil.copytree(crawled[0], copy)
    path = copy / "p0000" / "store"
    store = Store.open(path)
    with pytest.raises(InputError, match="in use"):
        LookedAt(path)
    store.close()
    look = LookedAt(path)
    with pytest.raises(MachineError, match="looked at"):
        look.batch()
    monkeypatch.setattr("xyro.metadata.store.PATIENCE", 0.2)
    with pytest.raises(InputError, match="in use"):
        Store.open(path)
    monkeypatch.undo()
    ends = threading.Timer(0.5, look.close)
    ends.start()
    Store.open(path).close()
    ends.join()


def test_the_shadow_of_a_killed_look_goes_with_the_next(crawled):
    store = crawled[0] / "p0000" / "store"
    used, left, young = Shadow(store), Shadow(store), Shadow(store)
    for each in (left, young):
        each._lock.release()  # as the kernel does for a process that was killed
    for each in (used, left):
        os.utime(each.path, (0, 0))
    LookedAt(store).close()
    assert [Path(each.path).exists() for each in (used, left, young)] == [True, False, True]
    used.remove()
    young.remove()


def test_a_shadow_copies_no_table(crawled):
    held = Shadow(crawled[0] / "p0000" / "store")
    shadow = Path(held.path)
    try:
        assert all(file.is_symlink() == (file.suffix == ".ldb") for file in shadow.iterdir())
        assert (shadow / "CURRENT").exists() and not (shadow / "OWNER").exists()
    finally:
        held.remove()
