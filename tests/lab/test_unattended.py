"""A daemon with default settings on a site that never changes, over real HTTP, by the server's count."""

import pytest

from xyro.lab.crawls.unattended import run
from xyro.lab.web.scripted import ScriptedPage


def test_a_page_has_the_version_of_its_changes_so_far():
    page = ScriptedPage(changes=[10.0, 20.0])
    assert [page.version(t) for t in (9.0, 10.0, 25.0)] == [0, 1, 2]
    assert [page.until(t) for t in (9.0, 10.0, 25.0)] == [10.0, 20.0, float("inf")]


@pytest.mark.long
def test_a_site_that_never_changes_is_left_alone_and_a_page_that_begins_to_is_followed():
    """Half as long as `xyro lab unattended`."""
    report = run(days=14, after=21)
    assert report["ok"], report
    assert report["reads_on_day"]["1"] <= 3 * report["pages"]
    assert report["reads_on_day"]["14"] <= report["pages"] / 2
