"""Validates documents by the grammars they name: DTD (both subsets), RELAX NG, XML Schema.

    judged = validator.judge(body, charset, supply)      supply: the one of the streaming read that went well

The streaming read told what the document is and which grammars it names (supply.outline), and asked for the DTD's
parts. Schemas are asked of the same supply here: those that are not there are its new needs. Compiling and applying
grammars is done by a process that can be ended (judge_process.py), within its SECONDS of CPU for all grammars of a
document; a grammar, or a site, whose documents take more is not tried for a while (trust.py). A document that names no
grammar costs nothing.

Verdicts (wire.messages.Verdict): INVALID if one grammar says so, else UNVALIDATED if one could not be applied, else
VALID; a DOCTYPE that declares entities only is no grammar.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from xyro.loader.catalog import Catalog
from xyro.loader.grammar_trust import GrammarTrust
from xyro.loader.judge_process import Died, JudgeProcess
from xyro.loader.modules import not_alone
from xyro.loader.needs import AS_DTD, OWN, ShelfPart, Supply
from xyro.loader.outline import Outline
from xyro.loader.parse import ParseLimits, XmlFault, encoding_of, pieces, read, unmarked
from xyro.loader.schemas import Reference, Schemas, references
from xyro.loader.slim import Slim, Slims, is_plain
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.messages import MAX_PROBLEMS, Verdict
from xyro.wire.urls import host_of, site_of

_LEAST = 0.01
"""seconds of CPU below which nothing is begun"""
_COSTLY = 0.1
"""seconds of CPU from which on an error (no memory left) is as bad as no answer"""
_LEGACY = "about:legacy-compat"
PartsByReference = dict[tuple[str, str], ShelfPart]


class Judged(Struct, frozen=True):
    """The judgement of one document (fields as in wire.messages.Document)."""

    verdict: Verdict
    problems: tuple[str, ...] = ()
    root: str = ""
    public_id: str = ""
    grammars: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    depth: int = 0
    elements: int = 0
    tags: int = 0


class _Compiled(Struct, frozen=True):
    """A grammar that the process has compiled."""

    validates: bool = True
    """of a DTD: it declares elements"""
    slim: Slim | None = None


class _Plan(Struct):
    """The questions to the process about one document."""

    grammars: dict[str, None] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    doctype: str = ""
    """name of the root element, where a DTD is to be applied"""
    dtd: str = ""
    """key of the compiled DTD; empty: the document is parsed with the whole of it"""
    schemas: list[str] = field(default_factory=list)
    """keys"""
    parts: PartsByReference = field(default_factory=dict)
    recipes: dict[str, tuple[dict[str, Any], PartsByReference]] = field(default_factory=dict)
    """by key: how the process is told the grammar again, when it has been started again or has dropped it"""


class Validator:
    """Not for two threads at once. `cache`: DTDs and schemas remembered (the process keeps 32 compiled)."""

    def __init__(
        self,
        limits: ParseLimits,
        catalog: Catalog | None = None,
        *,
        cache: int = 64,
        process: JudgeProcess | None = None,
    ) -> None:
        self.catalog = catalog
        self.slims = Slims(cache)
        """for Supply"""
        self._limits = limits
        self._cache = cache
        self._schemas = Schemas(limits)
        self._process = process or JudgeProcess()
        self._until = 0.0
        """what the process may have spent when the document under way is done"""
        self._site = ""
        """registrable domain of the document under way"""
        self._trust = GrammarTrust()
        self._compiled: OrderedDict[str, _Compiled] = OrderedDict()

    @property
    def spent(self) -> float:
        """Seconds of CPU that the process took, for all documents."""
        return self._process.spent

    def close(self) -> None:
        """End the process; another judgement starts it again."""
        self._process.close()

    def judge(self, body: bytes, charset: str, supply: Supply) -> Judged:
        """Judge a well-formed document (`body` unzipped). It never raises for what a document does."""
        outline = self._outline(body, charset, supply)
        body, charset = unmarked(body.lstrip(b" \t\r\n")), encoding_of(outline.head, charset) or ""
        plan = _Plan()
        self._begin(supply)
        try:
            self._plan_dtd(outline, supply, plan)
            for reference in references(outline, supply.url):
                self._plan_schema(reference, supply, plan)
            verdict, problems = self._verdict(body, charset, plan)
        except XmlFault as fault:
            verdict, problems = Verdict.UNVALIDATED, [str(fault)]
        return _judged(verdict, problems, outline, supply, plan.grammars)

    def judge_dtd(self, body: bytes, charset: str, supply: Supply) -> Judged:
        """Judge a DTD by itself: NO_GRAMMAR where it is one, else UNVALIDATED; tags: declared elements.

        One whose parts could not all be had, or that is itself a part of another, is not judged alone.
        """
        asked, module = tuple(supply.asked), not_alone(body, supply.needs)
        if supply.needs:
            return Judged(Verdict.UNVALIDATED, (module,), parts=asked)
        answered = dict(supply.answered)
        answered.setdefault((OWN, ""), ShelfPart(supply.url, body))
        request = {"do": "dtd", "key": "", "public": "", "system": OWN, "name": "x", **_named(answered)}
        self._begin(supply)
        answer = self._asked(request, answered.values(), _digest(answered, AS_DTD))
        verdict = Verdict.UNVALIDATED if "error" in answer else Verdict.NO_GRAMMAR
        problems = (f"as a DTD: {answer['error']}",) if "error" in answer else ()
        if not answer.get("elements") and module:
            verdict, problems = Verdict.UNVALIDATED, (module,)
        return Judged(verdict, problems, parts=asked, tags=answer.get("elements", 0))

    def _outline(self, body: bytes, charset: str, supply: Supply) -> Outline:
        """Return the outline of the streaming read; where it was not asked to make one, read again."""
        if not supply.outline.root:
            handler = XmlLinks(DocumentLinks(supply.url, 0.0))
            with suppress(XmlFault):  # read well-formed before: then with fewer parts than now
                stream, outline = pieces(body, self._limits), supply.outline
                read(stream, charset, lambda tag: handler, self._limits, supply.answer, outline=outline)
            handler.close()
        return supply.outline

    # What a document names

    def _plan_dtd(self, outline: Outline, supply: Supply, plan: _Plan) -> None:
        plan.parts = supply.answered
        if outline.doctype is None:
            return
        public, system, name = outline.doctype
        if (not system or system == _LEGACY) and b"[" not in outline.head:
            return
        if system and system != _LEGACY:
            plan.grammars[supply.name_of(system, public)] = None
        if supply.needs or supply.refused:
            missing = next(iter(supply.needs), "a part that is never read")
            plan.troubles.append(f"{missing}: a part that could not be had")
            return
        plan.doctype = name
        if supply.slim is not None:
            plan.dtd = supply.slim.key
            plan.recipes[plan.dtd] = (_compile(plan.dtd, outline.doctype), dict(supply.slim.parts))
        elif system and is_plain(outline.head):
            self._compile_dtd(outline.doctype, supply, plan)

    def _compile_dtd(self, doctype: tuple[str, str, str], supply: Supply, plan: _Plan) -> None:
        public, system, _ = doctype
        key = _digest(supply.answered, f"{public}\n{system}".encode())
        plan.recipes[key] = (_compile(key, doctype), supply.answered)
        if key not in self._compiled:
            answer = self._tell(key, plan)
            if "error" in answer:
                plan.troubles.append(f"{supply.name_of(system, public)}: {answer['error']}")
                plan.doctype = ""
                return
            slim = self._slim(key, doctype, answer, supply)
            _remember(self._compiled, key, _Compiled(answer["elements"] > 0, slim), self._cache)
        compiled = self._compiled[key]
        if not compiled.validates:
            plan.troubles.append(f"{supply.name_of(system, public)}: declares no elements")
            plan.doctype = ""
        elif compiled.slim is not None:
            self.slims.put(public, supply.name_of(system, ""), compiled.slim)
            plan.dtd = key

    def _slim(self, key: str, doctype: tuple[str, str, str], answer: dict[str, Any], supply: Supply) -> Slim | None:
        """Only of parts that can be found again, so that it is seen when one of them changes."""
        public, system, _ = doctype
        url = supply.name_of(system, "")
        asked: list[tuple[str, str]] = [(system, public) for system, public in answer["asked"]]
        parts = tuple((asked, supply.answered[asked]) for asked in asked)
        if answer["slim"] is None or not all(supply.look(*asked) == part for asked, part in parts):
            return None
        defaults, entities = (text.encode() for text in answer["slim"])
        pages = {part.url: None for _, part in parts if part.url in supply.asked}
        names = {page: None for page in supply.asked if page in pages or page == url}
        return Slim(key, supply.answered[system, public].url, parts, names, defaults, entities)

    def _plan_schema(self, reference: Reference, supply: Supply, plan: _Plan) -> None:
        plan.grammars.update((url, None) for _, url in reference.urls)
        if reference.trouble:
            plan.troubles.append(reference.trouble)
            return
        schema = self._schemas.find(reference, supply)
        if isinstance(schema, str):
            plan.troubles.append(schema)
            return
        bodies: PartsByReference = {(url, ""): part for url, part in schema.parts}
        asked: dict[str, Any] = {"do": reference.kind, "key": schema.key, "pairs": reference.urls}
        plan.recipes[schema.key] = ({**asked, "url": reference.urls[0][1]}, bodies)
        if schema.key not in self._compiled:
            answer = self._tell(schema.key, plan)
            if "error" in answer:
                plan.troubles.append(f"{reference.urls[0][1]}: {answer['error']}")
                return
            _remember(self._compiled, schema.key, _Compiled(), self._cache)
        plan.schemas.append(schema.key)

    # The judgement

    def _verdict(self, body: bytes, charset: str, plan: _Plan) -> tuple[Verdict, list[str]]:
        if not plan.doctype and not plan.schemas:
            return (Verdict.UNVALIDATED if plan.troubles else Verdict.NO_GRAMMAR), plan.troubles
        keys = [key for key in (plan.dtd, *plan.schemas) if key]
        request = {"do": "judge", "charset": charset, "dtd": plan.dtd, "name": plan.doctype, "schemas": plan.schemas}
        asked, bodies = {**request, **_named(plan.parts)}, [ShelfPart("", body), *plan.parts.values()]
        answer = self._asked(asked, bodies, *keys)
        if "unknown" in answer:
            for key in answer["unknown"]:
                self._tell(key, plan)
            answer = self._asked(asked, bodies, *keys)
        if "unknown" in answer or "error" in answer:
            return Verdict.UNVALIDATED, [*plan.troubles, f"not validated: {answer.get('error', 'grammar lost')}"]
        problem_lists = [problems for problems in (answer["dtd"], *answer["schemas"]) if problems is not None]
        problems = list(dict.fromkeys(problem for problem_list in problem_lists for problem in problem_list))
        if problems:
            return Verdict.INVALID, problems + plan.troubles
        if plan.troubles:
            return Verdict.UNVALIDATED, plan.troubles
        return (Verdict.VALID if problem_lists else Verdict.NO_GRAMMAR), []

    def _tell(self, key: str, plan: _Plan) -> dict[str, Any]:
        """Have a grammar compiled."""
        request, parts = plan.recipes[key]
        return self._asked({**request, **_named(parts)}, parts.values(), key)

    def _asked(self, request: dict[str, Any], parts: Iterable[ShelfPart], *keys: str) -> dict[str, Any]:
        """The answer, or {"error": why}. Which of several grammars took too long is not known: they are one here."""
        key, left = " ".join(keys), self._until - self._process.spent
        if why := self._trust.refuses(key) or self._trust.refuses(self._site):
            return {"error": why}
        if left < _LEAST:
            return {"error": f"takes more than {self._process.seconds:g} s of CPU"}
        try:
            answer = self._process.ask(request, [part.body for part in parts], left)
            failed = "error" in answer and self._until - self._process.spent < left - _COSTLY
        except Died as died:
            answer, failed = {"error": str(died)}, True
        if failed:
            if left > self._process.seconds / 2:  # else what came before is to blame
                self._trust.died(key, answer["error"], wholly=request["do"] != "judge")
            self._trust.died(self._site, f"other documents of {self._site}: {answer['error']}", wholly=False)
        elif request["do"] == "judge" and "unknown" not in answer:
            self._trust.judged(key)
            self._trust.judged(self._site)
        return answer

    def _begin(self, supply: Supply) -> None:
        """Begin a document: the process may take its SECONDS again."""
        self._until = self._process.spent + self._process.seconds
        self._site = site_of(host_of(supply.url))


def _judged(
    verdict: Verdict, problems: Sequence[str], outline: Outline, supply: Supply, grammars: Iterable[str]
) -> Judged:
    names = tuple(grammars)
    return Judged(
        verdict, tuple(problems[:MAX_PROBLEMS]), outline.root, outline.doctype[0] if outline.doctype else "", names,
        tuple(url for url in supply.asked if url not in names), outline.depth, outline.elements, len(outline.tags),
    )  # fmt: skip


def _compile(key: str, doctype: tuple[str, str, str]) -> dict[str, Any]:
    public, system, name = doctype
    return {"do": "dtd", "key": key, "public": public, "system": system, "name": name}


def _named(parts: PartsByReference) -> dict[str, Any]:
    return {"parts": [(system, public, part.url) for (system, public), part in parts.items()]}


def _digest(parts: PartsByReference, name: bytes) -> str:
    digest = hashlib.blake2b(name, digest_size=16)
    for (system, public), part in parts.items():
        digest.update(repr((system, public, part.url, len(part.body))).encode())
        digest.update(part.body)
    return digest.hexdigest()


def _remember(table: OrderedDict[str, Any], key: str, value: Any, capacity: int) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > capacity:
        table.popitem(last=False)
