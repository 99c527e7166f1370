"""DIR/crawl.toml: what makes a crawl the crawl it is comes back with it; the rest is each run's own to say."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xyro.configs.load import load
from xyro.configs.schema import FocusTable, OpicSettings, RuleTable, Settings
from xyro.service.node.crawl_file import paths, remember

FOCUS = (
    FocusTable(weight=5.0, patterns=("*/news/*", 'say"\\'), hosts=("*.example.org",)),
    FocusTable(weight=0.0, kinds=("XML",), words=("ñandú",), leads_to=("rss", "atom")),
)


def again(directory, *files):
    return load([*paths(directory), *files])


def test_a_new_directory_remembers_nothing(tmp_path):
    assert paths(tmp_path) == [] and again(tmp_path) == Settings()


def test_whom_the_virtual_page_pays_comes_back(tmp_path):
    chosen = Settings(
        focus=FOCUS, opic=OpicSettings(ordinary_weight=0.0, damping=0.9, virtual="edge", query_weight=0.5)
    )
    remember(tmp_path, chosen)
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
    )
    found = again(tmp_path)
    assert found.focus == tables and found.opic.damping == damping and found.rules[0].max_depth == 2
    remember(tmp_path, found)
    assert again(tmp_path) == found


def test_how_it_is_computed_is_each_runs_own(tmp_path):
    remember(tmp_path, Settings(opic=OpicSettings(window=32.0, spend_ratio=5.0, sites=True)))
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
    remember(tmp_path, Settings(focus=FOCUS))
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    found = again(tmp_path, mine)
    assert found.focus == focus
    remember(tmp_path, found)
    assert again(tmp_path).focus == focus
    assert msgspec.structs.replace(found, focus=()) == msgspec.structs.replace(again(tmp_path), focus=())
