"""Main texts: what a page is for stays, what stands around it goes; hostile pages cost what their bytes cost."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.charset import codec_for
from xyro.page_text import SHORT, page_text
from xyro.text_libraries import extractor_of

PAGES = Path(__file__).parents[1] / "data" / "text"
LONG = "A sentence that is long enough to be the content of a page, with commas, and an end. " * 8
AROUND = (
    '<nav><a href="/">Home</a> <a href="/news">All news</a></nav><div class="cookie-banner">We use cookies</div>'
    "<main-ish>%s</main-ish>"
    '<ul><li><a href="/a">Other story</a><li><a href="/b">Another story</a></ul><footer>Imprint</footer>'
)


def text_of(body: str, head: str = ""):
    found = page_text(f"<html lang=en><head>{head}</head><body>{body}".encode(), "utf-8", "https://example.org/d/")
    assert found is not None
    return found


def test_boilerplate_goes_and_content_stays():
    found = text_of(AROUND % f"<div><h1>Title</h1><p>{LONG}</p></div>")
    assert found.text.split("\n\n") == ["Title", LONG.strip()]
    assert found.markdown == f"# Title\n\n{LONG.strip()}"


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ('<div style="overflow: hidden">', "</div>"),
        ('<div class="col hidden-print">', "</div>"),
        ('<section title="The hidden cost of a class=&quot;nav&quot;">', "</section>"),
        ("<div hidden=until-found>", "</div>"),
        ("<xmp><form></xmp><div>", "</div>"),
        ("<noembed><nav></noembed><div>", "</div>"),
        ("<iframe><!-- <form></iframe><div>", "</div><!-- c -->"),
    ],
)
def test_what_only_resembles_boilerplate_stays(begin, end):
    found = text_of(f"<h1>Title</h1><p>{LONG}</p>{begin}<p>Inner. {LONG}</p>{end}<p>Last. {LONG}</p>")
    assert "Inner." in found.text and "Last." in found.text


@pytest.mark.parametrize("attribute", ["hidden", 'class="col hidden"'])
def test_what_is_hidden_goes(attribute):
    found = text_of(f"<h1>Title</h1><p>{LONG}</p><div {attribute}><p>Inner. {LONG}</p></div><p>Last. {LONG}</p>")
    assert "Inner." not in found.text and "Last." in found.text


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h2>A &amp; B</h2>", "## A & B"),
        ("<p a<b=1>one</p><noembed>x > y</noembed><p>two <i>three</i></p>", "one\n\nx > y\n\ntwo *three*"),
        ('<p title="1 > 0">a\1 <b>\2b</b> &lt;i&gt;</p>', r"a **b** \<i>"),
        ("<p>a <b>bold </b>word, <i>so</i></p>", "a **bold** word, *so*"),
        ('<p><a href="../x?a=1&amp;b=(2)">link</a></p>', "[link](https://example.org/x?a=1&b=(2))"),
        ('<p><a href="b.html#t)a b">x</a></p>', "[x](https://example.org/d/b.html#t%29a%20b)"),
        (
            '<p><a href="#sec-1">x</a> <a href="c#">y</a></p>',
            "[x](https://example.org/d/#sec-1) [y](https://example.org/d/c)",
        ),
        ("<ul><li>one<li>two<ul><li>deep</ul></ul>", "- one\n- two\n  - deep"),
        ("<ol><li>one<li><p>two</p><p>more</p></ol>", "1. one\n2. two\n\n   more"),
        ("<pre>a\n  b &lt;c&gt;</pre>", "```\na\n  b <c>\n```"),
        ("<blockquote><p>said</p></blockquote>", "> said"),
        (
            "<table><tr><th>A<th>B<tr><td>1<td>x|y<tr><td><a href=/z>2</a><td></table>",
            "| A | B |\n| --- | --- |\n| 1 | x\\|y |\n| [2](https://example.org/z) |  |",
        ),
        (
            "<table><tr><td><td>&nbsp;<td><tr><th><th>name<th>task<tr><td><td><a href=/m#x>m</a><td>does it</table>",
            "| name | task |\n| --- | --- |\n| [m](https://example.org/m#x) | does it |",
        ),
        ("<table><tr><td><td>one<tr><td><td>two</table>", "one\n\ntwo"),
        ("<table><tr><td><p>left</p><p>more</p><td><h2>right</h2></table>", "left\n\nmore\n\n## right"),
        ("<p>x<script>var a</script><!-- no --><span>y</span> <code>z &lt; 1</code></p>", "xy `z < 1`"),
        ("<p>one<br>two</p>", "one two"),
    ],
)
def test_markdown(html, markdown):
    assert text_of(html).markdown == markdown
    assert text_of(f"<main>{html}<p>{LONG}</p></main>").markdown == f"{markdown}\n\n{LONG.strip()}"


def test_a_short_page_keeps_all_of_its_text():
    found = text_of('<nav><a href="/">Home</a></nav><p>Closed today.</p><footer>Imprint</footer>')
    assert found.text.split("\n\n") == ["Home", "Closed today.", "Imprint"]
    assert len(found.text) < SHORT


def test_links_in_the_part_that_a_page_names_as_its_main_one_stay():
    links = "".join(f'<li><a href="/{n}">Chapter {n}, with a long name of its own</a>' for n in range(30))
    assert "Chapter 29" in text_of(f"<nav><a href=/>Home</a></nav><main><ul>{links}</ul></main>").text


def test_a_page_of_links_is_not_empty():
    links = "".join(f'<li><a href="/{n}">Chapter {n}, with a long name of its own</a>' for n in range(30))
    assert "Chapter 29" in text_of(f"<ul>{links}</ul>").text


def test_links_to_other_pages_go_from_a_main_part_that_has_a_text():
    links = "".join(f'<li><a href="/{n}">Other story {n}</a>' for n in range(9))
    found = text_of(f"<main><h1>Title</h1><p>{LONG}</p><ul>{links}</ul><p>{LONG}</p></main>")
    assert found.text.split("\n\n") == ["Title", LONG.strip(), LONG.strip()]


def test_what_stands_above_the_title_goes_and_what_follows_the_last_heading():
    above = "<div>EDITION: WORLD</div><div>18 degrees, rain</div>"
    below = "<p>Ends here.</p><h2>More on this</h2><p>A short word on another story</p>"
    found = text_of(f"{above}<h1>Title</h1><div>By a person</div><p>{LONG}</p><h2>Part</h2><p>{LONG}</p>{below}")
    assert found.text.split("\n\n") == ["Title", "By a person", LONG.strip(), "Part", LONG.strip(), "Ends here."]


FRAME = (
    "<div>Share</div>%s<div><p>Read on</p><p>"
    + "The rights in all of this site are ours, and ours alone. " * 5
    + "</p></div>"
)


def test_what_stands_around_the_part_that_has_the_text_goes():
    body = f"<div><div>By a writer</div><h1>Title</h1><div><p>{LONG}</p><p>{LONG}</p><p>End {LONG}</p></div></div>"
    found = text_of(f"<h2>News</h2>{FRAME % body}")
    assert found.text.split("\n\n") == ["Title", LONG.strip(), LONG.strip(), f"End {LONG.strip()}"]


@pytest.mark.parametrize(
    "beside",
    [
        f"<div><h2>Second</h2><p>{LONG[:300]}</p></div>",
        f"<p>{LONG[:300]}</p>",
    ],
)
def test_a_section_is_not_all_of_a_page(beside):
    """Another section, and a text behind the largest one, stay, however short."""
    first = f"<div><h2>First</h2><p>{LONG}</p><p>{LONG}</p><p>{LONG}</p></div>"
    found = text_of(f"<h1>Title</h1><p>About this: {LONG[:200]}</p>{first}{beside}")
    blocks = found.text.split("\n\n")
    assert blocks[0] == "Title" and blocks[1].startswith("About this") and blocks[-1] == LONG[:300].strip()


def test_a_page_of_short_lines_keeps_them():
    lines = "".join(f"<h2>Part {n}</h2><p>A short word on {n}</p>" for n in range(40))
    assert (
        text_of(f"<div>Above</div><h1>Title</h1>{lines}<p>{LONG[:150]}</p><h2>End</h2><p>Last</p>").text[-4:] == "Last"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 500 + b"<p>x" * 18_000,
        b"<div class=nav>x" * 500 + b"<p>x" * 18_000,
        b"<table><tr><th>x<td>y" * 120 + b"<td>x" * 18_000,
        b"<table><tr><td>x</table>" * 6_000,
        b"<ul><li>x" * 500 + b"<li>x" * 18_000,
        b"<main>" + b"<ul><li><a href=/x>x</a>" * 490 + b"<li><a href=/x>x</a>" * 6_000,
        b"<blockquote>x" * 500 + b"<pre>\n\n\n" * 10 + b"x\n" * 100_000,
        b"<p>" + b"<b></b>" * 9_000,
        b"<a href=/" + b"&amp;" * 1_500 + b">x</a>" * 15_000,
        b"<svg><a>" * 60_000,
        b"<div>" * 100_000,
        b"<a href=x>" * 100_000,
        b"<table>" * 150_000,
    ],
    ids=lambda body: body[:24].decode(),
)
def test_hostile_pages_cost_what_their_bytes_cost(body):
    start = time.process_time()
    page_text(body, "utf-8", "https://example.org/")
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize(
    "wrapper",
    [
        '<div class="content-wrap advert">%s</div>',
        '<form action="/">%s</form>',
        '<section id="sharing-with-a-single-developer">%s</section>',
        '<div><div><ul><li><a href="/a">%s, as a link</a></ul></div>%%s</div>' % (LONG * 4),
    ],
)
def test_a_name_or_links_beside_it_drop_no_page(wrapper):
    assert text_of(AROUND % (wrapper % f"<p>{LONG}</p>")).text == LONG.strip()


def test_comments_that_are_longer_than_the_page_go():
    thread = f'<div id="comments"><p>{LONG}</p><p>{LONG}</p><p>{LONG}</p></div>'
    assert text_of(f"<div><p>{LONG}</p></div>{thread}").text == LONG.strip()


def test_title_language_and_dates():
    head = (
        '<title>The \n title</title><meta property="article:published_time" content="2024-01-02T03:04:05Z">'
        '<script type="application/ld+json">{"dateModified": "2024-02-03"}</script>'
    )
    found = text_of(f"<p>{LONG}", head)
    assert (found.title, found.language) == ("The title", "en")
    assert (found.published, found.modified) == ("2024-01-02T03:04:05Z", "2024-02-03")


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("extractor", ["xyro", "resiliparse", "trafilatura"])
def test_a_byte_order_mark_is_no_text(codec, extractor):
    """The head, which follows it, stays the head."""
    page = f"\ufeff<html><head><title>Tïtle</title></head><body><p>{'Words of the page. ' * 40}</p></body></html>"
    body = page.encode(codec)
    found = extractor_of(extractor)(body, codec_for(body, ""), "https://example.org/")
    assert found.title == "Tïtle" and found.text.startswith("Words") and found.markdown.startswith("Words")


def test_the_title_of_a_drawing_is_none_of_the_page():
    drawing = "<svg><g><title>Icon</title></g></svg>"
    assert text_of(f"{drawing}<p>{LONG}").title == ""
    assert text_of(f"{drawing}<p>{LONG}", "<title>Page</title>").title == "Page"


def test_a_page_that_lexbor_cannot_be_given_has_no_text():
    assert page_text(b"<p><b>" * 3000, "utf-8", "https://example.org/") is None
    assert page_text(b"", "utf-8", "https://example.org/") is None


PIECES = (
    *("<div>", "</div>", "<ul><li>", "<td>", "<table>", "<a href=x>", "</a>", "<pre>", "word ", "</table>", "<h1>"),
    *("<b>", "&lt;", "<!--", "-->", "<p>", "\0", '<p class="nav">'),
)


@given(st.lists(st.sampled_from(PIECES)))
def test_any_markup_has_some_answer(parts):
    found = page_text("".join(parts).encode(), "utf-8", "https://example.org/")
    assert found is None or (found.text and found.markdown and "\0" not in found.markdown)


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def f1(found: str, truth: str) -> float:
    a, b = words(found), words(truth)
    both = sum((a & b).values())
    return 2 * both / max(sum(a.values()) + sum(b.values()), 1)


@pytest.mark.parametrize("name", ["xyro", "resiliparse", "trafilatura"])
def test_extractors_find_what_people_marked(name):
    """Real pages of documentation, each beside what its reader came for (tests/data/text)."""
    extract = extractor_of(name)
    found = []
    for page in sorted(PAGES.glob("*.html")):
        got = extract(page.read_bytes(), "utf-8", "https://example.org/")
        found.append(f1(got.text if got else "", page.with_suffix(".txt").read_text(encoding="utf-8")))
    assert len(found) >= 6
    assert sum(found) / len(found) > {"xyro": 0.97, "resiliparse": 0.9, "trafilatura": 0.85}[name]
