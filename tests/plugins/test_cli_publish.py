"""publish, subscribe, subscriptions, unsubscribe from the command line, on a crawl that does not run."""

import json

import pytest
from click.testing import CliRunner

from xyro.configs.schema import CrawlSettings, Settings
from xyro.metadata.store import MemoryStore
from xyro.service.cli.publish_commands import publish, subscribe, subscriptions, unsubscribe
from xyro.service.node.crawl_file import remember
from xyro.service.node.data_dir import DataDir
from xyro.wire.durations import seconds, span
from xyro.wire.errors import InputError


def run(command, *words, fails=False):
    result = CliRunner().invoke(command, list(map(str, words)))
    if fails:
        assert isinstance(result.exception, InputError), result.output
        return str(result.exception)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.fixture
def data(tmp_path):
    DataDir.open(tmp_path / "d", make=True).close()
    return tmp_path / "d"


def test_subscriptions_of_a_stopped_crawl(data):
    assert run(subscriptions, "--data", data, "--json") == "[]\n"
    assert "`xyro subscribe`" in run(subscriptions, "--data", data)
    span = ("--every", "7d", "--data", data, "--notify")
    assert run(subscribe, "http://a.example", *span, "http://me.example/hook") == "1\n"
    assert run(subscribe, "http://a.example/news/*", *span, "cat -n 'two words' me") == "2\n"
    first, second = json.loads(run(subscriptions, "--data", data, "--json"))
    assert (first["target"], first["every_s"], first["notify"]) == (
        "http://a.example/",
        604_800.0,
        "http://me.example/hook",
    )
    assert second["notify"] == "cat -n 'two words' me" and second["next_notice"] > "2020"
    assert "http://a.example/news/*  every 7d to cat" in run(subscriptions, "--data", data)
    assert run(unsubscribe, 1, "--data", data) == "1: ended\n"
    assert [one["id"] for one in json.loads(run(subscriptions, "--data", data, "--json"))] == [2]
    assert "no such subscription" in run(unsubscribe, 1, "--data", data, fails=True)


def test_slashes_of_a_target_stay_where_the_crawl_keeps_them(data):
    words = ("--every", "7d", "--data", data, "--notify", "cat")
    run(subscribe, "http://a.example/x//y", *words)
    remember(data, Settings(crawl=CrawlSettings(fold_slashes=False)), MemoryStore())
    run(subscribe, "http://a.example/x//y", *words)
    folded, kept = json.loads(run(subscriptions, "--data", data, "--json"))
    assert (folded["target"], kept["target"]) == ("http://a.example/x/y", "http://a.example/x//y")


def test_what_is_refused(data, tmp_path):
    for target, every, notify in (("no url", "7d", "http://a/"), ("http://a/", "soon", "x"), ("http://a/", "1s", "x")):
        run(subscribe, target, "--every", every, "--notify", notify, "--data", data, fails=True)
    assert run(subscriptions, "--data", data, "--json") == "[]\n"
    assert "xyro serve" in run(publish, "http://a.example/", "--data", data, fails=True)
    nobody = ("--every", "7d", "--data", data, "--notify", str(tmp_path / "no such program"))
    assert "no such command" in run(subscribe, "http://a.example", *nobody, fails=True)
    run(subscriptions, "--data", tmp_path / "nothing", fails=True)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", 90.0), ("1.5h", 5_400.0), ("7d", 604_800.0), ("2w", 1_209_600.0), (30, 30.0)]
)
def test_spans(text, expected):
    assert seconds(text, "x") == expected == seconds(span(expected), "x")


@pytest.mark.parametrize("text", ["", "-1s", "7 days", "1e3", "inf", "nan", None, True, [], "0s", "99999999w", "٣d"])
def test_what_is_no_span(text):
    with pytest.raises(InputError, match="x: expected a span"):
        seconds(text, "x")
