"""The parts of a canonical URL, the site of a host and its partition."""

from __future__ import annotations

import ipaddress
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from ada_url import URL
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64

from xyro.wire.urls import (
    address_of,
    authority,
    canonical,
    host_of,
    is_address,
    origin,
    partition_of,
    path_of,
    site_of,
    suffix_of,
)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://a/", ("http://a", "a", "a", "/")),
        ("https://a/", ("https://a", "a", "a", "/")),
        ("http://a.example:8080/x/y?z", ("http://a.example:8080", "a.example:8080", "a.example", "/x/y")),
        ("https://a.example/x?y=/z:1", ("https://a.example", "a.example", "a.example", "/x")),
        ("http://127.0.0.1:1/?q", ("http://127.0.0.1:1", "127.0.0.1:1", "127.0.0.1", "/")),
        ("http://[::1]/", ("http://[::1]", "[::1]", "[::1]", "/")),
        (
            "https://[2001:db8::1]:8443/a:b",
            ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443", "[2001:db8::1]", "/a:b"),
        ),
        ("http://h/http://k:9/x@y", ("http://h", "h", "h", "/http://k:9/x@y")),
    ],
)
def test_parts(url: str, parts: tuple[str, str, str, str]) -> None:
    assert (origin(url), authority(url), host_of(url), path_of(url)) == parts


LABEL = st.from_regex(r"(?!xn--)[a-z][a-z0-9-]{0,5}", fullmatch=True)
HOST = st.lists(LABEL, min_size=1, max_size=3).map(".".join) | st.sampled_from(["10.0.0.1", "[::1]", "[2001:db8::2:1]"])
PORT = st.just("") | st.integers(1, 65535).map(":{}".format)


@given(st.sampled_from(["http", "https"]), HOST, PORT, st.text(st.characters(codec="utf-8"), max_size=20))
def test_parts_are_the_parsers(scheme: str, host: str, port: str, rest: str) -> None:
    url = canonical(f"{scheme}://{host}{port}/{rest}")
    parsed = URL(url)
    assert origin(url) == parsed.origin
    assert authority(url) == parsed.host
    assert host_of(url) == parsed.hostname
    assert path_of(url) == parsed.pathname


@pytest.mark.parametrize(
    ("url", "suffix"),
    [
        ("http://h.example/", ""),
        ("http://h/index.html", "html"),
        ("http://h/a.d/index", ""),
        ("http://h/a/LOGO.PNG?v=1.2", "png"),
        ("http://h/x.tar.gz", "gz"),
        ("http://h/x?file=y.pdf", ""),
        ("http://h/.htaccess", ""),
        ("http://h/.profile.bak", "bak"),
        ("http://h/x.", ""),
        ("http://h/page.php;jsessionid=1.2", "php"),
        ("http://h/a.b/", ""),
    ],
)
def test_suffix(url: str, suffix: str) -> None:
    assert suffix_of(url) == suffix


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", ipaddress.IPv4Address("127.0.0.1")),
        ("255.255.255.255", ipaddress.IPv4Address("255.255.255.255")),
        ("[::1]", ipaddress.IPv6Address("::1")),
        ("[::ffff:7f00:1]", ipaddress.IPv6Address("::ffff:127.0.0.1")),
        ("2001:db8::a", ipaddress.IPv6Address("2001:db8::a")),
        ("example.org", None),
        ("h1", None),
        ("1.2.3.x4", None),
        ("256.1.1.1", None),
        ("1.2.3", None),
        ("[example]", None),
        ("[", None),
        ("[]", None),
        ("", None),
        ("127.0.0.١", None),
        ("127.0.0.1.", None),
    ],
)
def test_addresses(host: str, address: object) -> None:
    assert address_of(host) == address
    assert is_address(host) is (address is not None)


@given(st.ip_addresses())
def test_every_address_in_a_url_is_found(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    host = host_of(canonical(f"http://{address}/" if address.version == 4 else f"http://[{address}]:81/"))
    assert address_of(host) == address
    assert site_of(host) == host


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("example.org", "example.org"),
        ("a.b.example.org", "example.org"),
        ("www.example.co.uk", "example.co.uk"),
        ("user.github.io", "user.github.io"),
        ("deep.user.github.io", "user.github.io"),
        ("co.uk", "co.uk"),
        ("github.io", "github.io"),
        ("localhost", "localhost"),
        ("a.localhost", "a.localhost"),
        ("www.example.org.", "example.org"),
        ("a.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("shop.x.xn--55qx5d.cn", "x.xn--55qx5d.cn"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("", ""),
    ],
)
def test_site(host: str, site: str) -> None:
    assert site_of(host) == site


def test_the_public_suffix_list_is_loaded_only_where_a_site_is_asked_for() -> None:
    code = "import sys, xyro.wire.urls; sys.exit('publicsuffixlist' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


# --- partitions ----------------------------------------------------------------------------------------------------

PINNED = [
    ("", 0x2D06800538D394C2),  # xxHash's own test value for no input
    ("example.org", 0x4037554F7EBCBF45),
    ("www.example.org", 0x0CF6D8FA63263A52),
    ("docs.python.org", 0x39210499214D8E9A),
    ("xn--bcher-kva.example", 0x67519D0E20D524A6),
    ("127.0.0.1", 0x9A071D171774168C),
    ("[2001:db8::1]", 0x7F2FBFF6AC15CB1E),
]


@pytest.mark.parametrize(("host", "fingerprint"), PINNED)
def test_partitions_are_pinned(host: str, fingerprint: int) -> None:
    """Never change these: a stored crawl finds its pages by them."""
    assert xxh3_64(host.encode()).intdigest() == fingerprint
    for partitions in (1, 2, 4, 64, 1000, 2**64):
        assert partition_of(host, partitions) == fingerprint % partitions


def test_partitions_of_some_hosts_in_words() -> None:
    hosts = ["example.org", "www.example.org", "docs.python.org", "127.0.0.1"]
    assert [partition_of(host, 64) for host in hosts] == [5, 18, 26, 12]
    assert [partition_of(host, 4) for host in hosts] == [1, 2, 2, 0]


def test_partitions_share_hosts_evenly() -> None:
    counts = Counter(partition_of(f"host{n}.example", 64) for n in range(64_000))
    assert set(counts) == set(range(64))
    assert 850 < min(counts.values()) <= max(counts.values()) < 1150  # 1,000 +- 4.7 standard deviations
