"""DIR/crawl.toml: what makes a crawl the crawl it is comes back with it; the rest is each run's own to say."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xyro.configs.load import load
from xyro.configs.schema import FetchSettings, FocusTable, OpicSettings, RuleTable, Settings
from xyro.metadata.store import MemoryStore
from xyro.service.node import crawl_file
from xyro.service.node.crawl_file import check, paths, remember
from xyro.wire.errors import InputError

FOCUS = (
    FocusTable(weight=5.0, patterns=("*/news/*", 'say"\\'), hosts=("*.example.org",)),
    FocusTable(weight=0.0, kinds=("XML",), words=("ñandú",), leads_to=("rss", "atom")),
)


def again(directory, *files):
    return load([*paths(directory), *files])


def test_a_new_directory_remembers_nothing(tmp_path):
    assert paths(tmp_path) == [] and again(tmp_path) == Settings()


def test_that_changes_are_recorded_is_remembered_and_no_matter_of_the_cluster(tmp_path):
    recording = load(overrides={"changes.record": True})
    remember(tmp_path, recording, MemoryStore())
    assert again(tmp_path).changes.record and not load([*paths(tmp_path)], {}, {"changes.record": False}).changes.record
    assert crawl_file.agreed(recording) == crawl_file.agreed(Settings())


def test_whom_the_virtual_page_pays_comes_back(tmp_path):
    chosen = Settings(
        focus=FOCUS, opic=OpicSettings(ordinary_weight=0.0, damping=0.9, virtual="edge", query_weight=0.5)
    )
    remember(tmp_path, chosen, MemoryStore())
    found = again(tmp_path)
    assert (found.focus, found.opic) == (FOCUS, chosen.opic)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    weights=st.lists(st.floats(0, 10_000), max_size=7),
    damping=st.floats(0.01, 0.99),
    words=st.lists(st.text("aö\"'\\#=[]", min_size=1, max_size=8), max_size=3),
)
def test_any_focus_comes_back_as_it_was(tmp_path, weights, damping, words):
    patterns = tuple(f"*/{word}*" for word in words) or ("*",)
    tables = tuple(FocusTable(weight=weight, patterns=patterns) for weight in weights)
    remember(
        tmp_path,
        Settings(focus=tables, opic=OpicSettings(damping=damping), rules=(RuleTable(host="h.example", max_depth=2),)),
        MemoryStore(),
    )
    found = again(tmp_path)
    assert found.focus == tables and found.opic.damping == damping and found.rules[0].max_depth == 2
    remember(tmp_path, found, MemoryStore())
    assert again(tmp_path) == found


def test_how_it_is_computed_is_each_runs_own(tmp_path):
    remember(tmp_path, Settings(opic=OpicSettings(window=32.0, spend_ratio=5.0, sites=True)), MemoryStore())
    assert again(tmp_path) == Settings()


@pytest.mark.parametrize(
    ("text", "focus"),
    [
        ("", FOCUS),
        ("focus = []", ()),
        ("[opic]\ndamping = 0.8", FOCUS),
        ('[[focus]]\nweight = 2.0\nhosts = ["a.example"]', (FocusTable(weight=2.0, hosts=("a.example",)),)),
    ],
)
def test_a_later_run_replaces_the_tables_together_or_ends_them(tmp_path, text, focus):
    remember(tmp_path, Settings(focus=FOCUS), MemoryStore())
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    found = again(tmp_path, mine)
    assert found.focus == focus
    remember(tmp_path, found, MemoryStore())
    assert again(tmp_path).focus == focus
    assert msgspec.structs.replace(found, focus=()) == msgspec.structs.replace(again(tmp_path), focus=())


# It decides whom the crawl contacts: the store has it, too


CONFINED = Settings(fetch=FetchSettings(only_net=("127.0.0.0/8",)))
OPEN = Settings(fetch=FetchSettings(allow_private=("10.0.0.0/8",)))


@pytest.mark.parametrize("damage", ["lost", "emptied", "edited", "cut"])
def test_a_file_that_is_not_as_it_was_written_stops_the_start(tmp_path, damage):
    store, path = MemoryStore(), tmp_path / "crawl.toml"
    remember(tmp_path, CONFINED, store)
    check(tmp_path, store)
    written = path.read_text()
    if damage == "lost":
        path.unlink()
    else:
        changed = {"emptied": "", "edited": written.replace("127.0.0.0/8", "0.0.0.0/0"), "cut": written[:-8]}
        path.write_text(changed[damage])
    with pytest.raises(InputError, match=r"crawl\.toml: is (missing|not as).*`mv (.*)` brings it back"):
        check(tmp_path, store)
    (tmp_path / "crawl.toml.stored").rename(path)
    check(tmp_path, store)
    assert path.read_text() == written and again(tmp_path) == CONFINED


def test_a_directory_from_before_is_taken_as_it_is(tmp_path):
    check(tmp_path, MemoryStore())
    (tmp_path / "crawl.toml").write_text('[fetch]\nonly_net = ["127.0.0.0/8"]\n')
    check(tmp_path, MemoryStore())


def test_a_kill_at_any_step_leaves_a_file_that_is_known(tmp_path, monkeypatch):
    """Stopped before each step that reaches the disk, again and again: the next start finds the old or the new text."""

    class Killed(Exception):
        pass

    store, steps = MemoryStore(), [0]
    remember(tmp_path, CONFINED, store)

    def counted(call):
        def step(*arguments):
            if not steps[0]:
                raise Killed
            steps[0] -= 1
            return call(*arguments)

        return step

    monkeypatch.setattr(store, "write", counted(store.write))
    monkeypatch.setattr(crawl_file, "write_file", counted(crawl_file.write_file))
    seen = []
    for wanted in (OPEN, CONFINED):
        for allowed in range(4):
            steps[0] = allowed
            with contextlib.suppress(Killed):
                remember(tmp_path, wanted, store)
            check(tmp_path, store)
            seen.append(again(tmp_path))
    assert seen == [CONFINED, CONFINED, OPEN, OPEN, OPEN, OPEN, CONFINED, CONFINED]
