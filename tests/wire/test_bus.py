"""The bus: first in first out, each message once, bounded, and nobody is left asleep. Runs for each form of the bus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.wire import topics
from xyro.wire.bus import Bus, EncodingBus, LocalBus
from xyro.wire.errors import MachineError
from xyro.wire.messages import Ack

MakeBus = Callable[[Mapping[str, int] | None], Bus]


@pytest.fixture(params=[LocalBus, EncodingBus])
def make_bus(request: pytest.FixtureRequest) -> MakeBus:
    return request.param  # type: ignore[no-any-return]


def ack(seq: int) -> Ack:
    return Ack(0, 1, seq)


def seqs(messages: list) -> list[int]:
    return [message.seq for message in messages]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_receives_in_order_and_at_most_as_many_as_asked(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    for seq in range(10):
        bus.post("reports", ack(seq))
    assert bus.waiting("reports") == 10
    assert seqs(await bus.receive("reports", 4)) == [0, 1, 2, 3]
    assert seqs(await bus.receive("reports", 6)) == [4, 5, 6, 7, 8, 9]
    assert bus.waiting("reports") == 0


async def test_topics_are_apart(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    bus.post("cash.0", ack(1))
    bus.post("cash.1", ack(2))
    assert seqs(await bus.receive("cash.1", 10)) == [2]
    assert bus.waiting("cash.0") == 1
    assert bus.waiting("never used") == 0


async def test_receive_waits_for_the_first_message_only(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    task = asyncio.create_task(bus.receive("orders", 10))
    await settle()
    assert not task.done()
    bus.post("orders", ack(1))
    assert seqs(await task) == [1]


async def test_receivers_take_turns(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    tasks = [asyncio.create_task(bus.receive("orders", 1)) for _ in range(3)]
    await settle()
    for seq in range(3):
        bus.post("orders", ack(seq))
    assert [seqs(got) for got in await asyncio.gather(*tasks)] == [[0], [1], [2]]


async def test_a_receiver_that_finds_nothing_left_waits_on(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    first, second = (asyncio.create_task(bus.receive("orders", 10)) for _ in range(2))
    await settle()
    bus.post("orders", ack(1))
    bus.post("orders", ack(2))
    await settle()
    assert seqs(first.result()) == [1, 2]
    assert not second.done()
    bus.post("orders", ack(3))
    assert seqs(await second) == [3]


async def test_a_cancelled_receiver_takes_nothing(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    task = asyncio.create_task(bus.receive("orders", 10))
    await settle()
    task.cancel()
    await settle()
    bus.post("orders", ack(1))
    assert task.cancelled()
    assert seqs(await bus.receive("orders", 10)) == [1]


async def test_cancelled_after_its_wake_up_it_hands_the_message_on(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    first, second = (asyncio.create_task(bus.receive("orders", 10)) for _ in range(2))
    await settle()
    bus.post("orders", ack(1))
    first.cancel()
    await settle()
    assert first.cancelled()
    assert seqs(second.result()) == [1]


async def test_a_topic_over_its_bound_is_the_systems_fault(make_bus: MakeBus) -> None:
    bus = make_bus({"orders": 2})
    bus.post("orders", ack(1))
    bus.post("orders", ack(2))
    with pytest.raises(MachineError, match=r"'orders' is over its bound of 2"):
        bus.post("orders", ack(3))
    assert seqs(await bus.receive("orders", 9)) == [1, 2]
    bus.post("orders", ack(4))
    assert bus.waiting("orders") == 1


async def test_a_bound_of_a_family_is_each_members_own(make_bus: MakeBus) -> None:
    bus = make_bus({"cash": 1, "cash.7": 2})
    for topic, bound in [("cash.0", 1), ("cash.1", 1), ("cash.7", 2)]:
        for seq in range(bound):
            bus.post(topic, ack(seq))
        with pytest.raises(MachineError):
            bus.post(topic, ack(9))


async def test_every_topic_has_a_bound() -> None:
    bus = LocalBus()
    message = ack(1)
    for _ in range(topics.LEASED):
        bus.post("surprise", message)
    with pytest.raises(MachineError):
        bus.post("surprise", message)


async def test_close_wakes_everyone_with_nothing(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    tasks = [asyncio.create_task(bus.receive(topic, 1)) for topic in ("orders", "orders", "xml")]
    await settle()
    await bus.close()
    await bus.close()
    assert await asyncio.gather(*tasks) == [[], [], []]
    assert await bus.receive("orders", 1) == []
    with pytest.raises(MachineError, match="closed"):
        bus.post("orders", ack(1))


async def test_what_waits_at_close_is_counted_not_given_out(make_bus: MakeBus) -> None:
    bus = make_bus(None)
    bus.post("reports", ack(1))
    await bus.close()
    assert await bus.receive("reports", 1) == []
    assert bus.waiting("reports") == 1


@pytest.mark.parametrize("most", [0, -1])
async def test_asks_for_at_least_one(make_bus: MakeBus, most: int) -> None:
    bus = make_bus(None)
    bus.post("orders", ack(1))
    with pytest.raises(ValueError, match="at least one"):
        await bus.receive("orders", most)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=8),
    st.lists(st.one_of(st.just("yield"), st.integers(0, 7).map(lambda n: f"cancel {n}"), st.just("post")), max_size=60),
)
def test_each_message_once_whatever_is_cancelled(appetites: list[int], script: list[str]) -> None:
    """Workers receive and are cancelled at any moment; what was posted is received exactly once or still waits."""

    async def run() -> None:
        bus, got = LocalBus(), []

        async def work(most: int) -> None:
            while True:
                batch = seqs(await bus.receive("orders", most))
                assert 1 <= len(batch) <= most
                got.extend(batch)

        workers = [asyncio.create_task(work(most)) for most in appetites]
        posted = 0
        for step in script:
            if step == "post":
                bus.post("orders", ack(posted))
                posted += 1
            elif step == "yield":
                await asyncio.sleep(0)
            else:
                workers[int(step.split()[1]) % len(workers)].cancel()
        await settle()
        left = seqs(await bus.receive("orders", 1000)) if bus.waiting("orders") else []
        assert sorted(got + left) == list(range(posted))
        assert not left or all(worker.done() for worker in workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    asyncio.run(run())
