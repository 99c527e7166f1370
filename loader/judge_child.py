"""The judge's process (judge_process.py starts it): libxml2's validators, on strangers' documents and grammars.

A content model, a pattern or a schema can be written so that it takes for ever, or all memory, and libxml2 does not say
stop. So everything that compiles or applies a grammar happens here, where the kernel says it: CPU (ITIMER_PROF ends the
process in the middle of whatever it does), memory (RLIMIT_AS), and no file, socket or pipe can be opened any more
(RLIMIT_NOFILE), whatever a schema includes. What is needed comes with the request.

A request is a line of JSON with the lengths of the bodies behind it and the seconds of CPU it may take, an answer is a
line of JSON with those it took. Grammars are kept by
key, the last CAPACITY of them, or none where memory runs short: {"unknown": [keys]} asks for them again.
"""

from __future__ import annotations

import gc
import json
import re
import resource
import signal
import sys
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree

from xyro.loader.flatten import flat
from xyro.loader.slim import slim_of
from xyro.wire.messages import MAX_PROBLEMS
from xyro.wire.text import printable
from xyro.wire.urls import resolve

ROOM = 96 << 20
"""bytes of memory beside what the interpreter takes at rest"""
CAPACITY = 32
_LONG = 300
"""characters of one problem"""
_SYNTAX = re.compile(r"Syntax of value|Value.* for attribute")
"""problems that may be none: attribute types are not in a slim DTD, so white space is still in the values; and libxml2
escapes what it compares with a #FIXED value, when it validates a finished tree"""
XSD = "http://www.w3.org/2001/XMLSchema"
Answer = dict[str, Any]
_NAMESPACE, _WARNING = etree.ErrorDomains.NAMESPACE, etree.ErrorLevels.WARNING
_ByDtd = tuple[list[str] | None, Any, list[str]]
"""(problems by the DTD, None where it does not say; the tree; errors against Namespaces in XML)"""
Parts = dict[tuple[str, str], tuple[str, bytes]]
"""(system, public) -> (URL, body)"""


class _Parts(etree.Resolver):  # type: ignore[misc]  # lxml has no types
    """Answers everything: from what came with the request, or with nothing."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._by_url = {system: part for (system, _), part in parts.items()}
        self.asked: dict[tuple[str, str], None] = {}

    def resolve(self, system: str | None, public: str | None, context: Any) -> Any:
        key = (system or "", public or "")
        part = self._parts.get(key) or self._by_url.get(key[0])
        if part is None:
            part = self._by_url.get(resolve("http://x.invalid/", key[0]) or "")
        self.asked[key] = None
        url, body = part or (key[0], b"")
        return self.resolve_string(body, context, base_url=url)


@dataclass(slots=True)
class _Dtd:
    dtd: Any
    identifier: tuple[str, str]
    url: str
    parts: Parts
    slim: tuple[bytes, bytes] | None


def parser_of(parts: Parts, charset: str = "", **options: Any) -> tuple[Any, _Parts]:
    resolver = _Parts(parts)
    options = {"load_dtd": True, "attribute_defaults": True, **options}
    try:
        parser = etree.XMLParser(encoding=charset or None, resolve_entities=True, no_network=True, **options)
    except (LookupError, ValueError):  # a charset that libxml2 does not know
        parser = etree.XMLParser(resolve_entities=True, no_network=True, **options)
    parser.resolvers.add(resolver)
    return parser, resolver


class Judge:
    """The grammars, and what is done with them."""

    def __init__(self) -> None:
        self._grammars: OrderedDict[str, Any] = OrderedDict()

    def answer(self, request: Answer, bodies: list[bytes]) -> Answer:
        done: Answer = getattr(self, "do_" + request["do"])(request, bodies)
        return done

    def forget(self) -> bool:
        """Drop all grammars; were there any?"""
        some = bool(self._grammars)
        self._grammars.clear()
        gc.collect()
        return some

    def do_dtd(self, request: Answer, bodies: list[bytes]) -> Answer:
        """Compile the DTD of {public, system, name}; or, with `wrapper`, count what a DTD by itself declares."""
        parts = _parts(request, bodies)
        parser, resolver = parser_of(parts)
        identifier = (request["system"], request["public"])
        document = f"<!DOCTYPE {request['name']} {_external(*identifier)}><{request['name']}/>"
        dtd = etree.fromstring(document.encode(), parser).getroottree().docinfo.externalDTD
        if dtd is None:
            return {"elements": 0, "asked": [], "slim": None}
        asked = [key for key in resolver.asked if key in parts]
        own: Parts = {key: parts[key] for key in asked}
        elements = sum(1 for _ in dtd.iterelements())
        slim = (
            slim_of(dtd, [body for _, body in own.values()]) if elements and len(asked) == len(resolver.asked) else None
        )
        self._keep(request["key"], _Dtd(dtd, identifier, own[identifier][0] if identifier in own else "", own, slim))
        texts = None if slim is None else [text.decode() for text in slim]
        return {"elements": elements, "asked": [list(key) for key in asked], "slim": texts}

    def do_rng(self, request: Answer, bodies: list[bytes]) -> Answer:
        parts = _parts(request, bodies)
        self._keep(request["key"], etree.RelaxNG(flat(request["url"], lambda url: _tree(url, parts))))
        return {}

    def do_xsd(self, request: Answer, bodies: list[bytes]) -> Answer:
        """Compile {pairs: [[namespace, URL]]}: a schema that imports them all, or the only one."""
        parts, pairs = _parts(request, bodies), request["pairs"]
        if len(pairs) == 1:
            tree = _tree(pairs[0][1], parts)
        else:
            tree = _tree_of(_driver(pairs), "http://x.invalid/", parts)
        self._keep(request["key"], etree.XMLSchema(tree))
        return {}

    def do_judge(self, request: Answer, bodies: list[bytes]) -> Answer:
        """Judge the document bodies[0]: {"dtd": problems or None, "schemas": [problems ...]}; no problems: valid."""
        wanted = [key for key in (request["dtd"], *request["schemas"]) if key]
        unknown = [key for key in wanted if key not in self._grammars]
        if unknown:
            return {"unknown": unknown}
        parts = _parts(request, bodies[1:])
        entry: _Dtd | None = self._grammars[request["dtd"]] if request["dtd"] else None
        problems, tree, errors = self._by_dtd(request, bodies[0], parts, entry)
        schemas = [self._by_schema(self._use(key), tree) for key in request["schemas"]]
        if problems is None:
            return {"dtd": None, "schemas": [errors + found for found in schemas]}
        return {"dtd": errors + problems, "schemas": schemas}

    def _by_dtd(self, request: Answer, body: bytes, parts: Parts, entry: _Dtd | None) -> _ByDtd:
        charset = request["charset"]
        if entry is None or entry.slim is None:
            if entry is not None:
                parts = entry.parts | parts
            return _full(body, charset, parts) if request["name"] else (None, *_parsed(body, charset, parts))
        stand_in: Parts = {entry.identifier: (entry.url, entry.slim[b"&" in body])}
        tree, errors = _parsed(body, charset, parts | stand_in)
        self._use(request["dtd"])
        wrong_root = _root_problem(tree, request["name"])
        if entry.dtd.validate(tree) and not wrong_root:
            return [], tree, errors
        problems = wrong_root + _problems(entry.dtd.error_log)
        if any(_SYNTAX.search(problem) for problem in problems):
            return _full(body, charset, entry.parts | parts)
        return problems, tree, errors

    def _by_schema(self, schema: Any, tree: Any) -> list[str]:
        return [] if schema.validate(tree) else _problems(schema.error_log) or ["not valid"]

    def _use(self, key: str) -> Any:
        self._grammars.move_to_end(key)
        return self._grammars[key]

    def _keep(self, key: str, grammar: Any) -> None:
        self._grammars[key] = grammar
        while len(self._grammars) > CAPACITY:
            self._grammars.popitem(last=False)


def _parts(request: Answer, bodies: list[bytes]) -> Parts:
    named = zip(request.get("parts", ()), bodies, strict=True)
    return {(system, public): (url, body) for (system, public, url), body in named}


def _parsed(body: bytes, charset: str, parts: Parts) -> tuple[Any, list[str]]:
    """The tree, and errors against Namespaces in XML, which are none against XML: what is under them can be judged."""
    parser, _ = parser_of(parts, charset)
    try:
        tree = etree.fromstring(body, parser)
    except etree.XMLSyntaxError:
        if any(error.level > _WARNING and error.domain != _NAMESPACE for error in parser.error_log):
            raise
        parser, _ = parser_of(parts, charset, recover=True)
        tree = etree.fromstring(body, parser)
    return tree.getroottree(), _errors(parser, _NAMESPACE)


def _full(body: bytes, charset: str, parts: Parts) -> _ByDtd:
    """Validate while parsing, with the whole DTD. None: it declares no elements at all."""
    parser, _ = parser_of(parts, charset, dtd_validation=True, recover=True)
    tree = etree.fromstring(body, parser).getroottree()
    declared = [dtd for dtd in (tree.docinfo.internalDTD, tree.docinfo.externalDTD) if dtd is not None]
    errors = _errors(parser, _NAMESPACE)
    if not any(True for dtd in declared for _ in dtd.iterelements()):
        return None, tree, errors
    return _errors(parser, etree.ErrorDomains.VALID), tree, errors


def _errors(parser: Any, domain: int) -> list[str]:
    """Problems of one domain. Warnings are none: a second ATTLIST for an element is legal (XML 1.0 3.3), and so is a
    namespace whose name is no URI."""
    return _problems(
        error
        for error in parser.error_log
        if error.domain == domain and error.level > _WARNING and not error.type_name.startswith("WAR_")
    )


def _root_problem(tree: Any, name: str) -> list[str]:
    root = tree.getroot()
    local = etree.QName(root).localname
    qualified = f"{root.prefix}:{local}" if root.prefix else local
    return [] if qualified == name else [f"line {root.sourceline}: root element {qualified}, but DOCTYPE {name}"]


def _tree(url: str, parts: Parts) -> Any:
    base, body = parts[url, ""]
    return _tree_of(body, base, parts)


def _tree_of(body: bytes, base: str, parts: Parts) -> Any:
    parser, _ = parser_of(parts, load_dtd=False, attribute_defaults=False)
    return etree.fromstring(body, parser, base_url=base).getroottree()


def _driver(pairs: Iterable[tuple[str, str]]) -> bytes:
    root = etree.Element(f"{{{XSD}}}schema")
    for namespace, url in sorted(pairs):
        kind = "import" if namespace else "include"
        etree.SubElement(
            root, f"{{{XSD}}}{kind}", {"schemaLocation": url} | ({"namespace": namespace} if namespace else {})
        )
    for include in root.findall(f"{{{XSD}}}include"):  # includes come first
        root.insert(0, include)
    done: bytes = etree.tostring(root)
    return done


def _external(system: str, public: str) -> str:
    quoted = f"'{system}'" if '"' in system else f'"{system}"'
    return f'PUBLIC "{public}" {quoted}' if public else f"SYSTEM {quoted}"


def _problems(errors: Iterable[Any]) -> list[str]:
    lines = dict.fromkeys(f"line {error.line}: {printable(error.message)}"[:_LONG] for error in errors)
    return list(lines)[:MAX_PROBLEMS]


# The process


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    judge, asked = Judge(), sys.stdin.buffer
    _confine()
    for line in asked:
        request = json.loads(line)
        bodies = [asked.read(size) for size in request["sizes"]]
        before = _spent()  # the timer itself tells no less than 4 ms
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        answer = _tried(judge, request, bodies)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        sys.stdout.write(json.dumps({**answer, "cpu": max(0.0, _spent() - before)}) + "\n")
        sys.stdout.flush()


def _spent() -> float:
    """Seconds of CPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _confine() -> None:
    """From here on: no more memory than ROOM, no core file, and nothing can be opened."""
    etree.fromstring("<x/>")
    resolve("http://x.invalid/", "y")
    printable("\x1b\u202e")
    at_rest = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (at_rest + ROOM, at_rest + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def _tried(judge: Judge, request: Answer, bodies: list[bytes]) -> Answer:
    """The answer. What runs out of memory beside kept grammars (DocBook's is 6 MB) is tried once more without them."""
    try:
        return judge.answer(request, bodies)
    except MemoryError:
        if judge.forget():
            return _tried(judge, request, bodies)
        return {"error": f"needs more than {ROOM >> 20} MiB of memory"}
    except (etree.LxmlError, ValueError, LookupError, RecursionError, AttributeError, OSError) as error:
        return {"error": printable(str(error) or type(error).__name__)[:_LONG]}


if __name__ == "__main__":
    main()
