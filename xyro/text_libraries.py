"""Main texts by other libraries, as `[keep] extractor` names them; each is imported when its first page comes.

"xyro" is ours (page_text.py). Of the others, the text is what the library says; resiliparse's Markdown is written by
our walk over the reduced HTML that it leaves.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from msgspec.structs import replace

from xyro.maintext import LONG, tamed
from xyro.page_text import PageText, facts_of, markdown_of, page_text
from xyro.wire.errors import InputError

Extractor = Callable[[bytes, str, str], PageText | None]
"""(body, codec, URL) -> its text; None where it has none. For a long page not for the event loop"""


def extractor_of(name: str) -> Extractor:
    """The extractor of a name. InputError: its library is not installed."""
    if name == "xyro":
        return page_text
    if importlib.util.find_spec(name) is None:
        raise InputError(f'[keep] extractor = "{name}": it is not installed: `pip install xyro[extractors]`')
    return {"resiliparse": _by_resiliparse, "trafilatura": _by_trafilatura}[name]


def _by_resiliparse(body: bytes, codec: str, url: str) -> PageText | None:
    from resiliparse.extract.html2text import extract_plain_text

    if (tame := tamed(body, codec, LONG)) is None:
        return None
    source = tame.source
    text = extract_plain_text(source, main_content=True, preserve_formatting=True)
    reduced = extract_plain_text(source, main_content=True, preserve_formatting="minimal_html", links=True)
    return _completed(source, text, markdown_of(reduced, url))


def _by_trafilatura(body: bytes, codec: str, url: str) -> PageText | None:
    import trafilatura

    if (tame := tamed(body, codec, LONG)) is None:
        return None
    source = tame.source
    text = trafilatura.extract(source, url=url, include_comments=False) or ""
    markdown = trafilatura.extract(
        source, url=url, include_comments=False, include_links=True, include_tables=True, output_format="markdown"
    )
    return _completed(source, text, markdown or text)


def _completed(source: str, text: str, markdown: str) -> PageText | None:
    """With the title, language and dates that we find."""
    text = text.replace("\0", "").strip()
    return replace(facts_of(source), text=text, markdown=markdown.replace("\0", "").strip()) if text else None
