"""Blocks of text as Markdown (CommonMark, and tables as GitHub writes them) that shows what the page showed.

What a page says stays text: a character that would mean something gets a backslash. Code stays as it is, between more
backticks than it has itself. A block's place among lists and quotes is told by its path of places, so an item is
indented by the marker that its own list has here, whatever went of the blocks around it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from msgspec import Struct

from xyro.text_blocks import HEADINGS, TextBlock

MARK = "\1"
"""what the marks in a line begin with; no text has it"""
STRONG, EMPHASIS, CODE, LINK = ("\1{", "\1}"), ("\1(", "\1)"), ("\1#", "\1$"), ("\1@", "\1%")
"""what stands in a line where one begins and where it ends"""
_STYLED = re.compile("\1[{(#]")
_PUNCTUATION = frozenset(string.punctuation)
_MEANT = re.compile(
    "\1#[^\1`]*\1[$]|" + r"`|\[|\]"
    r"|\*|_(?:(?<![^\W_]_)|(?![^\W_]))"  # within a word it is none
    r"|~(?=[^~]*~)"
    "|<(?=[A-Za-z/!?\1])|&(?=#?\\w+;|\1)|!(?=\1)"
    "|" + r"\\(?=[!-/:-@\[-`{-~]| ?" + "\1)"
)
"""plain code; a character that means something in Markdown, or may do so before what a mark becomes. Each branch begins
with one character: so the search is fast"""
_PLAIN_EMPHASIS = re.compile("(?<!\1[^\1])\1([{(])( ?)([^\1]*[^\1 ])( ?)\1[})](?!\1)")
"""emphasis of text and code alone, away from other marks"""
_BEGINS = re.compile(r"(?:#{1,6}(?= |\Z)|>|[-+](?= |\Z|[- ]*\Z)|=+\Z|(\d{1,9})(?=[.)](?: |\Z)))")
"""what would make another block of a paragraph"""
_CLOSES = re.compile(r"(?<= )#+\Z")
"""what ends a heading, and is not of its text"""
_TICKS = re.compile("`+")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_PARENTHESIS = re.compile(r"[()]")


DEEPEST = 8
"""parentheses in one another that an address may have as they are"""


class _Stretch(Struct):
    """A part of a line in one style."""

    link: int
    """number of its link in the line, from 1; 0: none"""
    delimiter: str
    code: bool
    text: str


def joined(blocks: Sequence[TextBlock]) -> str:
    """Markdown of the blocks, one item of a list right below the other."""
    parts: list[str] = []
    before = TextBlock("")
    for block in blocks:
        written = _written(block)
        if not block.places and not before.places:
            parts.append("\n\n")
            parts.append(written)
        else:
            parts.extend(_placed(block, before, written))
        before = block
    return "".join(parts[1:])


def _placed(block: TextBlock, before: TextBlock, written: str) -> tuple[str, str]:
    """The space between two blocks, and the second one with the markers of its lists, indented, quoted."""
    places, earlier, shared = block.places, before.places, 0
    for place, other in zip(places, earlier, strict=False):
        if place is not other:
            break
        shared += 1
    outer = "".join([place.rest for place in places[:shared]])
    begun = places[shared:]
    between = f"\n{outer.rstrip()}\n"
    if begun and begun[0].collection and before.kind == block.kind == "li":
        beside = earlier[shared].collection if shared < len(earlier) else 0
        if beside == begun[0].collection or (not beside and begun[0].interrupts):
            between = "\n"
    if "\n" in written:
        rest = outer + "".join([place.rest for place in begun])
        written = written.replace("\n", "\n" + rest)
    return between, outer + "".join([place.marker for place in begun]) + written


def _written(block: TextBlock) -> str:
    """The Markdown of one block, by itself."""
    kind = block.kind
    if block.cells:
        return _table(block.cells)
    if kind == "pre":
        return _fenced(block.text)
    line = _line(block)
    if kind in HEADINGS:
        return HEADINGS[kind] + (_CLOSES.sub(r"\\\g<0>", line) if line[-1] == "#" else line)
    if (found := _BEGINS.match(line)) is not None:
        place = found.end() if found[1] else 0
        return f"{line[:place]}\\{line[place:]}"
    return line


def _fenced(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)))) if "```" in text else "```"
    return f"{fence}\n{text}\n{fence}"


def _table(rows: Sequence[Sequence[Sequence[TextBlock]]]) -> str:
    lines = ["| " + " | ".join([" ".join(map(_line, cell)).replace("|", "\\|") for cell in row]) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines)


def _line(block: TextBlock) -> str:
    """The text of a block with its links, emphasis and code."""
    markup = block.markup
    if not markup:
        return _escaped(block.text)
    markup = " ".join(plain(markup).split())
    line = _MEANT.sub(_literal, markup)
    if "\1{" in line or "\1(" in line:
        line = _PLAIN_EMPHASIS.sub(_emphasized, line)
    if "\1$\1#" in markup:
        return _styled(markup, block.targets)
    if MARK not in line:
        return _spaced(line)
    if _STYLED.search(line):
        return _styled(markup, block.targets)
    before, *pieces = line.split(MARK)
    parts = [before]
    number = 0
    for piece in pieces:
        words = piece[1:]
        if piece[0] == "@":
            number += 1
            if bare := words.strip():
                words = words.replace(bare, f"[{bare}]({_target(block.targets[number - 1])})", 1)
        parts.append(words)
    return _spaced("".join(parts))


def _spaced(line: str) -> str:
    """Fold the spaces where pieces of a line with single ones meet."""
    return " ".join(line.split()) if "  " in line or line[:1] == " " or line[-1:] == " " else line


def _emphasized(found: re.Match[str]) -> str:
    """Emphasis that holds, or the text without; as it was where pieces of code would touch."""
    mark, before, text, after = found.groups()
    line, begin, end = found.string, found.start(), found.end()
    last, behind = line[begin - 1] if begin else " ", line[end] if end < len(line) else " "
    if _binds(text[0], before or last) and _binds(text[-1], after or behind):
        delimiter = "**" if mark == "{" else "*"
        text = f"{delimiter}{text}{delimiter}"
    elif (text[0] == "`" == last and not before) or (text[-1] == "`" == behind and not after):
        return found[0]
    return f"{before if last != ' ' else ''}{text}{after}"


def _styled(markup: str, targets: Sequence[str]) -> str:
    """A line with emphasis or code. Emphasis that its neighbours would undo goes: `**"so"**said` is none."""
    stretches = _stretches(markup)
    parts: list[str] = []
    link, gap, emphasized = 0, False, False
    for number, stretch in enumerate(stretches):
        text = stretch.text
        bare = text.strip(" ")
        if link and stretch.link != link:
            parts.append(f"]({_target(targets[link - 1])})")
            link, emphasized = 0, False
        gap = gap or text[0] == " "
        if not bare:
            continue
        if gap and parts:
            parts.append(" ")
        if stretch.link and not link:
            link = stretch.link
            parts.append("[")
        last = " " if gap or not parts else parts[-1][-1]
        gap = text[-1] == " "
        if emphasized := bool(stretch.delimiter) and not (emphasized and last == "*"):
            behind = stretches[number + 1] if number + 1 < len(stretches) else None
            after = " " if gap or behind is None else behind.text[0] if behind.link == stretch.link else "]"
            if emphasized := _binds(bare[0], last) and _binds(bare[-1], after):
                bare = f"{stretch.delimiter}{bare}{stretch.delimiter}"
        parts.append(bare)
    if link:
        parts.append(f"]({_target(targets[link - 1])})")
    return "".join(parts)


def _binds(inner: str, outer: str) -> bool:
    """Tell whether emphasis holds between a character of its text and the one on the other side."""
    return inner.isalnum() or outer == " " or outer in _PUNCTUATION


def _stretches(markup: str) -> list[_Stretch]:
    """The parts of a line, each in one style, as Markdown but for their delimiters and links."""
    found: list[_Stretch] = []
    pieces = markup.split(MARK)
    last = len(pieces) - 1
    strong = emphasis = code = link = links = 0
    delimiter = ""
    for number, piece in enumerate(pieces):
        text = piece
        if number:
            text = piece[1:]
            match piece[0]:
                case "@":
                    links += 1
                    link = links
                case "%":
                    link = 0
                case "#":
                    code += 1
                case "$":
                    code -= 1
                case "{":
                    strong += 1
                case "}":
                    strong -= 1
                case "(":
                    emphasis += 1
                case _:
                    emphasis -= 1
            if not code:
                delimiter = "*" * (2 * (strong > 0) + (emphasis > 0))
        if not text:
            continue
        if not code:
            text = _escaped(text + MARK)[:-1] if number < last else _escaped(text)
        before = found[-1] if found else None
        if (
            before is not None
            and before.link == link
            and before.code == (code > 0)
            and (code or before.delimiter == delimiter)
        ):
            before.text += text
        else:
            found.append(_Stretch(link, delimiter, code > 0, text))
    return _spanned(found)


def _spanned(stretches: list[_Stretch]) -> list[_Stretch]:
    """Code between backticks, and one stretch where the style stays."""
    found: list[_Stretch] = []
    for stretch in stretches:
        text = stretch.text
        if stretch.code and (code := text.strip(" ")):
            ticks = "`"
            if "`" in code:
                ticks *= 1 + max(map(len, _TICKS.findall(code)))
                if code[0] == "`" or code[-1] == "`":
                    code = f" {code} "
            text = f"{' ' * (text[0] == ' ')}{ticks}{code}{ticks}{' ' * (text[-1] == ' ')}"
        if found and found[-1].link == stretch.link and found[-1].delimiter == stretch.delimiter:
            found[-1].text += text
        else:
            found.append(_Stretch(stretch.link, stretch.delimiter, False, text))
    return found


def plain(text: str) -> str:
    """Text as lexbor writes it, read."""
    if "&" in text:
        text = text.replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text


def _escaped(text: str) -> str:
    return _MEANT.sub(_literal, text) if _MEANT.search(text) is not None else text


def _literal(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] != MARK:
        return "\\" + text
    code = text[2:-2]
    bare = code.strip()
    return f"{' ' * (code[0] == ' ')}`{bare}`{' ' * (code[-1] == ' ')}" if bare else code


def _target(url: str) -> str:
    """An address between parentheses. url: without white space."""
    if "\\" in url:
        url = url.replace("\\", "\\\\")
    if ("(" in url or ")" in url) and not _is_balanced(url):
        url = _PARENTHESIS.sub(r"\\\g<0>", url)
    return _ENTITY.sub("&amp;", url) if ";" in url else url


def _is_balanced(url: str) -> bool:
    depth = 0
    for parenthesis in _PARENTHESIS.findall(url):
        depth += 1 if parenthesis == "(" else -1
        if not 0 <= depth < DEEPEST:
            return False
    return not depth
