"""Links and text of Markdown pages: `[fetch] parsers = { "text/markdown" = "markdown" }`.

A parser for PDF or JSON goes in the same place: the body comes whole, as the server sent it.
"""

import re

import xyro

LINK = re.compile(r"\[[^\[\]]*\]\(<?([^\s<>()]+)>?(?:\s[^()]*)?\)|<(https?://[^\s<>]+)>")
TITLE = re.compile(r"^#\s+(.+)$", re.MULTILINE)


def parse(page: xyro.ReadPage) -> xyro.ParsedPage:
    """The page's links, absolute or relative, its text, and its first heading as the title."""
    text = page.body.decode(page.charset, "replace")
    links = [inline or bare for inline, bare in LINK.findall(text)]
    title = TITLE.search(text)
    return xyro.ParsedPage(links=links, text=text, title=title[1] if title else "")
