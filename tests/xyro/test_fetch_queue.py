"""The queue: priorities, the gamma share, fairness, and a model that must agree with it step by step."""

from __future__ import annotations

import math
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.fetch_queue import FetchQueue
from xyro.wire.messages import FetchOrder, Priority

BLOCKING, ORDERED, REFRESH, DISCOVER, SCOUT = Priority


def order(page: int, priority: Priority = DISCOVER) -> FetchOrder:
    return FetchOrder(page, f"http://h/{page}", priority, epoch=1)


def drain(queue: FetchQueue, now: float = 0.0) -> list[tuple[str, FetchOrder]]:
    """Everything, each host free again at once."""
    out = []
    while (job := queue.pop(now)) is not None:
        out.append(job)
        queue.release(job[0], now)
    return out


def test_an_empty_queue() -> None:
    queue = FetchQueue()
    assert queue.pop(0.0) is None
    assert queue.wake_at() is None
    assert len(queue) == 0
    assert queue.counts() == (0, 0, 0, 0, 0)
    queue.release("nobody", 1.0)
    assert queue.drop("nobody") == []


def test_one_order_at_a_time_per_host() -> None:
    queue = FetchQueue()
    queue.put(order(1), "a")
    queue.put(order(2), "a")
    assert queue.pop(0.0) == ("a", order(1))
    assert queue.pop(1e9) is None
    assert queue.wake_at() is None
    queue.release("a", 5.0)
    assert queue.wake_at() == 5.0
    assert queue.pop(4.999) is None
    assert queue.pop(5.0) == ("a", order(2))


def test_blocking_then_ordered_go_before_everything() -> None:
    queue = FetchQueue()
    for page, priority in enumerate([SCOUT, DISCOVER, REFRESH, ORDERED, BLOCKING]):
        queue.put(order(page, priority), f"host{page}")
    assert [job[1].priority for job in drain(queue)][:2] == [BLOCKING, ORDERED]


def test_a_blocking_order_overtakes_hundreds_of_its_own_host() -> None:
    queue = FetchQueue()
    for page in range(500):
        queue.put(order(page, REFRESH if page % 2 else DISCOVER), "a")
    queue.put(order(1000, BLOCKING), "a")
    assert queue.pop(0.0) == ("a", order(1000, BLOCKING))


def test_a_blocking_order_overtakes_a_host_that_is_waiting_already() -> None:
    queue = FetchQueue()
    queue.put(order(1), "a")
    queue.put(order(2), "a")
    queue.pop(0.0)
    queue.release("a", 10.0)
    queue.put(order(3, BLOCKING), "a")
    assert queue.pop(10.0) == ("a", order(3, BLOCKING))


def test_a_scout_has_its_turn_among_the_orders_that_came_after_it() -> None:
    queue = FetchQueue()
    for page, priority in enumerate([DISCOVER, SCOUT, DISCOVER, DISCOVER]):
        queue.put(order(page, priority), "a")
    queue.put(order(9, DISCOVER), "b")
    assert [job[1].page for job in drain(queue) if job[0] == "a"] == [0, 1, 2, 3]
    assert queue.counts() == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("gamma", [0.0, 10.0, 33.3, 50.0, 75.0, 100.0])
@pytest.mark.parametrize("hosts", [1, 7])
def test_gamma_percent_go_to_discovery_also_within_a_single_host(gamma: float, hosts: int) -> None:
    queue = FetchQueue(gamma)
    for page in range(4_000):
        queue.put(order(page, REFRESH if page % 2 else SCOUT), f"h{page // 2 % hosts}")
    first = [job[1].priority for job in drain(queue)[:1_000]]
    assert first.count(SCOUT) == pytest.approx(10 * gamma, abs=hosts)


@pytest.mark.parametrize(("gamma", "only"), [(0.0, SCOUT), (0.0, DISCOVER), (100.0, REFRESH)])
def test_where_one_side_is_empty_the_other_takes_all(gamma: float, only: Priority) -> None:
    queue = FetchQueue(gamma)
    for page in range(10):
        queue.put(order(page, only), "a")
    assert len(drain(queue)) == 10


def test_what_one_side_could_not_use_is_not_owed_to_it_later() -> None:
    queue = FetchQueue(50.0)
    for page in range(1_000):
        queue.put(order(page, REFRESH), "a")
    drain(queue)
    for page in range(200):
        queue.put(order(page, REFRESH if page % 2 else DISCOVER), "a")
    assert Counter(job[1].priority for job in drain(queue)[:100])[DISCOVER] == pytest.approx(50, abs=1)


def some_with_both(queue: FetchQueue, turn: int) -> Counter[str]:
    """Orders of 60 hosts, of which ten have both kinds, the others one; whose discoveries and refreshes are popped?"""
    for host in range(60):
        for priority in (DISCOVER, REFRESH) if host < 10 else (DISCOVER,) if host < 50 else (REFRESH,):
            queue.put(order(1_000 * turn + host, priority), f"h{host}")
    read: Counter[str] = Counter()
    while job := queue.pop(float(turn)):
        read[f"{'both' if int(job[0][1:]) < 10 else 'one'} {job[1].priority.name}"] += 1
        queue.release(job[0], turn + 1.0)
    return read


def test_hosts_that_have_one_kind_take_nothing_from_those_that_have_both() -> None:
    queue, read = FetchQueue(20.0), Counter[str]()
    for turn in range(100):
        read += some_with_both(queue, turn)
        for host in range(10):
            queue.drop(f"h{host}")
    assert read["both DISCOVER"] == pytest.approx(200, abs=1) and read["both REFRESH"] == pytest.approx(800, abs=1)
    assert (read["one DISCOVER"], read["one REFRESH"]) == (4_000, 1_000)


@pytest.mark.parametrize("gamma", [5.0, 50.0, 95.0])
@pytest.mark.parametrize("hosts", [2, 3, 20])
def test_of_hosts_that_are_read_in_turn_each_has_both_kinds(gamma: float, hosts: int) -> None:
    """Equal delays keep them in step for ever: none may be left with refresh alone, or without any."""
    queue, read = FetchQueue(gamma), Counter[tuple[str, Priority]]()
    for page in range(2 * 200 * hosts):
        queue.put(order(page, REFRESH if page % 2 else DISCOVER), f"h{page // 2 % hosts}")
    for now in range(100 * hosts):
        host, job = queue.pop(float(now)) or pytest.fail("nothing")
        queue.release(host, now + float(hosts))
        read[host, job.priority] += 1
    for host in range(hosts):
        assert read[f"h{host}", DISCOVER] == pytest.approx(gamma, abs=1)
        assert read[f"h{host}", REFRESH] == pytest.approx(100.0 - gamma, abs=1)


def test_where_slots_are_scarce_gamma_is_of_all_reads() -> None:
    """Hosts wait for slots: whoever has new pages alone waits, too, when it is refresh's turn."""
    queue, read = FetchQueue(20.0), Counter[Priority]()
    for page in range(9_000):
        queue.put(order(page, DISCOVER if page % 3 else REFRESH), f"h{page % 300}")
    for taken in range(1_300):
        host, job = queue.pop(0.0) or pytest.fail("nothing")
        queue.release(host, 0.0)
        if taken >= 300:
            read[job.priority] += 1
    assert read[DISCOVER] == pytest.approx(200, abs=1)


@pytest.mark.parametrize("gamma", [-1.0, 100.1, math.nan])
def test_gamma_is_a_percentage(gamma: float) -> None:
    with pytest.raises(ValueError, match="gamma"):
        FetchQueue(gamma)


def test_hosts_take_turns_however_much_they_ask_for() -> None:
    queue = FetchQueue()
    for page in range(300):
        queue.put(order(page), "big")
    for page in range(3):
        queue.put(order(1000 + page), "small")
        queue.put(order(2000 + page), "tiny")
    assert [job[0] for job in drain(queue)[:9]] == ["big", "small", "tiny"] * 3


def test_first_in_first_out_within_a_host_and_level() -> None:
    queue = FetchQueue()
    for page in range(50):
        queue.put(order(page), "a")
    assert [job[1].page for job in drain(queue)] == list(range(50))


def test_an_order_given_back_keeps_its_place() -> None:
    queue = FetchQueue()
    for page in range(3):
        queue.put(order(page), "a")
    host, first = queue.pop(0.0) or pytest.fail("nothing")
    queue.give_back(first, host, 7.0)
    assert queue.counts() == (0, 0, 0, 3, 0)
    assert queue.pop(6.9) is None
    assert [job[1].page for job in drain(queue, 7.0)] == [0, 1, 2]


def test_a_held_host_gives_nothing_and_keeps_everything() -> None:
    queue = FetchQueue()
    queue.hold("a")
    queue.put(order(1), "a")
    queue.put(order(2), "b")
    assert drain(queue) == [("b", order(2))]
    assert queue.wake_at() is None
    assert queue.waiting("a") == 1
    queue.resume("a")
    assert drain(queue) == [("a", order(1))]


def test_holding_a_host_while_it_is_read() -> None:
    queue = FetchQueue()
    queue.put(order(1), "a")
    queue.put(order(2), "a")
    queue.pop(0.0)
    queue.hold("a")
    queue.release("a", 3.0)
    assert queue.pop(10.0) is None
    queue.resume("a")
    assert queue.wake_at() == 3.0
    assert queue.pop(3.0) == ("a", order(2))


def test_drop_hands_back_what_was_queued_but_not_what_is_out() -> None:
    queue = FetchQueue()
    for page, priority in enumerate([SCOUT, ORDERED, DISCOVER, DISCOVER]):
        queue.put(order(page, priority), "a")
    queue.put(order(9), "b")
    assert queue.pop(0.0) == ("a", order(1, ORDERED))
    assert [dropped.page for dropped in queue.drop("a")] == [0, 2, 3]
    assert len(queue) == 1
    queue.release("a", 1.0)
    assert [job[1].page for job in drain(queue, 2.0)] == [9]


def test_a_dropped_host_keeps_its_floor() -> None:
    queue = FetchQueue()
    queue.put(order(1), "a")
    queue.pop(0.0)
    queue.release("a", 10.0)
    queue.drop("a")
    queue.put(order(2), "a")
    assert queue.pop(9.0) is None
    assert queue.pop(10.0) is not None


def test_postpone_only_ever_delays() -> None:
    queue = FetchQueue()
    queue.put(order(1), "a")
    queue.postpone("a", 10.0)
    queue.postpone("a", 5.0)
    assert queue.wake_at() == 10.0
    assert queue.pop(9.0) is None
    assert queue.pop(10.0) is not None


def test_a_floor_holds_for_orders_that_come_later() -> None:
    queue = FetchQueue()
    queue.postpone("a", 10.0)
    queue.put(order(1), "a")
    assert queue.wake_at() == 10.0


def test_hosts_without_orders_are_forgotten_once_their_floor_has_passed() -> None:
    queue = FetchQueue()
    for page in range(1_000):
        queue.put(order(page), f"h{page}")
    for page in range(1_000):
        host, _ = queue.pop(0.0) or pytest.fail("nothing")
        queue.release(host, page + 1.0)
    assert queue.hosts() == 1_000
    queue.pop(500.5)
    assert queue.hosts() == 500
    queue.pop(1_000.0)
    assert queue.hosts() == 0


class Model:
    """The rules of the queue, stated without any thought of speed."""

    def __init__(self) -> None:
        self.lines: dict[str, list[deque[FetchOrder]]] = {h: [deque() for _ in range(4)] for h in "abcd"}
        self.ready_at = dict.fromkeys("abcd", -math.inf)
        self.busy: set[str] = set()
        self.held: set[str] = set()

    def waiting(self) -> list[str]:
        return [h for h in "abcd" if any(self.lines[h]) and h not in self.busy | self.held]

    def eligible(self, now: float) -> list[str]:
        return [h for h in self.waiting() if self.ready_at[h] <= now]

    def best_levels(self, now: float) -> set[int]:
        levels = {level for h in self.eligible(now) for level, line in enumerate(self.lines[h]) if line}
        for urgent in (0, 1):
            if urgent in levels:
                return {urgent}
        return levels

    @staticmethod
    def line(order: FetchOrder) -> int:
        """Scouts stand in the line of discovery."""
        return 3 if order.priority is SCOUT else order.priority.value


STEP = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcd"), st.sampled_from(list(Priority))),
    st.tuples(st.just("pop"), st.floats(0, 3), st.none()),
    st.tuples(st.just("release"), st.sampled_from("abcd"), st.floats(0, 5)),
    st.tuples(st.sampled_from(["hold", "resume", "drop"]), st.sampled_from("abcd"), st.none()),
    st.tuples(st.just("postpone"), st.sampled_from("abcd"), st.floats(0, 5)),
    st.tuples(st.just("back"), st.sampled_from("abcd"), st.floats(0, 5)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEP, max_size=80), st.sampled_from([0.0, 30.0, 50.0, 100.0]))
def test_the_queue_agrees_with_its_model(steps: list[tuple[str, object, object]], gamma: float) -> None:
    queue, model, now = FetchQueue(gamma), Model(), 0.0
    out: dict[str, FetchOrder] = {}
    for page, (name, a, b) in enumerate(steps):
        if name == "pop":
            now += float(a)  # type: ignore[arg-type]
            eligible, levels = model.eligible(now), model.best_levels(now)
            job = queue.pop(now)
            assert (job is not None) == bool(eligible)
            if job is not None:
                host, taken = job
                assert host in eligible
                assert model.line(taken) in levels
                assert model.lines[host][model.line(taken)].popleft() is taken
                model.busy.add(host)
                out[host] = taken
        else:
            host = str(a)
            if name == "put":
                new = order(page, Priority(b))
                queue.put(new, host)
                model.lines[host][model.line(new)].append(new)
            elif name in ("release", "back") and host in out:
                ready_at, taken = now + float(b), out.pop(host)  # type: ignore[arg-type]
                if name == "release":
                    queue.release(host, ready_at)
                else:
                    queue.give_back(taken, host, ready_at)
                    model.lines[host][model.line(taken)].appendleft(taken)
                model.busy.discard(host)
                model.ready_at[host] = ready_at
            elif name == "hold":
                queue.hold(host)
                model.held.add(host)
            elif name == "resume":
                queue.resume(host)
                model.held.discard(host)
            elif name == "drop":
                assert queue.drop(host) == [o for line in model.lines[host] for o in line]
                model.lines[host] = [deque() for _ in range(4)]
            elif name == "postpone":
                ready_at = now + float(b)  # type: ignore[arg-type]
                queue.postpone(host, ready_at)
                model.ready_at[host] = max(model.ready_at[host], ready_at)
        check(queue, model, now)


def check(queue: FetchQueue, model: Model, now: float) -> None:
    queued = [order.priority for lines in model.lines.values() for line in lines for order in line]
    assert queue.counts() == tuple(map(queued.count, Priority))
    for host, lines in model.lines.items():
        assert queue.waiting(host) == sum(map(len, lines))
    wake, waiting = queue.wake_at(), model.waiting()
    if not waiting:
        assert wake is None
    elif model.eligible(now):
        assert wake is not None
        assert wake <= now
    else:
        assert wake == min(model.ready_at[h] for h in waiting)


def promised(page: int, deadline: float) -> FetchOrder:
    return FetchOrder(page, f"http://h/{page}", ORDERED, epoch=1, deadline=deadline)


@given(st.lists(st.floats(0.0, 1e9), max_size=30))
def test_promised_orders_of_a_host_leave_by_their_deadlines(deadlines: list[float]) -> None:
    queue = FetchQueue()
    for page, deadline in enumerate(deadlines):
        queue.put(promised(page, deadline), "a")
    left = [job[1] for job in drain(queue)]
    assert [(one.deadline, one.page) for one in left] == sorted((deadline, i) for i, deadline in enumerate(deadlines))


def test_an_order_given_back_goes_before_its_equals() -> None:
    queue = FetchQueue()
    for page in (1, 2):
        queue.put(promised(page, 5.0), "a")
    host, first = queue.pop(0.0) or ("", promised(0, 0.0))
    queue.put(promised(3, 1.0), "a")
    queue.give_back(first, host, 0.0)
    assert [job[1].page for job in drain(queue)] == [3, 1, 2]


def test_a_queued_order_is_lifted_ahead_of_all_that_is_due() -> None:
    queue = FetchQueue()
    for page in range(64):
        queue.put(order(page, REFRESH), "a")
    assert queue.lift(promised(63, 9.0), "a")
    assert queue.lift(promised(62, 8.0), "a")
    assert queue.lift(promised(63, 7.0), "a"), "an earlier deadline counts, too"
    assert not queue.lift(promised(63, 7.0), "a"), "as urgent already"
    assert not queue.lift(promised(62, 99.0), "a") and not queue.lift(order(62, SCOUT), "a")
    assert queue.counts() == (0, 2, 62, 0, 0) and queue.waiting("a") == 64
    assert [job[1].page for job in drain(queue)][:3] == [63, 62, 0]


def test_what_is_not_queued_is_not_lifted() -> None:
    queue = FetchQueue()
    assert not queue.lift(promised(1, 1.0), "nobody")
    queue.put(order(1, REFRESH), "a")
    assert queue.pop(0.0) is not None
    assert not queue.lift(promised(1, 1.0), "a"), "it is being read"
    queue.put(order(2, REFRESH), "a")
    assert not queue.lift(FetchOrder(2, "http://h/2", ORDERED, epoch=2), "a"), "an order of another lease"
    assert len(queue) == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.floats(0, 9)), max_size=20), st.booleans())
def test_lifting_loses_nothing(lifts: list[tuple[str, int, float]], early: bool) -> None:
    queue, put = FetchQueue(), []
    for page in range(6):
        put.append(("abc"[page % 3], page))
        queue.put(order(page, (REFRESH, DISCOVER, SCOUT)[page % 2]), "abc"[page % 3])
    if early:
        host, _ = queue.pop(0.0) or ("", None)
        queue.release(host, 3.0)
        put.remove((host, _.page if _ else -1))
    for host, page, deadline in lifts:
        lifted = queue.lift(promised(page, deadline), host)
        assert not lifted or (host, page) in put
    left = drain(queue, 5.0)
    assert sorted((host, one.page) for host, one in left) == sorted(put) and len(queue) == 0
    levels = [one.priority is ORDERED for _, one in left]
    assert levels == sorted(levels, reverse=True)
