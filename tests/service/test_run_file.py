"""DIR/run: found while its process lives, seen through when it does not, and never shown to others."""

import json
import os
import socket
import stat
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from xyro.service.node import run_file
from xyro.service.node.run_file import NAME, Remote, write
from xyro.wire.errors import InputError, MachineError

TOKEN = "secret-token"


class _Answers(BaseHTTPRequestHandler):
    """Says what `server.said` has for a path: (status, body, length told)."""

    def do_GET(self):
        status, body, length = self.server.said[self.path]
        self.server.heard.append(self.headers.get("Authorization"))
        self.send_response(status)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.said = {"/health": (200, json.dumps({"ok": True, "pid": os.getpid()}).encode(), 0)}
        server.heard = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_file_is_its_owner_s_and_whole(tmp_path):
    (tmp_path / ".run.new").write_text("left by a process that died")
    write(tmp_path, "127.0.0.1", 4711, TOKEN)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [NAME]
    assert json.loads((tmp_path / NAME).read_text())["token"] == TOKEN


def test_nobody_s_link_is_followed(tmp_path):
    target = tmp_path / "target"
    (tmp_path / ".run.new").symlink_to(target)
    write(tmp_path, "127.0.0.1", 4711, TOKEN)
    assert not target.exists() and not (tmp_path / NAME).is_symlink()


def test_a_living_process_is_found_without_showing_it_the_token(tmp_path, server):
    write(tmp_path, "127.0.0.1", server.server_port, TOKEN)
    remote = Remote.find(tmp_path)
    assert remote is not None and remote.pid == os.getpid() and server.heard == [None]


ENDLESS = f'{{"pid": {"9" * 30}, "host": "127.0.0.1", "port": 1, "token": ""}}'


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"pid": "x"}', "\x00", '{"pid": 1, "host": 2', ENDLESS])
def test_a_file_that_says_nothing_finds_nobody(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    assert Remote.find(tmp_path) is None


def test_no_file_no_process(tmp_path):
    assert Remote.find(tmp_path) is None
    assert Remote.find(tmp_path / "none") is None


def test_a_process_that_ended_is_not_found(tmp_path, server):
    child = subprocess.Popen(["true"])
    child.wait()
    said = {"pid": child.pid, "host": "127.0.0.1", "port": server.server_port, "token": TOKEN}
    (tmp_path / NAME).write_text(json.dumps(said))
    assert Remote.find(tmp_path) is None and server.heard == []


@pytest.mark.parametrize("body", [b'{"ok": true, "pid": 1}', b"hello", b'{"ok": true}', b"[1]"])
def test_somebody_else_on_its_port_is_not_taken_for_it(tmp_path, server, body):
    server.said["/health"] = (200, body, 0)
    write(tmp_path, "127.0.0.1", server.server_port, TOKEN)
    assert Remote.find(tmp_path) is None and server.heard == [None]


def test_a_port_nobody_listens_on_is_stale(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    write(tmp_path, "127.0.0.1", port, TOKEN)
    assert Remote.find(tmp_path) is None


def test_a_process_that_hangs_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(run_file, "QUICK", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        write(tmp_path, "127.0.0.1", silent.getsockname()[1], TOKEN)
        with pytest.raises(MachineError, match=f"process {os.getpid()} is busy or hangs"):
            Remote.find(tmp_path)


def test_refusals_and_failures_keep_their_kind(server):
    remote = Remote(os.getpid(), "127.0.0.1", server.server_port, TOKEN)
    server.said["/top?n=x"] = (400, b'{"error": "n is a number"}', 0)
    server.said["/audit"] = (500, b'{"error": "the disk"}', 0)
    server.said["/status"] = (502, b"<html>", 0)
    for path, query, kind, reason in (
        ("/top", {"n": "x"}, InputError, "n is a number"),
        ("/audit", {}, MachineError, "the disk"),
        ("/status", {}, MachineError, "HTTP 502"),
    ):
        with pytest.raises(kind, match=reason):
            remote.get(path, **query)
    assert server.heard == [f"Bearer {TOKEN}"] * 3


def test_an_answer_that_breaks_off_is_never_taken_for_the_whole(server):
    remote = Remote(os.getpid(), "127.0.0.1", server.server_port, TOKEN)
    server.said["/export/pages"] = (200, b'{"id": 0}\n{"id": 1}\n', 1000)
    server.said["/status"] = (200, b'{"known": 1', 1000)
    lines = remote.lines("/export/pages")
    with pytest.raises(MachineError, match="went away before all was said"):
        list(lines)
    with pytest.raises(MachineError, match="went away before all was said"):
        remote.get("/status")


def test_a_process_that_went_away_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        remote = Remote(os.getpid(), "127.0.0.1", taken.getsockname()[1], TOKEN)
    with pytest.raises(MachineError, match="went away before"):
        remote.get("/status")


def test_removing_twice_is_fine(tmp_path):
    write(tmp_path, "127.0.0.1", 1, TOKEN)
    run_file.remove(tmp_path)
    run_file.remove(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / ".run.new").mkdir()
    with pytest.raises(MachineError, match="run: "):
        write(tmp_path, "127.0.0.1", 1, TOKEN)
