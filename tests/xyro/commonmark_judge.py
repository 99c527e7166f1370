"""Independent judge of our Markdown: markdown-it renders it as HTML again, lxml reads that and the page alike."""

from __future__ import annotations

from urllib.parse import unquote

import lxml.html
from lxml.html import HtmlElement
from markdown_it import MarkdownIt

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
CONTAINERS = ("ul", "ol", "li", "blockquote")
CODE = ("code", "kbd", "samp")
LEAVES = ("p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "td", "th", "div", "body")
Shown = list[tuple[object, ...]]


def rendered(markdown: str) -> str:
    """Markdown as HTML, by CommonMark and GitHub's tables."""
    return RENDERER.render(markdown)


class Reader:
    """The blocks that a piece of HTML shows: (places, kind, text, links, code), from top to bottom."""

    def __init__(self) -> None:
        self.shown: Shown = []
        self._text: list[str] = []
        self._links: list[tuple[str, str]] = []
        self._code: list[str] = []
        self._numbers: dict[HtmlElement, int] = {}

    def read(self, html: str) -> Shown:
        self._walk(lxml.html.fromstring(f"<html><body>{html}</body></html>").find("body"), (), "")
        return self.shown

    def _walk(self, node: HtmlElement, places: tuple[HtmlElement, ...], kind: str) -> None:
        tag = node.tag if isinstance(node.tag, str) else ""
        begun = len(self._text)
        if tag in CONTAINERS:
            self._end(places, kind)
            places = (*places, node)
            kind = "p"
        elif tag in LEAVES:
            self._end(places, kind)
            kind = {"div": "p", "body": "p", "th": "td"}.get(tag, tag)
        self._text.append(node.text or "")
        for child in node:
            self._walk(child, places, kind)
            self._text.append(child.tail or "")
        words = folded("".join(self._text[begun:]))
        if tag == "a" and words and node.get("href"):
            self._links.append((words, unquote(node.get("href"))))
        elif tag in CODE and kind != "pre" and next(node.iterancestors(*CODE), None) is None:
            self._code.append("".join(words.split()))
        elif tag in CONTAINERS or tag in LEAVES:
            self._end(places, kind)

    def _end(self, places: tuple[HtmlElement, ...], kind: str) -> None:
        text = "".join(self._text)
        text = text.replace("\xa0", " ").strip("\n") if kind == "pre" else folded(text)
        if text.strip():
            path = tuple((place.tag, self._numbers.setdefault(place, len(self._numbers))) for place in places)
            self.shown.append((path, kind, text, tuple(self._links), "".join(self._code)))
        self._text, self._links, self._code = [], [], []


def folded(text: str) -> str:
    """White space as a browser shows it."""
    return " ".join(text.split())


def shown(html: str) -> Shown:
    """The blocks of a piece of HTML."""
    return Reader().read(html)
