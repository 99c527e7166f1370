"""URLs and page numbers: each is computed from the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.web.places import FIXED, Doc, Places, address_of, disallows, host_at
from xyro.lab.web.shape import Shape
from xyro.lab.web.web import Web
from xyro.wire.errors import InputError
from xyro.wire.urls import canonical

WEB = Web(pages=900, hosts=9, outside=0.05)


@given(st.integers(0, 63_999))
def test_a_host_number_and_its_address_are_inverse(host):
    assert host_at(address_of(host)) == host


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.1.0.0", "127.1.0.251", "127.1.1", "127.1.0.1.1", "127.1.00.1", ""]
)
def test_other_addresses_are_no_host(address):
    assert host_at(address) == -1


def test_every_url_is_canonical_distinct_and_leads_back_to_its_page():
    urls = [WEB.url(page) for page in range(WEB.size)]
    assert len(set(urls)) == len(urls)
    for page, url in enumerate(urls):
        assert canonical(url) == url
        if page < WEB.shape.pages:
            host, path = WEB.host(page), WEB.places.path(page)
            assert url == f"http://{address_of(host)}:{WEB.shape.port}{path}"
            assert WEB.places.find(host, path) == page
            assert WEB.places.find((host + 1) % 9, path) == (-1 if path != "/" else WEB.places.starts[(host + 1) % 9])


@given(st.text(max_size=30) | st.from_regex(r"/(d[0-9]/)?p[0-9]{1,4}\.[a-z]{2,4}", fullmatch=True), st.integers(-1, 9))
def test_only_a_pages_own_path_finds_it(path, host):
    page = WEB.places.find(host, path)
    assert page == -1 or (WEB.places.path(page) == path and WEB.host(page) == host)


def test_each_host_begins_with_its_fixed_pages_and_only_some_have_a_private_folder():
    for start in WEB.places.starts[:-1].tolist():
        assert tuple(WEB.places.kinds[start : start + 4]) == FIXED
        assert WEB.kind(start + 4) is Doc.SITEMAP
    private = WEB.places.of_kind(Doc.PRIVATE).tolist()
    assert private
    for page in private:
        assert disallows(WEB.host(page))
        assert WEB.places.path(page).startswith("/private/")


def test_kinds_have_the_shares_that_were_asked_for():
    shape = Shape(pages=50_000, hosts=10, xml=0.1, dead=0.2, redirects=0.05, files=0.01, private=0.0)
    kinds = Places(shape, np.random.default_rng(5)).kinds
    for kind, share in ((Doc.XML, 0.1), (Doc.DEAD, 0.2), (Doc.REDIRECT, 0.05), (Doc.FILE, 0.01), (Doc.PRIVATE, 0.0)):
        assert np.mean(kinds == kind) == pytest.approx(share, abs=0.006)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pages": 11, "hosts": 1},
        {"hosts": 0},
        {"hosts": 64_001},
        {"xml": 1.1},
        {"dead": -0.1},
        {"dead": 0.5, "files": 0.5},
        {"speed": 0.0},
        {"port": 70_000},
        {"rate_sigma": -1.0},
        {"absent": 0.6, "lying": 0.6},
        {"size": 10},
        {"drift": float("nan")},
    ],
)
def test_settings_that_make_no_web_are_refused_by_name(wrong):
    with pytest.raises(InputError, match="lab web: "):
        Web(**{"pages": 100, "hosts": 2} | wrong)


def test_an_unknown_setting_is_refused():
    with pytest.raises(TypeError):
        Web(pagse=100)
