"""The simulation: what holds, what is found where it does not, and the machine that it all runs on."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import pytest

from xyro.frontier.outbox import Outbox
from xyro.frontier.waiting_links import WaitingLinks
from xyro.lab.simulate import cluster_lives, simulate_lab
from xyro.lab.simulate.cluster_faults import FAULTS, STEPS, full_in_moves
from xyro.lab.simulate.cluster_lives import simulate_cluster
from xyro.lab.simulate.disks import Disk, SimulatedStore, fast_folder
from xyro.lab.simulate.exchanges import PeerReply, PeerRequest, SiteRules
from xyro.lab.simulate.faults import CALLBACK, Crash, End, Faults
from xyro.lab.simulate.lives import SeedPlan, carry_out, simulate
from xyro.lab.simulate.virtual_loop import LATEST, Stall, VirtualLoop
from xyro.lab.simulate.witness import CrawlWitness, PromisedGaps
from xyro.opic.cash import UNIT
from xyro.service.node.partition_loop import PartitionLoop
from xyro.wire.errors import MachineError
from xyro.wire.ids import PageId
from xyro.wire.messages import Ack, CashTransfer, FetchOrder, Priority

HOST, ADDRESS = "127.0.0.1:8001", ("127.0.0.1", 8001)
PAGE, OTHER = f"http://{HOST}/a", f"http://{HOST}/b"
PROMISES = PromisedGaps(least_gap=1.0, factor=2.0, factor_cap=10.0, address_gap=0.5, grace=1.0)
SOUND = {"violations": [], "virtual": 0, "in_flight": 0}

# Seeds


@pytest.mark.parametrize("seed", [3, 5, 9, 112])
def test_a_seed_holds(seed: int) -> None:
    outcome = simulate(seed)
    assert outcome.violations == []
    assert outcome.requests and outcome.batches and outcome.reached["store.after"]


def test_a_seed_does_the_same_in_every_process() -> None:
    command = [sys.executable, "-m", "xyro.lab.simulate.simulate_lab", "--seed", "5", "--json"]
    traces = set()
    for salt in ("1", "2"):
        salted = {**os.environ, "PYTHONHASHSEED": salt}
        told = subprocess.run(command, env=salted, capture_output=True, check=True).stdout
        traces.add(json.loads(told)["digest"])
    assert len(traces) == 1


def test_a_full_disk_ends_a_life_by_its_own_error_and_costs_nothing_that_was_stored() -> None:
    """Views of a crawl whose newest pages have no rows on disk failed of that, and hid why it had ended."""
    outcome = carry_out(replace(SeedPlan.draw(43), ends=(End("full", "store.before", 1),)))
    assert outcome.violations == [] and outcome.lives[0] == "failed"


def test_a_commit_that_is_never_written_is_found_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate_lab.main(["--seed", "2"]) == 0
    monkeypatch.setattr(PartitionLoop, "_put", lambda self, commit: None)
    assert simulate_lab.main(["--seed", "2"]) == 1
    assert "MachineError" in capsys.readouterr().out


@pytest.mark.long
def test_links_that_wait_for_ever_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(SeedPlan.draw(23), ends=())
    assert plan.partitions > 1 and carry_out(plan).violations == []
    monkeypatch.setattr(WaitingLinks, "answered", lambda *_: None)
    assert [re.sub("[0-9]+", "N", each) for each in carry_out(plan).violations] == [
        "life N, N.N s: it does not end: N links and N pages wait, "
    ]


# The witness: each violation is planted, and must be found


@pytest.fixture
def witness() -> CrawlWitness:
    made = CrawlWitness(PROMISES, {ADDRESS}, "/nowhere")
    made.begin_life(1)
    return made


def ask(witness: CrawlWitness, path: str, at: float, *, took: float = 0.0, reply: PeerReply | None = None) -> None:
    """One request from begin to end."""
    witness.now = at
    number = witness.note_request(PeerRequest(HOST, path, {}), ADDRESS)
    witness.now = at + took
    witness.note_end(number, reply or PeerReply((), status=200))


def robots(witness: CrawlWitness, at: float, **rules: object) -> None:
    ask(witness, "/robots.txt", at, reply=PeerReply((), status=200, robots=SiteRules(f"http://{HOST}", **rules)))  # type: ignore[arg-type]


def row(url: str, **fields: object) -> dict[str, object]:
    return {"url": url, "reads": 0, "cash": UNIT, "out_links": None, **fields}


def test_a_sound_crawl_is_not_blamed(witness: CrawlWitness) -> None:
    robots(witness, 0.0)
    ask(witness, "/a", 1.0)
    ask(witness, "/a", 2.0)
    witness.note_accepted([OTHER])
    witness.now = 4.0
    witness.end_life(orderly=False)
    witness.judge([row(PAGE, reads=2, out_links=1), row(OTHER)], SOUND, {PAGE: [OTHER]})
    assert witness.violations == []


def test_a_gap_that_nobody_heard_of_is_not_asked_for_two_lives_later(witness: CrawlWitness) -> None:
    robots(witness, 0.0, delay=7.0)
    witness.end_life(orderly=False)
    witness.begin_life(2)
    witness.now = 3.0
    witness.end_life(orderly=False)
    witness.begin_life(3)
    robots(witness, 5.0, delay=7.0)
    witness.now = 5.5
    witness.end_life(orderly=False)
    witness.begin_life(4)
    assert witness.violations == []
    robots(witness, 11.0)
    assert "1.000 s too soon" in witness.violations[0]


def test_what_is_asked_of_a_host(witness: CrawlWitness) -> None:
    ask(witness, "/a", 0.0)
    robots(witness, 1.0, usable=False)
    ask(witness, "/a", 2.0)
    robots(witness, 3.0, disallowed=("/private/",), delay=5.0)
    ask(witness, "/private/a", 8.0)
    ask(witness, "/a", 12.0)
    found = [each.partition(": ")[2] for each in witness.violations]
    assert found == [
        f"{PAGE} was read before its robots.txt",
        f"{PAGE} was read while its robots.txt cannot be had",
        f"http://{HOST}/private/a was read, which robots.txt disallows",
        f"{PAGE}: {HOST} was read 4.000 s ago, 1.000 s too soon",
    ]


def test_gaps_after_slow_answers_and_retry_after(witness: CrawlWitness) -> None:
    robots(witness, 0.0)
    ask(witness, "/a", 1.0, took=2.0)
    ask(witness, "/a", 6.0)
    ask(witness, "/a", 7.0, reply=PeerReply((), status=429, wait=9.0))
    ask(witness, "/a", 15.0)
    found = [each.partition(": ")[2] for each in witness.violations]
    assert found == [
        f"{PAGE}: {HOST} was read 3.000 s ago, 1.000 s too soon",
        f"{PAGE}: {HOST} was read 8.000 s ago, 1.000 s too soon",
    ]


def test_a_gap_survives_a_restart_but_one_that_nobody_has_heard_of(witness: CrawlWitness) -> None:
    robots(witness, 0.0)
    ask(witness, "/a", 1.0, reply=PeerReply((), status=429, wait=30.0))
    witness.now = 2.5
    witness.end_life(orderly=False)
    witness.begin_life(2)
    robots(witness, 5.0)
    assert len(witness.violations) == 1
    ask(witness, "/a", 40.0, reply=PeerReply((), status=429, wait=30.0))
    witness.now = 40.05
    witness.end_life(orderly=False)
    witness.begin_life(3)
    robots(witness, 42.0)
    assert len(witness.violations) == 1


def test_two_reads_at_once_and_forbidden_addresses(witness: CrawlWitness) -> None:
    robots(witness, 0.0)
    witness.now = 1.0
    for _ in range(2):
        witness.note_request(PeerRequest(HOST, "/a", {}), ADDRESS)
    witness.note_contact(("10.0.0.1", 80))
    assert [each.rpartition(": ")[2] for each in witness.violations] == [
        f"{HOST} is being read already",
        "127.0.0.1 is being read already",
        "10.0.0.1 port 80 was contacted, which is forbidden",
    ]


@pytest.mark.parametrize(
    ("rows", "report", "sentence"),
    [
        ([row(PAGE, reads=1)], SOUND, f"{OTHER} was accepted and is not known"),
        ([row(OTHER)], SOUND, f"{PAGE} was read and is not known"),
        ([row(PAGE, reads=0), row(OTHER)], SOUND, f"{PAGE}: 0 reads are stored, 1 to 1 were made"),
        ([row(PAGE, reads=2), row(OTHER)], SOUND, f"{PAGE}: 2 reads are stored, 1 to 1 were made"),
        ([row(PAGE, reads=1, cash=7), row(OTHER)], SOUND, "2 pages are known (-65,529)"),
        ([row(PAGE, reads=1, out_links=1), row(OTHER)], SOUND, f"http://x/ is not known, to which {PAGE} links"),
        ([row(PAGE, reads=1), row(OTHER)], {**SOUND, "violations": ["a hole"]}, "audit: a hole"),
    ],
)
def test_what_is_stored_is_held_against_what_was_seen(
    witness: CrawlWitness, rows: list[dict[str, object]], report: dict[str, object], sentence: str
) -> None:
    robots(witness, 0.0)
    ask(witness, "/a", 1.0)
    witness.note_accepted([OTHER])
    witness.now = 9.0
    witness.end_life(orderly=False)
    witness.judge(rows, report, {PAGE: ["http://x/"]})
    assert [each for each in witness.violations if each.endswith(sentence)], witness.violations


def test_an_order_without_an_end(witness: CrawlWitness) -> None:
    witness.note_post("orders", FetchOrder(PageId(1), PAGE, Priority.SCOUT, 7))
    witness.check_orders()
    assert len(witness.violations) == 1


# The machine


def loop_of(jitter: float = 0.0, bound: int = 1000) -> VirtualLoop:
    return VirtualLoop(5.0, random.Random(1), jitter, lambda: 0.5, lambda now: None, bound)


def test_time_jumps_and_jobs_of_one_executor_follow_each_other() -> None:
    loop, seen = loop_of(), list[tuple[str, float]]()

    async def work() -> None:
        jobs = [loop.run_in_executor(None, lambda name=name: seen.append((name, loop.now))) for name in "ab"]
        await asyncio.sleep(3600)
        seen.append(("slept", loop.now))
        await asyncio.gather(*jobs)

    loop.run_until_complete(work())
    loop.close()
    assert [name for name, _ in seen] == ["a", "b", "slept"]
    assert 5.0 <= seen[0][1] <= 5.5 <= seen[1][1] <= 6.0 and seen[2][1] == pytest.approx(3605, abs=1e-5)


def test_a_late_timer_is_late_by_no_more_than_it_may() -> None:
    loop = loop_of(jitter=1.0)
    loop.run_until_complete(asyncio.sleep(1.0))
    loop.close()
    assert 6.0 < loop.now <= 6.0 + LATEST + 1e-5


def test_what_never_ends_is_a_stall() -> None:
    async def spin() -> None:
        while asyncio.get_running_loop().time() < 3600:
            await asyncio.gather(asyncio.sleep(0))

    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    for endless in (spin, wait):
        loop = loop_of()
        with pytest.raises(Stall):
            loop.run_until_complete(endless())
        loop.abandon()


def test_a_crash_in_the_very_last_callback_is_no_stall() -> None:
    """Seeds 606, 960 and 983 end a life so: nothing is ready, no timer runs, and the process is gone."""
    faults = Faults(End("crash", "post.pages", 1))

    def each_turn(_: float) -> None:
        faults.reach(CALLBACK)

    async def post() -> None:
        faults.reach("post.pages")

    async def live() -> None:
        posting = asyncio.create_task(post())
        await asyncio.get_running_loop().create_future()
        await posting

    loop = VirtualLoop(5.0, random.Random(1), 0.0, lambda: 0.5, each_turn)
    with pytest.raises(Crash):
        loop.run_until_complete(live())
    assert faults.is_dead
    loop.abandon()


def test_a_batch_on_its_way_is_there_whole_or_not_at_all(witness: CrawlWitness) -> None:
    found = set()
    for seed in range(20):
        with fast_folder() as folder:
            disk = Disk(folder, 1, random.Random(seed), witness)
            disk.faults = Faults(End("crash", "store.before", 1))
            store = SimulatedStore(disk, 0)
            batch = store.batch()
            batch.put(b"a", b"1")
            batch.put(b"b", b"2")
            with pytest.raises(Crash):
                store.write(batch)
            with pytest.raises(Crash):
                store.write(batch)
            found.add(len(list(disk.stores[0].scan(b""))))
    assert found == {0, 2}


def test_files_lose_what_was_not_synced(witness: CrawlWitness) -> None:
    sizes, names = set(), set()
    for seed in range(30):
        with fast_folder() as folder:
            disk = Disk(folder, 1, random.Random(seed), witness)
            inside = disk.folders[0]
            with disk.in_place():
                (inside / "half").write_bytes(b"12345678")
                with (inside / "whole.tmp").open("wb") as file:
                    file.write(b"12345678")
                    file.flush()
                    os.fsync(file.fileno())
            (inside / "whole.tmp").rename(inside / "whole.bin")
            disk.cut_power()
            sizes.add((inside / "half").stat().st_size)
            names |= {each.name for each in inside.iterdir() if each.name != "half"}
            assert next(each for each in inside.iterdir() if each.name != "half").read_bytes() == b"12345678"
    assert len(sizes) > 3 and names == {"whole.bin", "whole.tmp"}


def test_a_full_disk_refuses_from_its_moment_on(witness: CrawlWitness) -> None:
    with fast_folder() as folder:
        disk = Disk(folder, 1, random.Random(1), witness)
        disk.faults = Faults(End("full", "store.before", 2))
        store = SimulatedStore(disk, 0)
        store.write(store.batch())
        for _ in range(2):
            with pytest.raises(MachineError):
                store.write(store.batch())


def test_faults_count_steps() -> None:
    faults = Faults(End("stop", CALLBACK, 3))
    assert [faults.reach(CALLBACK) or faults.is_due for _ in range(4)] == [False, False, True, True]
    assert not faults.is_dead


# A cluster


@pytest.mark.long
def test_hours_of_a_cluster_hold() -> None:
    outcome = simulate_cluster(4, hours=2)
    assert outcome.violations == []
    assert outcome.faults and outcome.requests and outcome.accepted


@pytest.mark.long
@pytest.mark.parametrize("leaving", [True, False], ids=["leaves", "comes"])
@pytest.mark.parametrize("step", STEPS)
def test_a_disk_that_is_full_at_a_step_of_a_move_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, step: str, leaving: bool
) -> None:
    """One partition comes to the node at the same time, and one leaves it."""
    monkeypatch.setattr(
        cluster_lives, "FAULTS", {"full disk in moves": partial(full_in_moves, step=step, leaving=leaving)}
    )
    outcome = simulate_cluster(5, hours=2)
    assert outcome.violations == []
    assert any("full as a partition" in fault for fault in outcome.faults)


@pytest.mark.long
def test_a_transfer_that_is_applied_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some messages come twice over a lossy transport: without the numbers, so would their cash."""
    apply = Outbox.apply

    def applied_anew(outbox: Outbox, transfers: Iterable[CashTransfer]) -> list[Ack]:
        acks = []
        for transfer in transfers:
            outbox.applied[transfer.source] = min(outbox.applied[transfer.source], transfer.seq - 1)
            acks += apply(outbox, [transfer])
        return acks

    monkeypatch.setattr(Outbox, "apply", applied_anew)
    monkeypatch.setattr(cluster_lives, "FAULTS", {"lossy transport": FAULTS["lossy transport"]})
    assert any("cash" in violation for violation in simulate_cluster(4, hours=2).violations)
