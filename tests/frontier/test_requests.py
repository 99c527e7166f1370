"""Wanted pages and leases alone: what is stored of them, who comes first, what a restart finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.rig import in_memory_partition, url
from xyro.frontier.leases import Leases
from xyro.frontier.requests import Requests
from xyro.metadata import rows
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import LEASED, WANTED, State
from xyro.metadata.store import MemoryStore
from xyro.wire.messages import Priority, Submit
from xyro.wire.urls import authority

STATES = [State.UNREAD, State.READ, State.OUT, State.BLOCKED, State.FOREIGN]
UNREAD, READ, OUT, BLOCKED, FOREIGN = range(5)
"""pages, by the state they are in"""


def partition_of_states():
    partition = in_memory_partition(MemoryStore(), 0, 2)
    partition.begin()
    urls = [url(page, page) for page in range(len(STATES))]
    partition.mint(urls, [partition.host(authority(one)) for one in urls], STATES, [0] * len(urls), 0)
    return partition


def popped(wanted):
    found = []
    while (one := wanted.pop()) is not None:
        found.append(one)
    return found


def stored(partition):
    return {rows.WANTED.split(key) for key, _ in partition.scan(rows.WANTED.prefix)}


def written(partition):
    """The open group reaches the store; another begins."""
    commit = partition.seal({})
    partition.write(commit)
    partition.written(commit)
    partition.begin()


@pytest.mark.parametrize(
    ("priority", "own"), [(Priority.ORDERED, [UNREAD, READ]), (Priority.BLOCKING, [UNREAD, READ, OUT])]
)
def test_what_may_be_ordered_is_queued_and_what_is_foreign_goes_elsewhere(priority, own):
    wanted = Requests(partition_of_states())
    wanted.order(range(5), priority)
    assert len(wanted) == len(own) and popped(wanted) == [(page, priority) for page in own] and not wanted
    assert wanted.take_elsewhere() == [Submit((url(FOREIGN, FOREIGN),), priority, seed=False)]
    assert wanted.take_elsewhere() == []


def test_blocking_ones_come_first_whenever_they_were_ordered():
    wanted = Requests(partition_of_states())
    wanted.order([READ], Priority.ORDERED)
    wanted.order([UNREAD], Priority.BLOCKING)
    assert popped(wanted) == [(UNREAD, Priority.BLOCKING), (READ, Priority.ORDERED)]


def test_a_part_that_many_documents_need_is_asked_for_once_until_it_is_settled():
    wanted = Requests(partition_of_states())
    for _ in range(3):
        wanted.order([READ, FOREIGN], Priority.BLOCKING)
    assert len(wanted) == 1 and len(wanted.take_elsewhere()) == 1
    wanted.order([READ, FOREIGN], Priority.BLOCKING)
    assert len(wanted) == 1, "still out"
    assert len(wanted.take_elsewhere()) == 1, "another turn asks again: the message may have been lost with a process"
    wanted.release(READ)
    wanted.order([READ], Priority.BLOCKING)
    assert len(wanted) == 2


DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["order", "keep", "release", "pop"]),
        st.integers(0, 3),
        st.sampled_from([Priority.BLOCKING, Priority.ORDERED]),
    ),
    max_size=30,
)


@given(DEEDS)
def test_a_restart_finds_what_was_wanted_and_not_released(deeds):
    partition = partition_of_states()
    wanted, expected = Requests(partition), set()
    for deed, page, priority in deeds:
        match deed:
            case "order":
                wanted.order([page], priority)
                expected |= (
                    {page} if page in (UNREAD, READ) or (page == OUT and priority is Priority.BLOCKING) else set()
                )
            case "keep":
                wanted.keep(page, priority)
                expected.add(page)
            case "release":
                wanted.release(page)
                expected.discard(page)
            case "pop":
                wanted.pop()
    written(partition)
    assert stored(partition) == expected
    assert {page for page in range(5) if partition.flags[page] & WANTED} == expected
    again = Requests(partition)
    again.recover()
    assert sorted(page for page, _ in popped(again)) == sorted(expected)


def test_what_was_put_aside_comes_back_at_its_own_priority():
    partition = partition_of_states()
    wanted = Requests(partition)
    wanted.order([UNREAD], Priority.BLOCKING)
    wanted.order([READ], Priority.ORDERED)
    before = popped(wanted)
    wanted.again(READ)
    wanted.again(UNREAD)
    assert popped(wanted) == before


# Leases


def test_a_lease_knows_its_own_order_and_no_other():
    partition = partition_of_states()
    leases = Leases(partition, whole=False)
    first = leases.order(READ, Priority.REFRESH, None, 0.0, 0.0)
    assert leases.is_out(READ, first.epoch) and READ in leases and len(leases) == 1
    assert not leases.is_out(READ, first.epoch + 1) and not leases.is_out(UNREAD, first.epoch)
    assert partition.flags[READ] & LEASED
    assert leases.settle(READ)[1] is None and not leases and not partition.flags[READ] & LEASED
    assert leases.order(READ, Priority.REFRESH, None, 0.0, 0.0).epoch > first.epoch


def test_orders_of_an_earlier_process_are_never_taken_for_those_of_this_one():
    earlier, later = Leases(partition_of_states(), False), Leases(partition_of_states(), False)
    later.boot = earlier.boot + 1
    old = [earlier.order(page, Priority.REFRESH, None, 0.0, 0.0).epoch for page in range(5)]
    new = [later.order(page, Priority.REFRESH, None, 0.0, 0.0).epoch for page in range(5)]
    assert max(old) < min(new)


@pytest.mark.parametrize(
    ("whole", "priority", "sent"),
    [
        (False, Priority.REFRESH, "tag"),
        (False, Priority.ORDERED, "tag"),
        (False, Priority.BLOCKING, ""),
        (True, Priority.REFRESH, ""),
    ],
)
def test_an_order_asks_for_the_whole_page_where_nothing_stored_can_stand_for_it(whole, priority, sent):
    leases = Leases(partition_of_states(), whole)
    row = RefreshRow(etag="tag", last_modified="tag", signature=b"s" * 16, failures=3)
    order = leases.order(READ, priority, row, 7.0, 0.0)
    assert (order.etag, order.last_modified, order.attempt) == (sent, sent, 3)
    assert order.deadline == 7.0 and not order.raised


def test_a_raised_order_is_the_same_order():
    leases = Leases(partition_of_states(), False)
    out = leases.order(READ, Priority.REFRESH, None, 0.0, 3.0)
    raised = leases.raised(READ, Priority.ORDERED, 9.0, 5.0)
    assert raised.raised and (raised.page, raised.epoch) == (out.page, out.epoch)
    assert (raised.priority, raised.deadline, len(leases)) == (Priority.ORDERED, 9.0, 1)
    lease, _ = leases.settle(READ)
    assert (lease.priority, lease.since) == (Priority.ORDERED, 5.0), "it waits at its new level since then"


def test_a_raise_to_a_lower_level_changes_nothing():
    leases = Leases(partition_of_states(), False)
    leases.order(READ, Priority.BLOCKING, None, 0.0, 3.0)
    assert leases.raised(READ, Priority.ORDERED, 9.0, 5.0).priority is Priority.BLOCKING
    assert leases.settle(READ)[0].since == 3.0
