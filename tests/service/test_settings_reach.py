"""Settings arrive: what a file says changes what a crawl does; and no setting is read by nobody."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.frontier.rig import Crawl, url
from tests.frontier.test_deadlines import HOUR, crawl_of, publish
from tests.service.face import ROOT
from tests.service.test_part_library import load
from xyro.configs.load import TABLES
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import OpicSettings, Settings, StoreSettings
from xyro.metadata.documents import Archive
from xyro.plugins.publish.promise_report import costs
from xyro.wire.messages import Kind

DAY = 86_400.0
ANY = CrawlSettings(scope="any")
READ = "\n".join(
    path.read_text(encoding="utf-8")
    for room in ("frontier", "service", "plugins")
    for path in (ROOT / room).rglob("*.py")
)
"""the rooms that read settings"""


def keys() -> list[tuple[str, str]]:
    return [
        (section.name, key.name)
        for section in msgspec.structs.fields(Settings)
        for key in msgspec.structs.fields(TABLES.get(section.name, section.type))
    ]


@pytest.mark.parametrize(("section", "key"), keys())
def test_every_setting_is_read_somewhere(section, key):
    assert re.search(rf"\.{key}\b", READ), f"[{section}] {key} is parsed, and that is all"


def test_late_cost_weighs_lateness_and_changes_while_running():
    crawl = crawl_of(4)
    publish(crawl, 1, deadline=HOUR)
    found = []
    for late_cost in (1.0, 3.0, 0.0):
        refresh = msgspec.structs.replace(crawl.settings.refresh, late_cost=late_cost)
        crawl.frontier.follow(msgspec.structs.replace(crawl.settings, refresh=refresh))
        now = crawl.now + 5 * HOUR
        found.append(costs(crawl.crawl_views.statuses(now), now)["late_publications"])
    once, thrice, never = found
    assert once > 0.0 and thrice == pytest.approx(3.0 * once, rel=0.01) and never == 0.0


@pytest.mark.parametrize(
    ("store", "kept"),
    [
        (StoreSettings(), 4),
        (StoreSettings(versions=2), 2),
        (StoreSettings(version_days=1.5), 3),
        (StoreSettings(version_days=9.0), 4),
    ],
)
def test_retention_bounds_the_versions_of_a_document(store, kept):
    """Four versions, a day apart: with the last, the first was replaced two days ago, the second one."""
    crawl = Crawl.in_memory(settings=Settings(crawl=ANY, store=store), refreshing=True)
    for version in range(4):
        load(crawl, url(0, 1), b"<a>%d</a>" % version, Kind.XML)
        crawl.now += DAY
    assert Archive(crawl.frontier.partition.get).counts().versions == kept


def test_the_sweep_aims_at_its_share():
    assert Crawl.in_memory(settings=Settings(opic=OpicSettings(sweep_target=0.3))).frontier.ledger.sweep.target == 0.3
