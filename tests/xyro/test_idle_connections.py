"""Connections between two answers: which stay, for how long, and when nothing is sent on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from sys import intern
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from xyro.exchange import ClientLimits, IdleConnections, keep_alive

LIMITS = ClientLimits(idle=0.2, longest_idle=0.6, most_idle=4)


class Moments:
    """The loop of a test: `pass_on` lets time pass, and timers ring."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> SimpleNamespace:
        self._timers.append(timer := (self.now + seconds, call))
        return SimpleNamespace(cancel=lambda: self._timers.remove(timer))

    def pass_on(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and min(moment for moment, _ in self._timers) <= end:
            self._timers.remove(timer := min(self._timers, key=lambda one: one[0]))
            self.now = timer[0]
            timer[1]()
        self.now = end


class Idle(IdleConnections[str]):
    """Connections that are the names of their origins; `closed`: those that were closed here."""

    def __init__(self, limits: ClientLimits = LIMITS) -> None:
        self.closed: list[str] = []
        self.moments = Moments()
        self.pass_on = self.moments.pass_on
        super().__init__(limits, self.closed.append, self.moments)  # type: ignore[arg-type]

    def fill(self, *hosts: str) -> None:
        for host in hosts:
            self.add(f"https://{host}", intern(f"https://{host}"))


def test_of_too_many_the_one_whose_host_is_read_last_is_closed() -> None:
    idle = Idle()
    idle.fill("a", "b", "c", "d")
    for host, seconds in (("a", 0.1), ("b", 0.5), ("c", 0.2), ("d", 0.3)):
        idle.expect(host, seconds)
    idle.fill("e")
    assert idle.closed == ["https://b"] and len(idle) == 4
    idle.fill("f")  # of e nobody has said yet when it is read again: its page may be in our hands
    assert idle.closed == ["https://b", "https://d"]
    idle.expect("f", math.inf)
    idle.fill("g")
    assert idle.closed[2:] == ["https://f"]
    idle.close()


def test_hosts_in_turn_keep_as_many_connections_as_there_is_room_for() -> None:
    """40 hosts in turn and room for 32: those closed last would each time be those needed next."""
    idle, hits = Idle(ClientLimits(idle=60.0, most_idle=32)), 0
    for number in range(4_000):
        host = f"h{number % 40}"
        hits += idle.take(f"https://{host}") is not None
        idle.fill(host)
        idle.expect(host, 40.0)
        idle.pass_on(1.0)
    assert hits / 4_000 == pytest.approx(31 / 39, abs=0.08)  # what Belady's rule gives, which knows the future
    idle.close()


def test_one_that_is_awaited_is_kept_for_longer() -> None:
    idle = Idle()
    idle.fill("soon", "later", "unknown", "paused")
    idle.expect("soon", 0.4)
    idle.expect("later", 1.0)
    idle.expect("paused", math.inf)
    idle.pass_on(0.3)
    assert sorted(idle.closed) == ["https://later", "https://paused", "https://unknown"]
    idle.pass_on(0.5)
    assert idle.closed[3:] == ["https://soon"]


@pytest.mark.parametrize("shown", [False, True])
def test_nothing_is_sent_while_the_server_may_be_closing_it(shown: bool) -> None:
    idle = Idle(replace(LIMITS, idle=60.0))
    if shown:
        idle.fill("a")
        idle.pass_on(0.2)
        idle.lose("https://a", intern("https://a"))
    else:
        idle.note_patience("https://a", 0.2)
    for wait, usable in ((0.05, True), (0.19, False), (0.35, True)):
        idle.fill("a")
        idle.pass_on(wait)
        assert (idle.take("https://a") is not None) is usable
    assert idle.closed == ["https://a"]
    idle.close()


def test_one_that_its_server_closes_before_the_next_read_is_the_first_to_go() -> None:
    idle = Idle()
    idle.fill("a", "b", "c", "d")
    idle.note_patience("https://c", 0.2)
    for host, seconds in (("a", 0.1), ("b", 0.5), ("c", 0.4), ("d", 0.3)):
        idle.expect(host, seconds)
    idle.fill("e")
    assert idle.closed == ["https://c"]
    idle.close()


def test_a_connection_that_was_taken_is_nobodys_loss() -> None:
    idle = Idle()
    idle.fill("a")
    assert idle.take("https://a") == "https://a" and idle.take("https://a") is None
    idle.lose("https://a", intern("https://a"))
    idle.fill("a")
    assert idle.take("https://a") == "https://a"
    idle.close()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("timeout=5, max=100", 5.0),
        ("max=100, Timeout = 15", 15.0),
        ("timeout=0", 0.0),
        ("", 0.0),
        ("timeout=-3", 0.0),
        ("xtimeout=3", 0.0),
        ("timeout=99999999999999999999", 0.0),
        ("timeout=\u0665", 0.0),
    ],
)
def test_keep_alive(header: str, seconds: float) -> None:
    assert keep_alive(header) == seconds
