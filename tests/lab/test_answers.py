"""HTTP's rules over the web: conditional requests, manners of hosts, the bounded cache."""

from email.utils import formatdate

import pytest

from xyro.lab.web.answers import OVERHEAD, Answers, Request
from xyro.lab.web.places import Doc
from xyro.lab.web.render import render
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Manner, Web

T = ORIGIN + 20 * DAY


@pytest.fixture
def answers():
    return Answers(Web(pages=300, hosts=3, rate_median=1.0))


def get(answers, page, t=T, method="GET", **headers):
    web = answers.web
    request = Request(method, web.places.path(page), {name.replace("_", "-"): value for name, value in headers.items()})
    return answers.answer(web.host(page), request, t)


def header(response, name):
    lines = dict(line.split(": ", 1) for line in response.head.decode().strip().split("\r\n"))
    return lines.get(name)


def test_the_body_is_the_rendered_page_and_its_length_is_told(answers):
    for page in range(300):
        response, rendered = get(answers, page), render(answers.web, page, T)
        assert (response.status, response.mime, response.body) == (rendered.status, rendered.mime, rendered.body)
        assert header(response, "Content-Length") == str(len(rendered.body))
        assert header(response, "Location") == (rendered.location or None)
        assert (header(response, "ETag") is not None) == (response.status == 200)


def test_validators_hold_exactly_until_the_page_changes(answers):
    for page in answers.web.places.of_kind(Doc.HTML, Doc.XML, Doc.FEED, Doc.SITEMAP).tolist():
        state = answers.web.state(page, T)
        etag = header(get(answers, page), "ETag")
        assert header(get(answers, page), "Last-Modified") == formatdate(int(state.modified), usegmt=True)
        unchanged = get(answers, page, state.until - 1e-3, if_none_match=etag)
        assert (unchanged.status, unchanged.body) == (304, b"")
        assert header(unchanged, "ETag") == etag
        changed = get(answers, page, state.until + 1e-3, if_none_match=etag)
        assert changed.status == 200
        assert header(changed, "ETag") != etag


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_none_match": 'W/"other", {etag}'}, 304),
        ({"if_none_match": "W/{etag}"}, 304),
        ({"if_none_match": "*"}, 304),
        ({"if_none_match": '"other"'}, 200),
        ({"if_modified_since": "{modified}"}, 304),
        ({"if_modified_since": "{later}"}, 304),
        ({"if_modified_since": "{earlier}"}, 200),
        ({"if_modified_since": "{future}"}, 200),
        ({"if_modified_since": "yesterday"}, 200),
        ({"if_modified_since": "Mon, 99 Jan 99999999 00:00:00 GMT"}, 200),
        ({"if_none_match": '"other"', "if_modified_since": "{modified}"}, 200),
    ],
)
def test_preconditions(answers, headers, status):
    page = int(answers.web.places.of_kind(Doc.HTML)[4])
    modified = int(answers.web.state(page, T).modified)
    words = {"etag": header(get(answers, page), "ETag"), "modified": formatdate(modified, usegmt=True)}
    words |= {"later": formatdate(modified + 1, usegmt=True), "earlier": formatdate(modified - 1, usegmt=True)}
    words["future"] = formatdate(T + 100, usegmt=True)
    assert get(answers, page, **{name: value.format(**words) for name, value in headers.items()}).status == status


def test_what_has_no_page_or_no_sound_method_is_refused(answers):
    for path in ("/nowhere.html", "/d1/p9999.html", "/?a=1", "//", "/p6.html#x", "/favicon.ico"):
        assert answers.answer(0, Request("GET", path, {}), T).status == 404
    response = get(answers, 0, method="POST")
    assert response.status == 405
    assert header(response, "Allow") == "GET, HEAD"


def test_robots_txt_names_folder_delay_and_sitemaps():
    web = Web(pages=300, hosts=3, crawl_delay=2.5)
    texts = [Answers(web).answer(host, Request("GET", "/robots.txt", {}), T).body.decode() for host in range(3)]
    assert [("Disallow: /private/" in text) for text in texts] == [False, True, False]
    assert all("Crawl-delay: 2.5\n" in text for text in texts)
    for host, text in enumerate(texts):
        named = [line[9:] for line in text.splitlines() if line.startswith("Sitemap: ")]
        assert named == [web.url(page) for page in web.robots_sitemaps(host)]
        kinds = {web.kind(page) for page in web.robots_sitemaps(host)}
        assert kinds == ({Doc.INDEX} if host % 2 == 0 else {Doc.INDEX, Doc.SITEMAP})
    assert "Crawl-delay" not in Web(pages=300, hosts=3).robots(0)


def test_hosts_may_send_no_validators_or_lie():
    absent = Answers(Web(pages=60, hosts=2, absent=1.0))
    assert absent.web.manner(0) is Manner.ABSENT
    assert header(get(absent, 0), "ETag") is header(get(absent, 0), "Last-Modified") is None
    assert get(absent, 0, if_modified_since=formatdate(T, usegmt=True)).status == 200
    lying = Answers(Web(pages=60, hosts=2, lying=1.0))
    first, second = get(lying, 0, T), get(lying, 0, T + 1)
    assert first.body == second.body
    assert header(first, "ETag") != header(second, "ETag")
    assert header(second, "Last-Modified") == formatdate(T + 1, usegmt=True)
    assert get(lying, 0, T, if_none_match=header(first, "ETag")).status == 200
    web = Web(pages=12_000, hosts=1_000, absent=0.2, lying=0.3)
    manners = [web.manner(host) for host in range(1_000)]
    assert manners.count(Manner.ABSENT) == pytest.approx(200, abs=50)
    assert manners.count(Manner.LYING) == pytest.approx(300, abs=60)


def test_the_cache_never_outgrows_its_bound_and_never_shows():
    web = Web(pages=300, hosts=3)
    small, large = Answers(web, cache_bytes=20_000), Answers(web)
    for t in (T, T + DAY, T):
        for page in range(300):
            assert get(small, page, t) == get(large, page, t)
            kept = sum(len(entry.full.body) + OVERHEAD for entry in small._rendered.values())
            assert kept == small._bytes <= 20_000
    assert len(large._rendered) == 300
