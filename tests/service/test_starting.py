"""Commands that ask something of a process which has opened its directory, and cannot be asked yet."""

import subprocess
import threading

import pytest

from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, process, started, until, xyro
from xyro.metadata.directories import announced, is_announced, is_locked
from xyro.metadata.store import Store
from xyro.service.cli import running_crawl

URL = "http://127.0.0.1:9999/"


@pytest.mark.long
def test_a_daemon_that_starts_is_waited_for(tmp_path):
    data = tmp_path / "data"
    assert process("crawl", URL, *LOOPBACK, "--data", data, "--max-seconds", "1").returncode == 4
    owner = data / "p0000" / "store" / "OWNER"
    assert not is_locked(owner)
    words = [*XYRO, "serve", "--data", str(data), "--only-net", "127.0.0.0/8"]
    serving = subprocess.Popen(words, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        until(lambda: is_locked(owner))
        looks = [xyro(*words, "--data", data) for words in (("status",), ("top",), ("log", "--errors"), ("audit",))]
        assert [look.returncode for look in looks] == [0] * 4 and "running  yes" in looks[0].stdout, looks
        assert not looks[0].stderr or "is starting" in looks[0].stderr
        done = xyro("submit", f"{URL}x", "--data", data)
        assert done.returncode == 0, done.stderr
        assert "1 accepted" in done.stdout
        made = xyro("subscribe", f"{URL}x", "--every", "1h", "--notify", "true", "--data", data)
        assert made.stdout.strip() == "1", made.stderr
    finally:
        serving.terminate()
        serving.wait(30)


@pytest.mark.long
def test_one_that_has_no_directory_yet_is_waited_for(tmp_path):
    data = tmp_path / "new" / "data"
    words = [*XYRO, "serve", "--data", str(data), "--only-net", "127.0.0.0/8"]
    serving = subprocess.Popen(words, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        until(lambda: is_announced(data))
        assert not data.exists()
        done = xyro("submit", f"{URL}x", "--data", data)
        assert done.returncode == 0, done.stderr
        assert "1 accepted" in done.stdout
    finally:
        serving.terminate()
        serving.wait(30)
    assert not is_announced(data)


def test_a_directory_is_announced_while_that_lasts(tmp_path):
    assert not is_announced(tmp_path)
    with announced(tmp_path), announced(tmp_path):  # two that start at once
        assert is_announced(tmp_path) and is_announced(tmp_path)
        assert not is_announced(tmp_path / "other")
    assert not is_announced(tmp_path)


def test_one_that_never_gets_there_is_not_waited_for_without_end(tmp_path):
    data = tmp_path / "data"
    assert process("crawl", URL, *LOOPBACK, "--data", data, "--max-seconds", "1").returncode == 4
    store = Store.open(data / "p0000" / "store")  # in this process: nothing that can be asked
    try:
        for words in (("submit", URL), ("subscribe", URL, "--every", "1h", "--notify", "true")):
            done = xyro(*words, "--data", data, "--wait", "0.3")
            assert done.returncode == 2
            assert "is starting" in done.stderr and "in use by another process" in done.stderr
            with announced(data):
                done = xyro(*words, "--data", data, "--wait", "0.3")
            assert done.returncode == 3 and "still starting" in done.stderr
    finally:
        store.close()


@pytest.mark.long
def test_a_follower_says_once_that_a_crawl_starts(tmp_path):
    """However often it looks, and the crawl comes and goes."""
    data = tmp_path / "data"
    assert process("crawl", URL, *LOOPBACK, "--data", data, "--changes", "--max-seconds", "1").returncode == 4
    errors = tmp_path / "errors"
    with errors.open("w") as out:
        words = [*XYRO, "changes", "--follow", "--data", str(data)]
        follower = subprocess.Popen(words, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=out)
    try:
        with announced(data):
            until(lambda: "is starting" in errors.read_text())
        for _ in range(3):
            threading.Event().wait(0.5)
            with announced(data):
                threading.Event().wait(0.5)
        assert follower.poll() is None
    finally:
        follower.terminate()
        follower.wait(30)
    assert errors.read_text() == f"{data}: the process that works on it is starting\n"


def test_with_wait_one_that_is_yet_to_be_started_is_found(tmp_path):
    data = tmp_path / "data"
    done = xyro("submit", URL, "--data", data, "--wait", "0.2")
    assert done.returncode == 2 and "no process works on it" in done.stderr
    found = threading.Event()

    def find():
        return "here" if found.is_set() else None

    threading.Timer(0.3, found.set).start()
    assert running_crawl._awaited(data, 30.0, find) == "here"


@pytest.mark.long
def test_stop_says_what_it_needs_where_the_environment_names_a_cluster(tmp_path):
    data, cluster = tmp_path / "data", {"XYRO_CLUSTER__JOIN": "nats://127.0.0.1:1"}
    done = xyro("stop", "--data", data, **cluster)
    assert done.returncode == 2 and "XYRO_CLUSTER__JOIN names a cluster" in done.stderr and "--data" in done.stderr
    with started("serve", URL, *LOOPBACK, data=data) as serving:
        assert xyro("stop", "--data", data, **cluster).stdout == f"process {serving.pid} has ended\n"
