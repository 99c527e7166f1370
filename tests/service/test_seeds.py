"""Seeds: what a person gives, in canonical form, each refusal with its reason."""

from __future__ import annotations

from xyro.configs.schema import CrawlSettings
from xyro.frontier.scope import Scope
from xyro.service.node.seeds import sort_seeds, why_refused, why_unread

GUARD = {"http://10.0.0.1/": "blocked-address", "http://a.example:22/": "blocked-port", "http://b.example/": "only-net"}


def sort(*texts, fold_slashes=True):
    return sort_seeds(texts, Scope(CrawlSettings(fold_slashes=fold_slashes), refused=lambda url: GUARD.get(url, "")))


def test_seeds_are_made_canonical_and_each_is_taken_once():
    accepted, refused = sort(" http://A.example:80/x/../y#top ", "http://a.example/y", "https://a.example/y\n")
    assert accepted == ["http://a.example/y", "https://a.example/y"] and refused == []


def test_blank_lines_and_comments_are_skipped():
    assert sort("", "   ", "# http://a.example/", "\t#x", "http://a.example/#x") == (["http://a.example/"], [])


def test_slashes_are_folded_as_the_crawl_does():
    assert sort("http://a.example//b")[0] == ["http://a.example/b"]
    assert sort("http://a.example//b", fold_slashes=False)[0] == ["http://a.example//b"]


def test_each_refusal_has_its_text_and_its_reason():
    accepted, refused = sort("ftp://a.example/", "a.example", *GUARD, "http://c.example/")
    assert accepted == ["http://c.example/"]
    assert [text for text, _ in refused] == ["ftp://a.example/", "a.example", *GUARD]
    reasons = [why for _, why in refused]
    assert "http://a.example" in reasons[1], "it says what to write instead"
    assert [why.partition(":")[0] for why in reasons[2:]] == ["blocked-address", "blocked-port", "only-net"]


def test_a_refusal_without_an_explanation_is_told_as_it_is():
    scope = Scope(CrawlSettings(), refused=lambda url: "another-class")
    assert why_refused("http://a.example/", scope) == "another-class"
    assert why_refused("http://a.example/", Scope(CrawlSettings())) == ""


def test_a_seed_that_exclude_fits_is_told_with_the_pattern():
    scope = Scope(CrawlSettings(scope="any", include=("*/docs/*",), exclude=("*/x*", "*/private/*")))
    assert why_unread("http://a.example/", scope) == ""
    assert 'exclude pattern "*/private/*" fits it' in why_unread("http://a.example/private/", scope)
    assert why_unread("http://a.example/docs/p.JPG", scope).startswith("suffix: ")
