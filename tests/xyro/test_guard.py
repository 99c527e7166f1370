"""Addresses and ports: the deny list with all disguises (zoo 12-16), allowed networks, laboratories, own endpoints."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.guard import Guard, is_local_name
from xyro.wire.errors import InputError, TheirError
from xyro.wire.urls import canonical, host_of

DENIED = (
    *(
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
    ),
    *(
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
    ),
    *(
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.1.1.1",
    ),
    *(
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
    ),
    *(
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
    ),
    *(
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::",
        "2002:c0a8:101::1",
        "3fff::1",
    ),
    *(
        "5f00::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ),
)
PUBLIC = (
    *(
        "1.1.1.1",
        "8.8.8.8",
        "11.0.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "126.255.255.255",
        "128.0.0.1",
    ),
    *(
        "172.15.0.1",
        "172.32.0.1",
        "198.17.0.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001::1",
    ),
    *(
        "64:ff9b::808:808",
        "2002:808:808::1",
        "::ffff:8.8.8.8",
        "2001:4860:4860::8888",
    ),
)


def test_the_deny_list() -> None:
    guard = Guard()
    assert [address for address in DENIED if guard.verdict(address, 80) != "blocked-address"] == []
    assert [address for address in PUBLIC if guard.verdict(address, 443) != ""] == []


@given(st.ip_addresses(v=4))
def test_a_disguised_ipv4_is_judged_as_it_is(address: object) -> None:
    guard = Guard()
    number = int(address)  # type: ignore[call-overload]
    for disguise in (number | 0xFFFF << 32, number | 0x64FF9B << 96, 0x2002 << 112 | number << 80):
        assert guard.verdict(str(ipaddress.IPv6Address(disguise)), 80) == guard.verdict(str(address), 80)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://[::1]/",
        ),
        *("http://[::ffff:127.0.0.1]/", "http://①②⑦.0.0.1/", "http://127。0。0。1/", "http://0/", "http://localhost/"),
        *("http://a.localhost/", "http://LOCALHOST./", "http://[fe80::1]/", "http://169.254.169.254/latest/meta-data"),
    ],
)
def test_every_spelling_of_a_literal_is_refused_from_the_url_alone(url: str) -> None:
    """Zoo 13."""
    assert Guard().host_allowed(canonical(url)) == "blocked-address"
    assert Guard(only_net=["10.0.0.0/8"]).host_allowed(canonical(url)) in ("only-net", "blocked-address")


def test_ports() -> None:
    """Zoo 16."""
    guard = Guard(ports=[70])
    for port in (22, 25, 6379, 1, 7999, 9000, 65535):
        assert guard.verdict("1.1.1.1", port) == "blocked-port"
        assert guard.host_allowed(f"http://example.org:{port}/") == "blocked-port"
    for port in (80, 443, 8000, 8999, 70):
        assert guard.verdict("1.1.1.1", port) == ""
    assert [guard.host_allowed(url) for url in ("http://example.org/", "https://[2606:4700::1]/")] == ["", ""]


def test_a_private_network_can_be_allowed_without_closing_the_rest() -> None:
    guard = Guard(allow_private=["10.1.0.0/16", "fd00::/8"])
    assert [guard.verdict(address, 80) for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd01::1", "8.8.8.8")] == [""] * 4
    assert guard.verdict("10.2.0.1", 80) == "blocked-address"
    assert guard.verdict("10.1.2.3", 5000) == "blocked-port"


def test_only_net_allows_those_networks_and_nothing_else() -> None:
    guard = Guard(only_net=["127.0.0.0/8"])
    assert guard.only_net and guard.loopback_only and not guard.looks_up_names
    assert [guard.verdict("127.9.9.9", port) for port in (80, 1024, 65535)] == [""] * 3
    assert guard.verdict("127.0.0.1", 1023) == "blocked-port"
    for address in ("8.8.8.8", "10.0.0.1", "::1", "64:ff9b::7f00:1"):
        assert guard.verdict(address, 80) == "only-net"
    assert guard.verdict("::ffff:127.0.0.1", 80) == ""
    assert guard.verdict("0.0.0.0", 80) == "blocked-address"
    assert guard.host_allowed("http://localhost:9999/") == ""
    assert guard.host_allowed("http://example.org/") == "only-net"


def test_names_under_only_net_need_a_name_server_inside() -> None:
    for servers, allowed in ((["8.8.8.8"], ()), (["8.8.8.8", "127.0.0.53:5353"], ("127.0.0.53:5353",)), (["::1"], ())):
        guard = Guard(only_net=["127.0.0.0/8"], name_servers=servers)
        assert guard.name_servers == allowed
        assert guard.host_allowed("http://example.org:9000/") == ("" if allowed else "only-net")
    wide = Guard(only_net=["10.0.0.0/8"], name_servers=["10.0.0.53"])
    assert not wide.loopback_only
    assert wide.host_allowed("http://example.org:9000/") == "blocked-port"
    assert Guard(name_servers=["8.8.8.8"]).name_servers == ("8.8.8.8",)


def test_our_own_endpoints_are_never_contacted() -> None:
    guard = Guard(only_net=["127.0.0.0/8", "::1"], denied_endpoints=[("127.0.0.1", 8600), ("", 8700)])
    assert guard.host_allowed("http://127.0.0.1:8601/") == ""
    guard.deny("::1", 8601)
    for url in ("http://127.0.0.1:8600/", "http://localhost:8600/", "http://127.5.5.5:8700/", "http://[::1]:8601/"):
        assert guard.host_allowed(url) == "blocked-address"
    assert guard.verdict("::ffff:127.0.0.1", 8600) == "blocked-address"
    assert guard.verdict("127.0.0.2", 8600) == ""
    assert Guard(denied_endpoints=[("0.0.0.0", 8600)]).verdict("8.8.8.8", 8600) == ""


def test_the_socket_factory_checks_the_address_really_connected_to() -> None:
    guard = Guard(only_net=["127.0.0.0/8"])
    info = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 8080))
    with guard.socket_factory(info) as made:
        assert not made.getblocking()
    for where in (("8.8.8.8", 80), ("127.0.0.1", 22)):
        with pytest.raises(TheirError) as caught:
            guard.socket_factory((*info[:4], where))
        assert caught.value.kind in ("only-net", "blocked-port")


def test_bad_settings_are_explained() -> None:
    for settings in ({"only_net": ["127.0.0.0/64"]}, {"allow_private": ["x"]}, {"ports": [0]}, {"ports": [70_000]}):
        with pytest.raises(InputError):
            Guard(**settings)  # type: ignore[arg-type]


def test_local_names() -> None:
    names = ["localhost", "localhost.", "a.b.localhost", "localhost.example.org", "notlocalhost"]
    assert [is_local_name(name) for name in names] == [True, True, True, False, False]
    assert host_of(canonical("http://LocalHost:80/")) == "localhost"
