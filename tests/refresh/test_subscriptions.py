"""One heap for all subscriptions: planned before they are due, told when due, tried again, never twice at once."""

import math

from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.awaited_pages import AwaitedPages
from xyro.refresh.subscriptions import ATTEMPTS, BACK_OFF, BASE_LEAD, FEW, SLACK, Act, Due, Subscriptions, lead

DAY = 86_400.0


def test_a_period_planned_a_lead_ahead_told_when_due():
    subscriptions = Subscriptions()
    subscriptions.add(1, DAY, DAY, lead=600.0)
    assert subscriptions.next_time() == DAY - 600.0
    assert subscriptions.pop(DAY - 601.0) == []
    assert subscriptions.pop(DAY - 600.0) == [Due(Act.PLAN, 1)]
    assert subscriptions.next_time() == math.inf
    assert subscriptions.planned(1, DAY - 600.0, 500.0) == DAY
    assert subscriptions.pop(DAY - 1.0) == []
    assert subscriptions.pop(DAY) == [Due(Act.NOTIFY, 1)]
    assert subscriptions.sent(1, DAY + 3.0) == 2 * DAY
    assert subscriptions.next_time() == 2 * DAY - 500.0
    assert subscriptions.tally.notices == 1 and subscriptions.tally.missed == 0


def test_a_notice_that_fails_backs_off_and_is_given_up_before_the_next():
    subscriptions = Subscriptions()
    subscriptions.add(1, DAY, DAY)
    subscriptions.pop(DAY)
    now = subscriptions.planned(1, DAY - 60.0, 60.0)
    waits = []
    while subscriptions.due(1) == DAY:
        assert subscriptions.pop(now) == [Due(Act.NOTIFY, 1)]
        later = subscriptions.failed(1, now, missed=True)
        waits.append(later - now)
        now = later
    assert waits[:3] == [BACK_OFF, 2 * BACK_OFF, 4 * BACK_OFF] and len(waits) == ATTEMPTS
    assert subscriptions.due(1) == 2 * DAY and subscriptions.attempts(1) == 0
    assert (subscriptions.tally.failed, subscriptions.tally.given_up) == (ATTEMPTS, 1)
    assert subscriptions.tally.missed == 1  # once, not with each try


def test_missed_pages_cost_the_seconds_until_they_are_read():
    subscriptions = Subscriptions()
    subscriptions.add(1, DAY, DAY)
    subscriptions.pop(DAY)
    subscriptions.planned(1, DAY, 60.0)
    subscriptions.sent(1, DAY, missed=True)
    assert subscriptions.tally.missed == 1
    pages = AwaitedPages()
    pages.promise([5, 6, 7], DAY)
    pages.read(7, DAY - 1.0)
    assert pages.deadline(5) == DAY and not pages.deadline(7)
    pages.miss([5, 6], DAY)
    assert pages.late(DAY + 3_600.0) == (2, 2.0) and not pages.awaited
    pages.read(5, DAY + 100.0)
    pages.read(5, DAY + 500.0)
    assert pages.lateness == 100.0 and pages.overdue == {6: DAY}


def test_after_a_long_stop_there_is_one_notice_and_the_period_is_kept():
    subscriptions = Subscriptions()
    subscriptions.add(1, DAY, 10 * DAY)
    now = 14.5 * DAY
    assert subscriptions.pop(now) == [Due(Act.PLAN, 1)]
    assert subscriptions.planned(1, now, 300.0) == now + BASE_LEAD
    subscriptions.pop(now + BASE_LEAD)
    assert subscriptions.sent(1, now + BASE_LEAD) == 15 * DAY


def test_one_that_ended_is_never_due():
    subscriptions = Subscriptions()
    subscriptions.add(1, DAY, DAY)
    assert subscriptions.remove(1) and not subscriptions.remove(1)
    assert subscriptions.pop(10 * DAY) == [] and subscriptions.next_time() == math.inf
    assert subscriptions.sent(1, 0.0) == subscriptions.failed(1, 0.0) == math.inf


def test_the_lead_is_that_of_the_slowest_host():
    assert lead([]) == BASE_LEAD
    assert lead([(1, 2.0), (100, 2.5), (3, 30.0)]) == BASE_LEAD + SLACK * 250.0


@given(st.lists(st.tuples(st.floats(120, 1e6), st.floats(0, 1e6)), min_size=1, max_size=30), st.data())
def test_every_subscription_is_planned_then_told_in_each_period(ones, data):
    subscriptions = Subscriptions()
    for number, (every, due) in enumerate(ones):
        subscriptions.add(number, every, due)
    state = dict.fromkeys(range(len(ones)), "waiting")
    for _ in range(6 * len(ones)):
        now = subscriptions.next_time()
        for act, number in subscriptions.pop(now):
            if act is Act.PLAN:
                assert state[number] == "waiting"
                assert subscriptions.planned(number, now, data.draw(st.floats(0, 1e5))) >= now
                state[number] = "planned"
            else:
                assert state[number] == "planned" and now >= subscriptions.due(number)
                due = subscriptions.due(number)
                assert subscriptions.sent(number, now) > max(now, due)
                state[number] = "waiting"


def test_a_plan_begins_sooner_where_more_is_promised_of_a_host():
    subscriptions = Subscriptions()
    subscriptions.add(1, 86_400.0, 86_400.0, 60.0)
    assert subscriptions.next_time() == 86_340.0
    subscriptions.foresee(1, 3_600.0)
    assert subscriptions.next_time() == 82_800.0
    subscriptions.foresee(1, 600.0)
    subscriptions.foresee(7, 600.0)
    assert subscriptions.next_time() == 82_800.0, "never later; and there is no seventh"
    subscriptions.foresee(1, 80_000.0)
    assert subscriptions.next_time() == 43_200.0, "half a period at most"
    assert [one.act for one in subscriptions.pop(43_200.0)] == [Act.PLAN]
    subscriptions.foresee(1, 9e9)
    assert subscriptions.planned(1, 43_200.0, 60.0) == 86_400.0
    subscriptions.foresee(1, 9e9)
    assert subscriptions.next_time() == 86_400.0, "what is planned goes out when it is due"


def test_what_was_moved_or_removed_takes_no_room():
    """A host that grows moves the plans of its subscriptions once a second; who subscribes may unsubscribe."""
    subscriptions = Subscriptions()
    subscriptions.add(0, DAY, 10.0)
    subscriptions.add(1, 30 * DAY, 30 * DAY)
    for step in range(2_000):
        subscriptions.foresee(1, 100.0 + step)
        subscriptions.add(2 + step, DAY, 9 * DAY)
        subscriptions.remove(2 + step)
    assert len(subscriptions) == 2 and len(subscriptions._heap) <= 2 * 3 + FEW
    assert [subscriptions.pop(30 * DAY, 1), subscriptions.pop(30 * DAY)] == [[Due(Act.PLAN, 0)], [Due(Act.PLAN, 1)]]
    assert subscriptions.next_time() == math.inf
