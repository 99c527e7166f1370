"""Our Markdown, rendered by CommonMark's rules, shows what the page showed, whatever its text is."""

from __future__ import annotations

import html
from urllib.parse import unquote, urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xyro.commonmark_judge import rendered, shown
from xyro.page_text import markdown_of, page_text

URL = "https://example.org/d/"
HOSTILE = (
    *("<i>", "</p>", "<!--", "<http://a.b>", "&lt;", "&amp;", "&", "&#60;", "amp;", "[x](y)", "![x](y)"),
    *("[", "]", "](", "(", ")", "#", "# ", "##", "1.", "1. ", "2) ", "-", "- "),
    *("---", "+ ", "* ", "*", "**", "***", "_", "__", "a_b"),
    *("`", "``", "```", "~", "~~", "~~~", "=", "===", ">", "> ", "|", "| a |", "\\", "\\\\", "!", ":"),
    *("[x]: /y", "{", "$", "a", "b c", "é", "重要", "。", "“", "\u0301", "\u00a0", "\u2028", " ", " ", " "),
    *(" ", "x" * 40, "javascript:a", "0"),
)
TEXTS = st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=8).map("".join)
ADDRESSES = st.sampled_from(
    ["/x", "y_z*", "/a(b)", "/a(b", "/a)b", "?q=`&lt;b", "?a=[b]&c;d", "#e_f", "/?\\(", "?~x~|y", "mailto:a@b.c"]
)
STYLES = st.sampled_from(["b", "i", "code", "em", "strong", "kbd", "span"])


def element(tag: str, inner: str, attributes: str = "") -> str:
    return f"<{tag}{attributes}>{inner}</{tag}>"


def linked(address: str, inner: str) -> str:
    return element("a", inner, f' href="{html.escape(address)}"')


def lines(inner):
    return st.lists(inner, min_size=1, max_size=4).map("".join)


WORDS = TEXTS.map(lambda text: html.escape(text, quote=False))
STYLED = st.recursive(WORDS, lambda inner: st.builds(element, STYLES, lines(inner)), max_leaves=4)
LINES = lines(STYLED | st.builds(linked, ADDRESSES, lines(STYLED)))
LINES |= st.builds(element, STYLES, lines(WORDS | st.builds(linked, ADDRESSES, lines(WORDS))))
LEAVES = st.builds(element, st.sampled_from(["p", "p", "p", "h1", "h2", "h6"]), LINES)
CODE = st.lists(st.sampled_from([*HOSTILE, "\n", "\n", "\t", "    "]), max_size=12).map(
    lambda parts: element("pre", "\n" + html.escape("".join(parts), quote=False))
)


def listed(tag: str, start: int, items: list[str]) -> str:
    return element(tag, "".join(element("li", item) for item in items), f' start="{start}"' if tag == "ol" else "")


BLOCKS = st.recursive(
    LEAVES | CODE,
    lambda inner: (
        st.builds(
            listed, st.sampled_from(["ul", "ol"]), st.integers(1, 120), st.lists(lines(inner) | LINES, max_size=3)
        )
        | st.builds(element, st.just("blockquote"), lines(inner))
    ),
    max_leaves=6,
)
ROWS = st.lists(st.tuples(LINES, LINES), min_size=2, max_size=3).map(
    lambda rows: element(
        "table",
        "".join(
            element("tr", "".join(element("td" if n else "th", f"w{cell}") for cell in row))
            for n, row in enumerate(rows)
        ),
    )
)
PAGES = lines(BLOCKS | BLOCKS | ROWS | st.builds(element, st.just("blockquote"), ROWS))


@pytest.mark.long
@given(PAGES)
def test_what_a_page_shows_is_what_its_markdown_shows(page):
    resolved = shown(page)
    made = markdown_of(page, URL)
    again = shown(rendered(made))
    assert [row[:3] for row in again] == [row[:3] for row in resolved], made
    assert [row[4] for row in again] == [row[4] for row in resolved], made
    assert [row[3] for row in again] == [
        tuple((words, unquote(urljoin(URL, href))) for words, href in row[3]) for row in resolved
    ], made


@pytest.mark.parametrize(
    ("page", "markdown"),
    [
        ("<a href=u><h3>T</h3><p>x <b>y</b></p></a> more", "### [T]({u})\n\n[x **y**]({u})\n\nmore"),
        ("<b>x<p>y</p></b>z", "**x**\n\n**y**\n\nz"),
        ("<p><b>“So”</b>said. <code>a <a href=u>b</a></code>", "“So”said. `a` [`b`]({u})"),
        ("<ul><li>a</ul><ul><li>b</ul><ol><li>c</ol><ol start=7><li>d</ol>", "- a\n\n* b\n\n1. c\n\n7) d"),
        ("<ul><li><ul><li><ol><li>deep</ol></ul></ul>", "- - 1. deep"),
        ("<ol start=10><li>a<ul><li>b</ul><ol start=2><li>c</ol></ol>", "10. a\n    - b\n\n    2. c"),
        ("<blockquote><p>a<p>b<ul><li>c</ul></blockquote>", "> a\n>\n> b\n>\n> - c"),
        ("<ol><li>x<pre>a\n```b</pre></ol>", "1. x\n\n   ````\n   a\n   ```b\n   ````"),
        (
            "<blockquote><table><tr><th>a<th>b<tr><td>1<td><code>x|y</code></table></blockquote>",
            "> | a | b |\n> | --- | --- |\n> | 1 | `x\\|y` |",
        ),
        ("<a href='java&#10;script:f()'>x</a> <a href=data:text/html,y>y</a> <a href=VBScript:z>z</a>", "x y z"),
        ("<a href=mailto:a@b.c>mail</a> <a href=u></a><a href=u>&nbsp;</a>.", "[mail](mailto:a@b.c) ."),
    ],
)
def test_markdown_of_what_markdown_cannot_nest(page, markdown):
    made = markdown_of(page, URL)
    assert made == markdown.replace("{u}", f"{URL}u")
    found = page_text(page.encode(), "utf-8", URL)
    assert found is not None and found.markdown == made


def test_an_item_keeps_its_place_where_the_text_above_it_went():
    """Navigation is left out; what remains of the list is no code, though it is indented."""
    links = "".join(f"<li><a href=/{n}>Chapter {n}</a>" for n in range(9))
    text = "A sentence of the page. " * 20
    page = f"<main><p>{text}<ul><li><ul>{links}</ul><ul><li><ol><li>{text}</ol></ul></ul></main>"
    found = page_text(page.encode(), "utf-8", URL)
    assert found is not None and found.markdown.split("\n\n")[-1] == f"- - 1. {text.strip()}"
