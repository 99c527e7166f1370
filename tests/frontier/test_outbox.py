"""Outbox and inbox: transfers numbered without gaps, applied once, sent again until acknowledged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.frontier.rig import Crawl, in_memory_partition, report, url
from xyro.configs.schema import ClusterSettings as ClusterSettings
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.frontier import outbox as module
from xyro.metadata import rows
from xyro.metadata.hosts import PRICE
from xyro.metadata.states import State
from xyro.opic.cash import UNIT
from xyro.wire.codec import decode, encode
from xyro.wire.errors import MachineError
from xyro.wire.messages import Ack, CashTransfer, Passing, Submit
from xyro.wire.urls import host_of, site_of

ANY = Settings(crawl=CrawlSettings(scope="any"))


def begun(partitions=2):
    """Two partitions, the first URL read by neither."""
    crawl = Crawl.in_memory(partitions, settings=ANY)
    seed = elsewhere(crawl, 0)
    crawl.submit(seed)
    crawl.turn()
    return crawl, crawl.order(seed)


def elsewhere(crawl, q, page=0):
    """A URL of partition q."""
    return next(url(host, page) for host in range(200) if crawl.owner(url(host, page)) == q)


def stored(crawl, q=0):
    return [decode(value) for _, value in crawl.frontiers[q].partition.store.scan(rows.OUTBOX.prefix)]


def sent(crawl):
    return [message for message in crawl.wire if isinstance(message, CashTransfer)]


def acks(crawl):
    return [message for message in crawl.wire if isinstance(message, Ack)]


def test_children_elsewhere_leave_with_their_cash_and_their_depth():
    crawl, order = begun()
    here, there = elsewhere(crawl, 0, 3), elsewhere(crawl, 1, 3)
    crawl.answer(order, [here, there])
    before = crawl.frontier.ledger.effective(slice(0, 1))[0]
    crawl.turn(0)
    (transfer,) = sent(crawl)
    (item,) = transfer.items
    assert (transfer.source, transfer.target, transfer.seq) == (0, 1, 1)
    assert (item.url, item.depth) == (there, 1) and 0 < item.cash < before
    assert stored(crawl) == [transfer] and crawl.frontier.outbox.in_flight == item.cash + transfer.virtual
    assert (transfer.spent, transfer.pages) == (crawl.frontier.ledger.spent, 2)


def test_the_receiver_applies_stores_and_acknowledges():
    crawl, order = begun()
    there = elsewhere(crawl, 1, 3)
    crawl.answer(order, [there])
    crawl.turn(0)
    (transfer,) = sent(crawl)
    crawl.deliver(crawl.wire.index(transfer))
    crawl.turn(1)
    frontier, page = crawl.page(there)
    assert frontier.columns["cash"][page] + frontier.ledger.virtual.scalar >= transfer.items[0].cash
    assert (crawl.state(there), crawl.depth(there)) == (State.UNREAD, 1)
    assert acks(crawl) == [Ack(1, 0, 1)]
    assert frontier.partition.get(rows.INBOX.key(0)) == (1).to_bytes(8, "big")


def test_an_ack_trims_the_outbox_once_it_is_written():
    crawl, order = begun()
    crawl.answer(order, [elsewhere(crawl, 1, 3)])
    crawl.turn(0)
    crawl.deliver_all()
    crawl.turn(1)
    for ack in acks(crawl):
        crawl.pending[0].append(ack)
    crawl.turn(0)
    assert not [one for one in stored(crawl) if one.seq == 1]
    assert not [seq for seq, *_ in crawl.frontier.outbox.unacknowledged.get(1, ()) if seq == 1]
    crawl.pending[0].append(Ack(1, 0, 1))
    crawl.turn(0)  # once more: nothing to trim


def test_what_was_applied_is_acknowledged_again_but_not_applied_again():
    crawl, order = begun()
    crawl.answer(order, [elsewhere(crawl, 1, 3)])
    crawl.turn(0)
    (transfer,) = sent(crawl)
    crawl.wire = []
    for _ in range(3):
        crawl.pending[1] += [transfer, transfer]
        crawl.turn(1)
    assert acks(crawl) == [Ack(1, 0, 1)] * 3  # one of each group, for all transfers of one source
    there, wanted = crawl.cash()
    assert there == wanted and crawl.frontiers[1].ledger.known_pages == 1


def test_a_number_too_early_is_not_applied_and_the_missing_one_is_asked_for():
    crawl, _ = begun()
    crawl.pending[1].append(CashTransfer(0, 1, 2, (Passing(elsewhere(crawl, 1), 5),)))
    crawl.turn(1)
    assert acks(crawl) == [Ack(1, 0, 0)] and crawl.frontiers[1].ledger.known_pages == 0
    crawl.pending[1].append(CashTransfer(0, 1, 1, (Passing(elsewhere(crawl, 1, 1), 5),)))
    crawl.turn(1)
    assert acks(crawl)[1:] == [Ack(1, 0, 2)] and crawl.frontiers[1].ledger.known_pages == 2


def test_one_ack_of_a_group_says_what_all_its_transfers_came_to():
    crawl, _ = begun(3)
    parcels = [Passing(elsewhere(crawl, 1, page), 5) for page in range(3)]
    for number in (1, 3, 2):
        crawl.pending[1].append(CashTransfer(0, 1, number, (parcels[number - 1],)))
    crawl.pending[1].append(CashTransfer(2, 1, 2, (Passing(elsewhere(crawl, 1, 4), 5),)))
    crawl.turn(1)
    assert sorted(acks(crawl), key=lambda ack: ack.target) == [Ack(1, 0, 3), Ack(1, 2, 0)]
    assert crawl.frontiers[1].ledger.known_pages == 3


def lost(crawl, order, count=1):
    """Transfers of partition 0 to 1 that never arrive."""
    crawl.answer(order, [elsewhere(crawl, 1, 3)])
    crawl.turn(0)
    found = sent(crawl)
    crawl.wire = []
    return found


def test_what_is_not_acknowledged_in_time_is_sent_again_ever_more_seldom():
    crawl, order = begun()
    transfers = lost(crawl, order)
    outbox, times = crawl.frontier.outbox, []
    while len(times) < 7:
        at = outbox.next_time()
        crawl.now = at - 0.01
        crawl.turn(0)
        assert sent(crawl) == []
        crawl.now += 0.02
        crawl.turn(0)
        assert sent(crawl) == transfers
        crawl.wire = []
        times.append(at)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == pytest.approx([4, 8, 16, 30, 30, 30], abs=0.2)


def test_an_answer_to_a_gap_brings_the_missing_transfer_at_once_but_not_for_each_answer():
    crawl, order = begun()
    transfers = lost(crawl, order)
    crawl.now += 0.2
    crawl.pending[0] += [Ack(1, 0, 0)] * 3
    crawl.turn(0)
    assert sent(crawl) == transfers
    crawl.wire = []
    crawl.pending[0] += [Ack(1, 0, 0)] * 3
    crawl.turn(0)
    assert sent(crawl) == []


def test_nothing_is_sent_again_once_it_is_acknowledged():
    crawl, order = begun()
    (transfer,) = lost(crawl, order)
    crawl.pending[0].append(Ack(1, 0, transfer.seq))
    crawl.turn(0)
    assert crawl.frontier.outbox.next_time() == float("inf")
    crawl.now += 1_000
    crawl.turn(0)
    assert [again for again in sent(crawl) if again.seq == transfer.seq] == []


def test_many_children_go_in_several_transfers(monkeypatch):
    monkeypatch.setattr(module, "MOST_ITEMS", 4)
    crawl, order = begun()
    children = [elsewhere(crawl, 1, page) for page in range(1, 11)]
    crawl.answer(order, children)
    crawl.turn(0)
    transfers = sent(crawl)
    assert [len(one.items) for one in transfers] == [4, 4, 2]
    assert [one.seq for one in transfers] == [1, 2, 3] and not any(one.virtual for one in transfers[1:])
    assert [item.url for one in transfers for item in one.items] == children
    crawl.deliver_all()
    crawl.turn(1)
    assert crawl.frontiers[1].ledger.known_pages == 10 and crawl.cash()[0] == crawl.cash()[1]


def test_news_of_a_page_travel_without_cash():
    """A redirect of a page without cash still makes its target known."""
    crawl, order = begun()
    crawl.frontier.columns["cash"][0] = -crawl.frontier.ledger.virtual.scalar
    crawl.answer(order, status=301, signature=b"", location=elsewhere(crawl, 1, 3))
    crawl.turn(0)
    assert [item.cash for one in sent(crawl) for item in one.items] == [0]
    crawl.deliver_all()
    crawl.turn(1)
    assert crawl.state(elsewhere(crawl, 1, 3)) is State.UNREAD


# The virtual page


def test_the_virtual_page_is_shared_out_by_partition_0_in_proportion_to_pages():
    crawl, order = begun(2)
    crawl.answer(order, [elsewhere(crawl, 1, page) for page in range(1, 10)])
    zero, one = crawl.frontiers
    one.partition.standing.of_hosts(1)[:] = 1000  # all of its pages may be out at once
    one.partition.hosts.note_gap(0, 0.0)

    def settle():
        for _ in range(12):
            crawl.turn()
            crawl.deliver_all()
        return np.array([zero.ledger.virtual.scalar, one.ledger.virtual.scalar])

    before = settle()
    assert (zero.ledger.known_pages, one.ledger.known_pages) == (1, 9)
    assert (zero.ledger.known_everywhere, one.ledger.known_everywhere) == (10, 10)
    for order in list(crawl.orders.values()):
        crawl.answer(order)  # no links: all they have goes to the virtual page
    paid = settle() - before
    assert paid.min() > UNIT / 2 and abs(paid[0] - paid[1]) < UNIT / 1000, "every page gets the same"
    assert one.ledger.virtual.pot == 0, "its income goes to partition 0"
    assert crawl.cash() == (10 * UNIT, 10 * UNIT)


def test_a_crawl_at_rest_sends_nothing():
    crawl, order = begun(3)
    crawl.answer(order, [url(host, 1) for host in range(9)])
    crawl.run(lambda order: report(order, crawl.now, [url(k, k) for k in range(6)]))
    crawl.turn()
    assert crawl.wire == [] and not any(frontier.outbox.unacknowledged for frontier in crawl.frontiers)


# Restart


def test_everything_not_acknowledged_is_sent_again_after_a_restart():
    crawl, order = begun()
    crawl.answer(order, [elsewhere(crawl, 1, 3)])
    crawl.turn(0)
    wanted, again = sent(crawl), Crawl([_reborn(frontier.partition) for frontier in crawl.frontiers], ANY)
    assert again.wire == wanted
    assert again.frontier.outbox.in_flight == crawl.frontier.outbox.in_flight
    again.deliver_all()
    again.turn(1)
    again.deliver_all()
    again.turn(0)
    assert again.frontiers[1].outbox.applied[0] >= 1 and again.cash()[0] == again.cash()[1]
    assert all(one.seq > 1 for one in stored(again)), "numbers go on where they stopped"


def test_what_was_heard_before_there_were_classes_counts_each_page_once():
    crawl, _ = begun(3)
    outbox = crawl.frontier.outbox
    outbox.load({"sent": [(1, 4)], "heard": [(1, 500, 20), (2, 600, 30, 90)]})
    assert outbox.elsewhere == {1: (500, 20, 20), 2: (600, 30, 90)}
    assert outbox.dump()["heard"] == [(1, 500, 20, 20), (2, 600, 30, 90)]
    crawl.pending[0].append(CashTransfer(1, 0, 1, virtual=0, spent=700, pages=25))
    crawl.turn(0)
    assert outbox.elsewhere[1] == (700, 25, 25), "a transfer of an older outbox"


def test_acks_trim_what_they_name_whatever_waits_behind(monkeypatch):
    monkeypatch.setattr(module, "MOST_ITEMS", 2)
    crawl, order = begun()
    crawl.answer(order, [elsewhere(crawl, 1, page) for page in range(1, 9)])
    crawl.turn(0)
    transfers, outbox = sent(crawl), crawl.frontier.outbox
    assert [seq for seq, *_ in outbox.unacknowledged[1]] == [1, 2, 3, 4]
    for seq, left in ((2, [3, 4]), (1, [3, 4]), (3, [4]), (9, [])):
        crawl.pending[0].append(Ack(1, 0, seq))
        crawl.turn(0)
        assert [one.seq for one in stored(crawl)] == left
        assert outbox.in_flight == sum(
            one.virtual + sum(item.cash for item in one.items) for one in transfers if one.seq in left
        )
    assert not outbox.unacknowledged


def test_one_partition_has_no_outbox_to_store():
    crawl = Crawl.in_memory(1, settings=ANY)
    assert "post" not in crawl.frontier.dump()
    paid = crawl.frontier.ledger.virtual.scalar
    crawl.submit(url(0))
    crawl.turn()
    assert crawl.frontier.ledger.virtual.scalar > paid, "the virtual page pays all the same"


def test_something_else_in_the_outbox_is_damage():
    crawl, _ = begun()
    store = crawl.frontier.partition.store
    batch = store.batch()
    batch.put(rows.OUTBOX.key(1, 1), encode(Submit((url(0),))))
    store.write(batch)
    with pytest.raises(MachineError, match="the outbox holds a Submit"):
        crawl.frontier.outbox.recover()


def _reborn(partition):
    return in_memory_partition(partition.store, partition.number, partition.facts["partitions"])


def test_cash_on_foreign_entries_does_not_outlive_the_group():
    crawl, order = begun(2)
    crawl.answer(order, [url(host, 1) for host in range(9)])
    crawl.turn()
    for frontier in crawl.frontiers:
        n = frontier.columns.n
        assert not frontier.columns["cash"][:n][frontier.columns["state"][:n] == State.FOREIGN].any()
        assert np.isin(frontier.columns["state"][:n], [State.FOREIGN]).sum() == frontier.ledger.foreign


def test_a_full_outbox_keeps_new_pages_unread_and_loses_nothing():
    limit = 4_096
    crawl = Crawl.in_memory(
        2, settings=Settings(crawl=CrawlSettings(scope="any"), cluster=ClusterSettings(outbox=limit))
    )
    seed, outbox = elsewhere(crawl, 0), crawl.frontier.outbox
    crawl.submit(seed)
    known, page = {seed}, itertools.count(1)
    for _ in range(40):
        crawl.turn(0)
        for order in list(crawl.orders.values()):
            links = [elsewhere(crawl, q, next(page)) for q in (0, *([1] * 20))]
            known.update(links)
            crawl.answer(order, links)
    assert outbox.is_full and limit <= outbox.bytes == sum(len(encode(each)) for each in stored(crawl)) < 2 * limit
    assert crawl.frontier.scheduler.unread and not crawl.orders, "nothing new is read"
    crawl.submit(seed)
    crawl.turn(0)
    assert [order.url for order in crawl.orders.values()] == [seed], "what is known is read again"
    crawl.answer(crawl.order(seed))
    crawl.turn(0)
    assert outbox.bytes < 2 * limit, "cash stays where it is"
    assert crawl.audit()["ok"], crawl.audit()["violations"]
    for _ in range(20):
        crawl.deliver_all()
        crawl.turn(0), crawl.turn(1)
    assert not outbox.is_full and not outbox.bytes
    there = {one for one in known if crawl.owner(one) == 1}
    assert there and all(crawl.state(one) is not None for one in there)
    assert outbox.partition.get(module.HELD_FROM) is None
    audit = crawl.audit()
    assert audit["ok"], audit["violations"]


def test_transfers_of_a_turn_are_applied_at_once_as_one_after_the_other():
    crawl = Crawl.in_memory(3, settings=ANY)
    first, second = elsewhere(crawl, 0, 1), elsewhere(crawl, 0, 2)
    crawl.pending[0] += [
        CashTransfer(1, 0, 2, (Passing(second, 7, 4),)),
        CashTransfer(2, 0, 1, (Passing(first, 5, 3, PRICE + 30), Passing(second, 3, 2))),
        CashTransfer(1, 0, 1, (Passing(first, 11, 2, PRICE + 4),)),
    ]
    crawl.turn(0)
    cash = []
    for wanted, depth in ((first, 2), (second, 2)):
        frontier, page = crawl.page(wanted)
        assert crawl.depth(wanted) == depth
        cash.append(int(frontier.ledger.effective(slice(page, page + 1))[0]))
    assert [units % UNIT for units in cash] == [16, 10], "and what the virtual page paid"
    assert {(ack.target, ack.seq) for ack in acks(crawl)} == {(1, 2), (2, 1)}
    domain = site_of(host_of(first))
    assert crawl.frontier.partition.introductions.state(domain)[0] == 30 + PRICE + 4, "a new host costs one price"


def test_no_domain_is_looked_up_for_hosts_that_are_not_read():
    crawl = Crawl.in_memory(2, settings=Settings(crawl=CrawlSettings(scope="host")))
    crawl.pending[0].append(CashTransfer(1, 0, 1, (Passing(elsewhere(crawl, 0), 5),)))
    crawl.turn(0)
    assert crawl.frontier.ledger.known_pages == 1 and not crawl.frontier.partition.introductions.numbers
