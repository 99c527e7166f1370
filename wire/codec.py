"""Messages as bytes: MessagePack `[version, tag, field, field ...]`, the fields in the order of the class.

Enumerations travel as their numbers, a tuple as an array, a Passing as [url, cash, depth] (and its credit, where
that is not 0), and a page's Links as [URLs joined by line feeds, flags, truncated, dropped]: one string instead of
sixty is the cheapest to pack and unpack.
A float field may arrive as an integer. Strings keep lone surrogates (a site's ETag may hold any byte).

Decoding trusts nothing: bounded sizes, no maps, no extension types, every field's type checked, the values checked by
the constructors of the messages. Whatever is not a message of this version raises CodecError, which says what it met.

New fields come behind the others and have defaults: a message of an earlier code, or of an outbox that it left, lacks
them and takes these. One that has more fields than are known here is refused, for nobody knows what they mean; who sent
it sends it again, until this node is of that code, too. VERSION goes up when a message changes in any other way.
tests/wire/test_codec.py pins the shapes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgpack

from xyro.wire.commands import Command, CommandAnswer, HoldHost, ReturnOrders
from xyro.wire.errors import CodecError
from xyro.wire.ids import LocalPage, PageId
from xyro.wire.messages import (
    MAX_URL,
    Ack,
    CashTransfer,
    Document,
    FetchOrder,
    HostChallenged,
    Links,
    LoadReport,
    Message,
    PageReport,
    Passing,
    Submit,
    XmlPage,
)
from xyro.wire.questions import DescribePages, FindPages, FindPart, MatchPages

VERSION: Final = 2
MAX_MESSAGE: Final = 64 * 1024 * 1024
"""Bytes of one message: the largest sitemap (50 MiB, sitemaps.org) fits into an XmlPage."""
MAX_ITEMS: Final = 65_536
"""Entries of one array: as many as a page has links. Also bounds what a forged length can make us allocate."""

TAGS: Final[dict[int, type[Message]]] = {
    1: FetchOrder,
    2: PageReport,
    3: XmlPage,
    4: LoadReport,
    5: CashTransfer,
    6: Submit,
    7: Ack,
    8: Document,
    9: CommandAnswer,
    10: HoldHost,
    11: ReturnOrders,
    12: FindPages,
    13: DescribePages,
    14: MatchPages,
    15: HostChallenged,
    16: FindPart,
}
"""Tags below PLUGIN_TAGS are the core's."""
PLUGIN_TAGS: Final = 64

_LINKS: list[type] = [str, bytes, int, int]
_PASSING: list[type] = [str, int, int]
_INTRODUCED: list[type] = [*_PASSING, int]
_Build = Callable[[Any], Any]


def encode(message: Message) -> bytes:
    """`message` as bytes. CodecError: it is over a bound, or holds what a message cannot carry (a foreign type)."""
    shape = _BY_CLASS.get(type(message))
    if shape is None:
        raise CodecError(f"{type(message).__name__} is no message")
    try:
        data = _pack((VERSION, shape.tag, *shape.values(message)))
    except (TypeError, OverflowError, ValueError) as error:
        raise CodecError(f"{shape.name}: cannot be encoded: {error}") from error
    if len(data) > MAX_MESSAGE:
        raise CodecError(f"{shape.name}: {len(data)} bytes; a message has at most {MAX_MESSAGE}")
    for index in shape.arrays:
        length = len(getattr(message, shape.fields[index]))
        if length > MAX_ITEMS:
            raise CodecError(f"{shape.name}.{shape.fields[index]}: {length} entries; send at most {MAX_ITEMS} at once")
    return data


def decode(data: bytes) -> Message:
    """The message that `encode` made `data` of. CodecError: anything else, whatever it is."""
    if len(data) > MAX_MESSAGE:
        raise CodecError(f"message: {len(data)} bytes; at most {MAX_MESSAGE}")
    try:
        raw = _unpack(data)
    except (ValueError, msgpack.UnpackException) as error:
        raise CodecError(f"message: not MessagePack within its bounds: {error}") from error
    shape = _shape_of(raw)
    values: list[Any] = raw[2:]
    try:
        if list(map(type, values)) != shape.types:
            shape.retype(values)
        for index, build in shape.builders:
            values[index] = build(values[index])
        return shape.message(*values)
    except ValueError as error:
        text = str(error)
        raise CodecError(text if text.startswith(shape.name) else f"{shape.name}: {text}") from error


_NUMBERS = {"LocalPage": LocalPage, "PageId": PageId}
"""names that fields are annotated by, whether the module of their message imports them or not"""


class _Shape:
    """Describes one message type for the codec: field names, the types they arrive in, and their converters."""

    def __init__(self, tag: int, message: type[Message]) -> None:
        hints = get_type_hints(message, localns=_NUMBERS)  # not the class: PageReport has a field named bytes
        self.tag = tag
        self.message = message
        self.name = message.__name__
        self.fields = message.__struct_fields__
        self.values: Callable[[Message], tuple[Any, ...]] = attrgetter(*self.fields)
        self.types = [_wire_type(hints[name]) for name in self.fields]
        built = ((index, _builder(hints[name])) for index, name in enumerate(self.fields))
        self.builders = tuple((index, build) for index, build in built if build is not None)
        self.arrays = tuple(i for i, name in enumerate(self.fields) if get_origin(hints[name]) is tuple)
        self.defaults: list[Any] = _unpack(_pack(message.__struct_defaults__))

    def retype(self, values: list[Any]) -> None:
        """Add the defaults of fields that are lacking, make floats of the integers that stand for floats; refuse any
        other difference."""
        if 0 < (lacking := len(self.fields) - len(values)) <= len(self.defaults):
            values += self.defaults[-lacking:]
        if len(values) != len(self.fields):
            raise ValueError(f"{self.name}: {len(values)} fields; version {VERSION} has {len(self.fields)}")
        for index, (name, expected) in enumerate(zip(self.fields, self.types, strict=True)):
            values[index] = _typed(values[index], expected, f"{self.name}.{name}")


def _shape_of(raw: Any) -> _Shape:
    """The shape that the head of an unpacked message names."""
    if type(raw) is not list or len(raw) < 2:
        raise CodecError("message: not an array that begins with version and tag")
    version, tag = raw[0], raw[1]
    if type(version) is not int or version != VERSION:
        raise CodecError(f"message: version {_named(version)}; this node speaks {VERSION}")
    shape = _BY_TAG.get(tag) if type(tag) is int else None
    if shape is None:
        raise CodecError(f"message: unknown tag {_named(tag)}")
    return shape


def _named(value: Any) -> str:
    return str(value) if type(value) is int else type(value).__name__


def _typed(value: Any, expected: type, place: str) -> Any:
    if type(value) is expected:
        return value
    if expected is float and type(value) is int:
        return float(value)
    raise ValueError(f"{place}: expected {expected.__name__}, got {type(value).__name__}")


def _wire_type(hint: Any) -> type:
    """The type in which a field of type `hint` comes out of MessagePack."""
    hint = getattr(hint, "__supertype__", hint)  # a PageId is an int
    if hint in (int, float, str, bytes, bool):
        return hint  # type: ignore[no-any-return]
    return int if isinstance(hint, type) and issubclass(hint, enum.IntEnum) else list


def _builder(hint: Any) -> _Build | None:
    """Return the converter of an unpacked field to type `hint`, None where none is needed. It raises ValueError."""
    if get_origin(hint) is tuple:
        return _array_builder(get_args(hint))
    if hint is Links:
        return _links
    if hint is Passing:
        return _passing
    if isinstance(hint, type) and issubclass(hint, enum.IntEnum):
        return _enum_builder(hint)
    return None


def _array_builder(items: tuple[Any, ...]) -> _Build:
    """For tuple[X, ...] and tuple[X, Y]."""
    if items[-1] is not Ellipsis:
        types = [_wire_type(item) for item in items]
        return lambda raw: tuple(_row(raw, types, "entry"))
    item, build = _wire_type(items[0]), _builder(items[0])
    if build is None:
        return lambda raw: tuple(_typed(entry, item, "entry") for entry in raw)
    return lambda raw: tuple(map(build, raw))


def _enum_builder(numbers: type[enum.IntEnum]) -> _Build:
    members = {member.value: member for member in numbers}

    def build(raw: int) -> enum.IntEnum:
        member = members.get(raw)
        if member is None:
            raise ValueError(f"{raw} is no {numbers.__name__}")
        return member

    return build


def _row(raw: Any, types: list[type], place: str) -> list[Any]:
    """`raw` if it is an array of these types."""
    if type(raw) is list and list(map(type, raw)) == types:
        return raw
    if type(raw) is not list or len(raw) != len(types):
        raise ValueError(f"{place}: expected an array of {len(types)}")
    return [_typed(value, expected, place) for value, expected in zip(raw, types, strict=True)]


def _passing(raw: Any) -> Passing:
    """Read an item; most hand over no credit."""
    return Passing(*_row(raw, _INTRODUCED if type(raw) is list and len(raw) > 3 else _PASSING, "Passing"))


def _links(raw: Any) -> Links:
    text, flags, truncated, dropped = _row(raw, _LINKS, "Links")
    urls = tuple(text.split("\n")) if text else ()
    _check_lengths(urls, text)
    return Links(urls, flags, truncated, dropped)


def _joined(links: Links) -> str:
    text = "\n".join(links.urls)
    if links.urls and text.count("\n") != len(links.urls) - 1:
        raise ValueError("Links: a line feed in a URL")
    _check_lengths(links.urls, text)
    return text


def _check_lengths(urls: tuple[str, ...], text: str) -> None:
    """1 to MAX_URL characters each; where all together have no more, no single one can."""
    if not all(urls) or (len(text) > MAX_URL and max(map(len, urls)) > MAX_URL):
        raise ValueError(f"Links: 1..{MAX_URL} characters each")


def _nested(value: Any) -> tuple[Any, ...]:
    """MessagePack's hook for what it does not know: the two values that our messages hold."""
    if type(value) is Links:
        return _joined(value), value.flags, value.truncated, value.dropped
    if type(value) is Passing:
        item = (value.url, value.cash, value.depth)
        return (*item, value.credit) if value.credit else item
    raise TypeError(f"a message holds no {type(value).__name__}")


def _pack(values: tuple[Any, ...]) -> bytes:
    packed: bytes
    try:
        packed = msgpack.packb(values, default=_nested)
    except UnicodeEncodeError:  # lone surrogates: rare, and the tolerant encoder is slower
        packed = msgpack.packb(values, default=_nested, unicode_errors="surrogatepass")
    return packed


def _unpack(data: bytes) -> Any:
    """Lists, strings, bytes and numbers only. A forged length gets room for no more entries than `data` has bytes."""
    room = min(len(data), MAX_ITEMS)
    return msgpack.unpackb(data, unicode_errors="surrogatepass", max_array_len=room, max_map_len=0, max_ext_len=0)


_BY_TAG: Final = {tag: _Shape(tag, message) for tag, message in TAGS.items()}
_BY_CLASS: Final = {shape.message: shape for shape in _BY_TAG.values()}


def register(first: int, *commands: type[Command]) -> None:
    """Let a plug-in's commands be encoded, under the tags from `first` on, PLUGIN_TAGS or more. ValueError: one is
    another's."""
    for tag, command in enumerate(commands, first):
        if tag < PLUGIN_TAGS or _BY_TAG.get(tag, _BY_CLASS.get(command)) is not None:
            raise ValueError(f"codec: {command.__name__}: tag {tag} cannot be registered")
        _BY_TAG[tag] = _BY_CLASS[command] = _Shape(tag, command)
