"""URL -> page is exact: also where fingerprints clash, where the dictionary forgets, and after a restart."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.metadata import url_index
from xyro.metadata.url_index import ABSENT, FingerprintTable, UrlIndex


class Disk:
    """Map-Data and the clashes, as the manager would store them."""

    def __init__(self):
        self.urls: list[str] = []
        self.clashes: dict[str, int] = {}
        self.looks = 0

    def url_of(self, page):
        self.looks += 1
        return self.urls[page]

    def map(self, bits, seed=1):
        return UrlIndex(FingerprintTable(bits, 100_000), seed, self.url_of, self.clashes.get)

    def add(self, urls, new):
        for url, page in urls.add(new, len(self.urls)):
            self.clashes[url] = page
        self.urls += new


def named(numbers):
    return [f"http://h.example/{number}" for number in numbers]


@pytest.mark.parametrize("bits", [8, 64])
def test_2000_urls_are_2000_pages(bits):
    disk = Disk()
    urls = disk.map(bits)
    all_of_them = named(range(2000))
    for start in range(0, 2000, 70):
        chunk = all_of_them[start : start + 70]
        assert urls.find(chunk) == [ABSENT] * len(chunk)
        disk.add(urls, chunk)
    assert urls.find(all_of_them) == list(range(2000))
    assert len(disk.clashes) == (2000 - 256 if bits == 8 else 0), "one URL of each fingerprint owns it"
    assert urls.find(named(range(2000, 2300))) == [ABSENT] * 300


@pytest.mark.parametrize("bits", [8, 64])
@pytest.mark.parametrize("kept", [0, 1, 137, 500])
def test_a_table_restored_from_map_data_answers_alike(bits, kept):
    """`kept`: pages that a snapshot's table knows already."""
    disk = Disk()
    before = disk.map(bits)
    disk.add(before, named(range(kept)))
    fps, ids = before.table.items()
    disk.add(before, named(range(kept, 500)))
    after = disk.map(bits)
    after.table.insert(fps, ids)
    after.restore(disk.urls[kept:], kept, bool(disk.clashes))
    assert len(after.table) == len(before.table)
    assert after.find(named(range(500))) == list(range(500))
    assert after.find(named(range(500, 600))) == [ABSENT] * 100


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 400), max_size=30), max_size=25), st.sampled_from([1, 4, 8, 64]))
def test_it_agrees_with_a_dictionary(groups, bits):
    disk = Disk()
    urls = disk.map(bits)
    truth: dict[str, int] = {}
    for group in groups:
        asked = named(group)
        assert urls.find(asked) == [truth.get(url, ABSENT) for url in asked]
        new = [url for url in dict.fromkeys(asked) if url not in truth]
        truth.update(zip(new, range(len(truth), len(truth) + len(new)), strict=True))
        disk.add(urls, new)
    assert {url: urls.find_one(url) for url in truth} == truth


def test_recent_urls_are_answered_without_the_disk():
    disk = Disk()
    urls = disk.map(64)
    disk.add(urls, named(range(50)))
    disk.looks = 0
    urls.find(named(range(50)) * 3)
    assert disk.looks == 0


def test_the_dictionary_is_bounded_and_forgets_without_harm(monkeypatch):
    monkeypatch.setattr(url_index, "GENERATION", 100)
    disk = Disk()
    urls = disk.map(12)
    for start in range(0, 3000, 25):
        disk.add(urls, named(range(start, start + 25)))
        assert len(urls._young) + len(urls._old) <= 2 * (100 + 25)
    chance = random.Random(3)
    for _ in range(60):
        numbers = [chance.randrange(3000) for _ in range(40)]
        assert urls.find(named(numbers)) == numbers
        assert len(urls._young) + len(urls._old) <= 2 * (100 + 40)


def test_the_seed_decides_the_fingerprints():
    disk = Disk()
    url = named([1])[0]
    assert disk.map(64, seed=1).fingerprint(url) != disk.map(64, seed=2).fingerprint(url)
    assert disk.map(8).fingerprint(url) < 256
