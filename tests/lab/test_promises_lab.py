"""`xyro lab promises`, small: publications under load in real time, subscriptions over days on a clock that jumps."""

import pytest

from xyro.lab.crawls import promises_lab
from xyro.lab.crawls import published as published_lab
from xyro.lab.crawls import subscribed_lab as subscribed_lab
from xyro.lab.web.shape import DAY

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def published():
    return published_lab.run(published_lab.PublishedSize(4, 1_200, 0.05, 2.0, 2.0), 3)


@pytest.mark.long
def test_published_changes_are_read_under_full_load(published):
    assert not {"all read", "deadlines", "full load"} & set(published["broken"]), published
    assert published["publications"] >= 6 and set(published["ways"]) <= {"indexnow", "token", "owner"}
    assert 0.0 < published["median_s"] <= published["p90_s"]


@pytest.mark.long
def test_who_lies_gets_no_orders_any_more(published):
    assert published["liar"]["told"] == published_lab.LIES
    assert published["liar"]["ordered"] <= published_lab.LIES // 2
    assert published["liar"]["false"] >= 1


@pytest.fixture(scope="module")
def subscribed():
    return subscribed_lab.run(subscribed_lab.SubscribedSize(48, 2, 0.5, 20, 1.0, 6.0, (DAY / 8, DAY / 4)), 3)


def test_every_notice_comes_once_in_time_with_the_truth(subscribed):
    assert subscribed["ok"], subscribed
    assert subscribed["notices"] == subscribed["expected"] > 40 and subscribed["missed"] == 0


def test_what_bandwidth_or_politeness_do_not_allow_is_told():
    size = subscribed_lab.SubscribedSize(36, 1, 0.25, 1, 300.0, 20.0, (3_600.0,))
    said = subscribed_lab.run(size, 3, enough=False)
    assert said["ok"] and said["missed"] == said["notices"] == said["expected"] > 3, said


def test_a_notice_that_says_something_else_is_found():
    class Served:
        web = subscribed_lab.Web(seed=3, pages=60, hosts=2)

        def versions(self, page, t):
            return {0} if t < 1_000.0 else {1}

    page = next(page for page in range(60) if Served.web.kind(page) is subscribed_lab.Doc.HTML)
    truth = subscribed_lab.NoticeTruth(Served(), {1: subscribed_lab.Wish("x", 2_000.0, 0.0)}, 2_500.0)
    assert truth.expected(1) == 1

    def wrong(**change):
        told = {"url": Served.web.url(page), "changed": True, "refreshed": True}
        notice = {"subscription": 1, "notice": 1, "since": "1970-01-01T00:00:00Z", "at": "1970-01-01T00:33:20Z",
                  "due": "1970-01-01T00:33:20Z", "in_time": True}  # fmt: skip
        page_change = {key: change.pop(key) for key in list(change) if key in told}
        return truth.wrong({**notice, "pages": [{**told, **page_change}], **change})

    assert wrong() == []
    assert wrong(changed=False) == [Served.web.url(page)]
    assert wrong(due="1970-01-01T01:00:00Z") == ["its date"]
    assert wrong(in_time=False) == wrong(refreshed=False) == ["whether it was in time"]
    assert wrong(pages=[]) == ["no pages"]


def test_parts_and_bad_input(capsys):
    assert len(list(promises_lab.runs("all", True, 1))) == 4 and len(list(promises_lab.runs("scarce", False, 1))) == 2
    with pytest.raises(SystemExit) as refused:
        promises_lab.main(["--part", "nothing"])
    assert refused.value.code == 2 and "--part" in capsys.readouterr().err
