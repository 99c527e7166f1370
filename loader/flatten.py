"""RELAX NG without includes: one grammar instead of many files (RELAX NG specification, sections 4.6 and 4.7).

libxml2 opens what a schema includes by itself, past the resolvers of lxml, so it must never see an include.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lxml import etree

from xyro.wire.urls import resolve

_RNG = "{http://relaxng.org/ns/structure/1.0}"
_DEEPEST = 32


def flat(url: str, load: Callable[[str], Any]) -> Any:
    """The schema at `url` as one tree. `load` gives the tree of a canonical URL. ValueError: it includes itself."""
    return _flat(url, load, ())


def _flat(url: str, load: Callable[[str], Any], way: tuple[str, ...]) -> Any:
    if url in way or len(way) >= _DEEPEST:
        raise ValueError(f"{url}: a schema that includes itself")
    tree = load(url)
    for element in [*tree.iter(_RNG + "externalRef", _RNG + "include")]:
        href = element.get("href", "")
        target = resolve(element.base or url, href) or resolve("http://x.invalid/", href) or href
        part = _flat(target, load, (*way, url)).getroot()
        if element.tag == _RNG + "include":
            _include(element, part)
        else:
            _refer(element, part, tree)
    return tree


def _include(include: Any, grammar: Any) -> None:
    """Section 4.7: it becomes a div, and what the include defines is taken out of the grammar."""
    if grammar.tag != _RNG + "grammar":
        raise ValueError(f"{include.get('href')}: includes what is no grammar")
    own = {_component(element) for element in include.iter(_RNG + "define", _RNG + "start")}
    for element in [*_components(grammar)]:
        if _component(element) in own:
            element.getparent().remove(element)
    inner = etree.Element(_RNG + "div", dict(grammar.attrib), nsmap=grammar.nsmap)
    inner.extend(list(grammar))
    include.tag = _RNG + "div"
    del include.attrib["href"]
    include.insert(0, inner)


def _components(grammar: Any) -> list[Any]:
    """Start and define elements of this grammar, those in its divs too, not those of grammars inside it."""
    found: list[Any] = []
    for element in grammar.iterchildren(_RNG + "start", _RNG + "define", _RNG + "div"):
        found.extend(_components(element) if element.tag == _RNG + "div" else [element])
    return found


def _component(element: Any) -> str:
    return element.get("name", "").strip() if element.tag == _RNG + "define" else ""


def _refer(reference: Any, pattern: Any, tree: Any) -> None:
    """Section 4.6: the pattern stands in its place; ns is handed down, datatypeLibrary is not."""
    if reference.get("ns") is not None and pattern.get("ns") is None:
        pattern.set("ns", reference.get("ns"))
    if pattern.get("datatypeLibrary") is None:
        pattern.set("datatypeLibrary", "")
    pattern.tail = reference.tail
    parent = reference.getparent()
    if parent is None:
        tree._setroot(pattern)
    else:
        parent.replace(reference, pattern)
