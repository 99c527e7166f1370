"""SIGHUP brings other [[sites]] to a daemon: judged by what servers and a proxy were sent, and by its log."""

from __future__ import annotations

import gzip
import signal
import socket
import socketserver
import threading
from types import SimpleNamespace

import pytest

from tests.plugins.test_sites import HostServer, _ProxyHandler, hosts  # noqa: F401  the fixture
from tests.service.face import LOOPBACK, started, until, xyro
from xyro.answer import Answer
from xyro.configs.schema import FetchSettings, Settings
from xyro.plugins.sites.proxy_failures import PROXY_FAILED, ProxyFailures
from xyro.wire.clock import ManualClock
from xyro.wire.ids import PageId
from xyro.wire.messages import PageReport


@pytest.mark.long
@pytest.mark.parametrize(("client", "readers"), [("fast", "0"), ("aiohttp", "0"), ("fast", "1")])
def test_a_daemon_asks_by_other_sites_after_sighup(tmp_path, hosts, client, readers):  # noqa: F811
    wiki, other = hosts
    data, path, key = tmp_path / "data", tmp_path / "mine.toml", tmp_path / "key"
    base = f'[log]\nlevel = "warning"\n[fetch]\nclient = "{client}"\nreaders = {readers}\n[keep]\nwarc = true\n'
    path.write_text(base)
    with (
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), _ProxyHandler) as proxy,
        started("serve", f"http://{wiki.host}/", *LOOPBACK, "--config", path, data=data, start_new_session=True) as it,
    ):
        proxy.daemon_threads, proxy.heads = True, []
        threading.Thread(target=proxy.serve_forever, daemon=True).start()

        def hup(sites: str) -> str:
            path.write_text(base + sites)
            it.send_signal(signal.SIGHUP)
            return it.stderr.readline()

        def asked(server: HostServer, name: str) -> dict[str, str]:
            """The headers of a page that is read now."""
            assert xyro("submit", f"http://{server.host}{name}", "--data", data).returncode == 0
            return until(lambda: next((headers for _, found, headers, _ in server.seen if found == name), None))

        assert "x-key" not in asked(wiki, "/1")
        table = f'[[sites]]\nhost = "127.0.0.2"\nheaders = {{ "X-Key" = {{ file = "{key}" }} }}\n'
        complaint = hup(table)
        assert "nothing changed" in complaint and str(key) in complaint
        key.write_text("f1rst-key")
        assert hup(table).endswith("settings read again: sites changed\n")
        assert asked(wiki, "/2")["x-key"] == "f1rst-key" and "x-key" not in asked(other, "/2")
        key.write_text("s3cond-key")
        assert hup(table).endswith("settings read again: secrets changed\n")
        assert asked(wiki, "/3")["x-key"] == "s3cond-key" and not proxy.heads
        with socket.socket() as bound:  # and not listening
            bound.bind(("127.0.0.1", 0))
            dead = f"http://127.0.0.1:{bound.getsockname()[1]}"
            assert hup(table + f'proxy = "{dead}"\n').endswith("settings read again: sites changed\n")
            xyro("submit", f"http://{wiki.host}/7", "--data", data)
            until(lambda: f"! The proxy {dead} fails (" in xyro("status", "--data", data).stdout)
        assert f"warning the proxy {dead} fails (" in it.stderr.readline()
        proxied = table + f'proxy = "http://127.0.0.1:{proxy.server_address[1]}"\n'
        assert hup(proxied).endswith("settings read again: sites changed\n")
        assert dead not in xyro("status", "--data", data).stdout
        assert asked(wiki, "/4") and len(proxy.heads) >= 1, "an idle connection past the proxy served it"
        assert "127.0.0.2" in xyro("why", f"http://{wiki.host}/4", "--data", data).stdout
        assert hup("[[sites]]\nhost = '127.0.0.2'\ndelay = 3600\n").endswith("settings read again: sites changed\n")
        assert "x-key" not in asked(wiki, "/5")
        xyro("submit", f"http://{wiki.host}/6", "--data", data)
        assert asked(other, "/6") and all(name != "/6" for _, name, _, _ in wiki.seen), "its delay is an hour now"
        proxy.shutdown()
        it.terminate()
        it.communicate(timeout=60)
    text = b"".join(gzip.decompress(found.read_bytes()) for found in data.rglob("*.warc.gz"))
    assert text.count(b"X-Key: (not kept)") == sum("x-key" in headers for _, _, headers, _ in wiki.seen) >= 3
    assert (
        not any(b"-key" in found.read_bytes() for found in data.rglob("*") if found.is_file()) and b"-key" not in text
    )


def test_a_proxy_does_not_answer_for_the_one_before_it():
    """A page was under way through a proxy as the settings came to name another one."""
    clock = ManualClock(100.0)
    services = SimpleNamespace(clock=clock, followed=[], answered=[], failed_proxies={})
    services.settings = Settings(fetch=FetchSettings(proxy="http://127.0.0.1:1"))
    ProxyFailures(SimpleNamespace(partition=SimpleNamespace(number=0)), services)
    clock.advance(0.5)
    services.settings = Settings(fetch=FetchSettings(proxy="http://127.0.0.1:2"))
    services.followed[0]()
    for asked, failing in [(100.0, []), (100.5, ["http://127.0.0.1:2"])]:
        report = PageReport(PageId(1), "http://a.example/", 1, asked, asked + 1.0, error=PROXY_FAILED)
        services.answered[0](report, Answer(asked, detail="Connection refused"))
        assert list(services.failed_proxies) == failing
