"""Settings from TOML files < environment < command line, with errors that name the place and the mend.

Every layer is checked by itself, key by key, before they are laid over each other: so an error always knows which file
or variable it comes from. Relations between two settings are checked last, on the whole.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from xyro.configs.gone import stand_in
from xyro.configs.schema import (
    DAYS,
    RESERVED_HEADERS,
    BlackoutTable,
    BudgetTable,
    ClusterTable,
    FocusTable,
    RuleTable,
    SecretSource,
    Section,
    Settings,
    SinkTable,
    SiteTable,
)
from xyro.configs.webhook_secret import signing_key
from xyro.wire.durations import seconds
from xyro.wire.errors import InputError
from xyro.wire.sizes import size

PREFIX = "XYRO_"
COMPOSE = ("XYRO_CONTACT", "XYRO_SCOPE")
"""variables from which docker-compose.yml makes settings"""
SERVE = Path(__file__).with_name("serve.toml")
"""what a daemon begins with, the first of its files"""
TABLES: dict[str, type[Section]] = {
    "rules": RuleTable,
    "focus": FocusTable,
    "sites": SiteTable,
    "budgets": BudgetTable,
    "blackouts": BlackoutTable,
    "clusters": ClusterTable,
    "sinks": SinkTable,
}
"""settings that are lists of tables, such as [[rules]]"""
MOST_FOCUS = 7
"""tables of [[focus]]: the virtual page tells so many groups of pages apart (opic/focus.py)"""
Layer = dict[str, dict[str, Any]]
"""section -> key -> checked value; of [[rules]] one entry, "rules" -> {"rules": [its tables]}"""


def load(
    paths: Sequence[Path] = (), environ: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
) -> Settings:
    """Settings of the files (later beats earlier), the environment and the command line, in that order.

    environ: variables XYRO_SECTION__KEY; others and empty ones are not ours. A list is comma-separated, or TOML.
    overrides: "section.key" -> value; None and () = not given (as click says it). Raises InputError.
    """
    merged: Layer = {}
    for layer in (*map(_file, paths), _environment(environ or {}), _overrides(overrides or {})):
        for section, values in layer.items():
            merged.setdefault(section, {}).update(values)
    tables = {name: merged.pop(name, {}).get(name, ()) for name in TABLES}
    settings = msgspec.convert({**merged, **tables}, Settings)
    _check_relations(settings)
    return settings


# The layers


def _file(path: Path) -> Layer:
    import tomllib  # 3 ms, which a crawl without a file does without

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not TOML: {error}"
        raise InputError(f"{path}: {reason}") from error
    layer: Layer = {}
    for name, table in document.items():
        if name in TABLES:
            layer[name] = {name: _tables(str(path), name, table)}
            continue
        _require_name(name, (*_sections(), *TABLES), f"{path}: [{_shown(name)}]")
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name}: expected a section, [{name}] with its keys below it, got {_kind(table)}")
        layer[name] = {key: _value(str(path), name, key, value) for key, value in table.items()}
    return layer


def _tables(source: str, name: str, tables: object) -> list[dict[str, Any]]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{source}: {name}: expected tables, each headed [[{name}]], got {_kind(tables)}")
    checked: list[dict[str, Any]] = []
    for number, table in enumerate(tables, start=1):
        place, kind = f"{source}: [[{name}]] number {number}:", TABLES[name]
        if kind is RuleTable and not table.keys() & {"host", "pattern"}:
            raise InputError(f"{place} expected a host or a pattern that says which URLs the rule is for, got neither")
        values = {
            key: _convert(f"{place} {_shown(key)}", value, _field(kind, key, place)) for key, value in table.items()
        }
        if kind is FocusTable:
            _check_focus(place, values)
        if kind is SiteTable:
            _check_site(place, values)
        if kind in (SiteTable, BudgetTable, BlackoutTable) and "host" not in table:
            raise InputError(f"{place} host: expected a host, or *.example.org for all below it, got nothing")
        if kind is ClusterTable and not (table.get("name") and (table.get("urls") or table.get("patterns"))):
            raise InputError(f"{place} expected a name, and urls or patterns that say which pages belong to it")
        if kind is SinkTable:
            _check_sink(place, values, {table["name"] for table in checked})
        checked.append(values)
    _check_number(source, checked if TABLES[name] is FocusTable else [])
    return checked


def _check_focus(place: str, table: Mapping[str, Any]) -> None:
    if "weight" not in table:
        raise InputError(f"{place} weight: expected how many shares of an ordinary page its pages get, got nothing")
    if not any(table.get(key) for key in ("patterns", "hosts", "kinds", "words", "leads_to")):
        raise InputError(
            f"{place} expected patterns, hosts, kinds, words or leads_to that say which pages it is for, got none"
        )


def _check_site(place: str, table: Mapping[str, Any]) -> None:
    for name in table.get("headers", ()):
        try:
            _header(name)
        except _Mend as error:
            raise InputError(f"{place} headers: {error}") from None
    if "auth" in table and any(name.lower() == "authorization" for name in table.get("headers", ())):
        raise InputError(f"{place} auth: headers have an Authorization, too: leave one of them")
    low, high = table.get("min_interval"), table.get("max_interval")
    if low is not None and high is not None and low > high:
        fault = f"{low:g} is above max_interval, {high:g}: lower the one or raise the other"
        raise InputError(f"{place} min_interval: {fault}")
    secrets = [("auth", table.get("auth")), *(("headers", value) for value in table.get("headers", {}).values())]
    for key, value in [*secrets, *(("cookies", value) for value in table.get("cookies", {}).values())]:
        if isinstance(value, SecretSource) and bool(value.env) == bool(value.file):
            raise InputError(f"{place} {key}: expected one of env and file that says where the secret stands")


def _check_sink(place: str, table: Mapping[str, Any], names: Collection[str]) -> None:
    if not table.get("name") or sum(bool(table.get(key)) for key in ("path", "url", "command", "plugin")) != 1:
        raise InputError(
            f"{place} expected a name, and one of path, url, command and plugin that says where changes go"
        )
    if table["name"] in names:
        raise InputError(f"{place} name: {table['name']} stands there twice: its position is kept by its name")
    scheme, _, rest = table.get("url", "").partition("://")
    broker = scheme and not scheme.startswith("http")
    if bool(broker) != bool(table.get("topic")):
        wanted = "the subject or topic of the broker" if broker else "a topic only beside a url of nats:// or kafka://"
        raise InputError(f"{place} topic: expected {wanted}, got {table.get('topic', '')!a}")
    if broker and "@" in rest:
        raise InputError(f"{place} url: expected {scheme}://HOST:PORT, got a secret in it: put the token into `secret`")
    if scheme.startswith("http"):
        try:
            signing_key(str(table.get("secret") or ""))
        except ValueError as error:
            raise InputError(f"{place} secret: {error}") from None
    here = all(place.startswith(("localhost", "127.", "[::1]")) for place in rest.split(","))
    if table.get("secret") and (scheme.startswith("kafka") or (scheme == "nats" and not here)):
        wanted = "none: Kafka takes no token" if scheme != "nats" else "a url of tls://, by which a token may travel"
        raise InputError(f"{place} secret: expected {wanted}")


def _check_number(source: str, tables: Sequence[Mapping[str, Any]]) -> None:
    if len(tables) > MOST_FOCUS:
        raise InputError(f"{source}: [[focus]]: {len(tables)} tables; at most {MOST_FOCUS}: put patterns together")
    for key in ("words", "leads_to"):
        if sum(bool(table.get(key)) for table in tables) > 1:
            raise InputError(f"{source}: [[focus]]: {key} stand in several tables; put them together in one")


def _environment(environ: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for variable, text in environ.items():
        section, mark, key = variable.removeprefix(PREFIX).lower().partition("__")
        if variable.startswith(PREFIX) and mark and text:
            place = f"environment: {variable}"
            if section in TABLES:
                raise InputError(f"{place}: [[{section}]] stands in a file (--config)")
            _require_name(section, _sections(), f"{place}: section {_shown(section)}")
            _require_present(section, key, text, f"{place}:")
            field = _field(_sections()[section], key, f"{place}:")
            parsed = _list(text) if get_origin(field) is tuple else text
            layer.setdefault(section, {})[key] = _convert(place, parsed, field, strict=False)
    return layer


def refuse_strangers(environ: Mapping[str, str], settings: Settings) -> None:
    """InputError: a variable XYRO_... that is set is no setting.

    Those that a secret of `settings` is read from may be called so, those of the tests (XYRO_TEST_...) and of
    docker-compose.yml are, and so are those that Kubernetes sets for a service called xyro.
    """
    sources: list[object] = [settings.fetch.proxy_auth]
    for site in settings.sites:
        sources += [site.auth, *site.headers.values(), *site.cookies.values()]
    expected = {*COMPOSE, *(source.env for source in sources if isinstance(source, SecretSource))}
    for variable, text in environ.items():
        ours = variable.startswith(PREFIX) and text and "__" not in variable
        if ours and variable not in expected and not _NEIGHBOUR.search(f"{variable}={text}"):
            raise InputError(f"environment: {variable}: not a setting; {_mend(variable)}")


_NEIGHBOUR = re.compile(
    r"^XYRO_TEST_|_SERVICE_(HOST|PORT(_\w+)?)=|_PORT=\w+://|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?="
)
"""a variable and its value: of a test, or of a service that Kubernetes names to its containers"""


def _mend(variable: str) -> str:
    import difflib  # costs 3 ms, and only a mistake needs it

    name = variable.removeprefix(PREFIX)
    if name.lower() in TABLES:
        return f"[[{name.lower()}]] stands in a file (--config)"
    names = [f"{section}__{key}".upper() for section, fields in _sections().items() for key in _fields(fields)]
    near = [each for each in names if each.endswith(f"__{name}")] or difflib.get_close_matches(name, names, 1, 0.8)
    if near:
        return f"did you mean {' or '.join(PREFIX + each for each in near)}?"
    return f"those are called {PREFIX}SECTION__KEY: correct its name, or unset it"


def _list(text: str) -> object:
    """A TOML list, or words between commas."""
    if text.lstrip().startswith("["):
        import tomllib

        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"list = {text}")["list"]
    return [word.strip() for word in text.split(",")]


def _overrides(overrides: Mapping[str, object]) -> Layer:
    layer: Layer = {}
    for path, value in overrides.items():
        if value is not None and value != ():
            section, _, key = path.partition(".")
            _require_name(section, _sections(), f"command line: [{_shown(section)}]")
            plain = str(value) if isinstance(value, Path) else value
            layer.setdefault(section, {})[key] = _value("command line", section, key, plain)
    return layer


# One value


@functools.cache
def _sections() -> dict[str, type[Section]]:
    return {field.name: field.type for field in msgspec.structs.fields(Settings) if field.name not in TABLES}


@functools.cache
def _fields(section: type[Section]) -> dict[str, Any]:
    """Key -> type."""
    return {field.name: field.type for field in msgspec.structs.fields(section)}


def _value(source: str, section: str, key: str, value: object) -> Any:
    place = f"{source}: [{section}]"
    _require_present(section, key, value, f"{place} {_shown(key)}:")
    return _convert(f"{place} {_shown(key)}", value, _field(_sections()[section], key, place))


def _require_present(section: str, key: str, value: object, place: str) -> None:
    line = stand_in(section, key, value)
    if line is not None:
        raise InputError(f"{place} {line}")


def _field(section: type[Section], key: str, place: str) -> Any:
    fields = _fields(section)
    if key not in fields:
        homes = [f"[{name}]" for name, other in _sections().items() if key in _fields(other)]
        if homes:
            raise InputError(f"{place} {key}: no such key here; it belongs to {' or '.join(homes)}")
        _require_name(key, fields, f"{place} {_shown(key)}")
    return fields[key]


def _require_name(name: str, names: Collection[str], place: str) -> None:
    if name not in names:
        import difflib  # costs 3 ms, and only a mistake needs it

        near = difflib.get_close_matches(name, names, n=1)
        raise InputError(
            f"{place}: unknown; " + (f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}")
        )


class _Mend(ValueError):
    """A suggestion of what to write instead."""


def _convert(place: str, value: object, field: Any, strict: bool = True) -> Any:
    meta, many = _meta(field), get_origin(field) is tuple
    try:
        plain = _spanned(value) if (meta.extra or {}).get("span") else value
        plain = _sized(plain) if (meta.extra or {}).get("size") else plain
        converted = msgspec.convert(plain, field, strict=strict)
        check = CHECKS.get((meta.extra or {}).get("check", ""))
        if check is not None:
            for item in converted if many else (converted,):
                check(item)
    except ValueError as error:  # msgspec.ValidationError is one, too
        wanted = f"a list of {meta.description}" if many else meta.description
        shown = list(value) if isinstance(value, tuple) else value
        got = "something else" if (meta.extra or {}).get("secret") else f"{shown!a:.100}"
        mend = f"; {error}" if isinstance(error, _Mend) else ""
        raise InputError(f"{place}: expected {wanted}, got {got}{mend}") from error
    return converted


def _kind(value: object) -> str:
    """The kind of a value that is no section: a secret may stand in it, so itself it is not shown."""
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else "one value"


def _spanned(value: object) -> object:
    """The seconds of a text with its unit ("10m"); anything else as it is."""
    with contextlib.suppress(InputError):
        if isinstance(value, str) and value[-1:].isalpha():
            return seconds(value, "")
    return value


def _sized(value: object) -> object:
    """The bytes of a text with its unit ("200 GB"); anything else as it is."""
    with contextlib.suppress(InputError):
        if isinstance(value, str) and value[-1:].isalpha():
            return size(value, "")
    return value


def _meta(field: Any) -> msgspec.Meta:
    """The Meta of Annotated[x, Meta], of tuple[Annotated[x, Meta], ...] and of Annotated[x, Meta] | None."""
    if isinstance(field, msgspec.Meta):
        return field
    inner = get_args(field)
    return _meta(inner[1] if isinstance(inner[1], msgspec.Meta) else inner[0])


def _shown(name: str) -> str:
    """A name from a file, fit for a terminal."""
    return name if name.isascii() and name.isprintable() else ascii(name)


def _header(text: str) -> None:
    """A header that is not ours to send already."""
    name = text.partition(":")[0].lower()
    if name in RESERVED_HEADERS or name.startswith("proxy-"):
        raise _Mend(f"{name} is Xyro's to send: politeness, validators and framing depend on it")
    if name == "cookie":
        raise _Mend("cookies stand in [[sites]] cookies, for the hosts that they are meant for")


def _header_for_all(text: str) -> None:
    """A header that may go to every host."""
    _header(text)
    if text.partition(":")[0].lower() == "authorization":
        raise _Mend("credentials stand in [[sites]], for the host that they are meant for")


def _network(text: str) -> None:
    import ipaddress

    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise _Mend(f"write {ipaddress.ip_network(text, strict=False)}") from None  # an address and a prefix, at least


def _server(text: str) -> None:
    """An address, with a port behind a colon or not; an IPv6 address with a port stands in brackets."""
    import ipaddress

    bracketed, _, rest = text.removeprefix("[").partition("]")
    host, mark, port = (bracketed, *rest.partition(":")[1:]) if text.startswith("[") else (text, "", "")
    if text.count(":") == 1:
        host, mark, port = text.partition(":")
    ipaddress.ip_address(host)
    if mark and not 0 < int(port) < 65_536:
        raise ValueError(port)


def _hours(text: str) -> None:
    """ "8-18,22:30-6": hours or hours:minutes, 24 as an end only."""
    for part in text.split(","):
        ends = part.split("-")
        minutes = [60 * int(hour) + int(minute or 0) for hour, _, minute in (end.partition(":") for end in ends)]
        sound = all(int(end.partition(":")[2] or 0) < 60 for end in ends)
        if (
            len(minutes) != 2
            or not (sound and minutes[0] < 1440 and 0 < minutes[1] <= 1440)
            or minutes[0] == minutes[1]
        ):
            raise ValueError(text)


def _days(text: str) -> None:
    for part in text.split(","):
        if not 1 <= len(part.split("-")) <= 2 or not set(part.split("-")) <= set(DAYS):
            raise ValueError(text)


def _timezone(text: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(text)
    except (KeyError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(text) from error


CHECKS: dict[str, Callable[[str], None]] = {
    "header": _header_for_all,
    "network": _network,
    "server": _server,
    "hours": _hours,
    "days": _days,
    "timezone": _timezone,
}
"""What a type and a pattern cannot say: the name in Meta.extra -> raises ValueError."""


def _check_relations(settings: Settings) -> None:
    refresh, fetch = settings.refresh, settings.fetch
    pages = [page for page, _ in refresh.gamma_schedule]
    if any(after <= before for before, after in itertools.pairwise(pages)):
        raise InputError(f"settings: [refresh] gamma_schedule: its pages do not rise ({pages}): order the pairs")
    if refresh.policy == "mixed" and not refresh.alpha and not refresh.beta:
        raise InputError("settings: [refresh] alpha and beta: both 0, no page would ever be read again: raise one")
    identity = settings.identity
    if not identity.purpose:
        raise InputError(
            "settings: [identity] purpose: expected one at least: a crawl that is for nothing reads nothing"
        )
    if identity.sign != "never" and not (identity.agent and identity.key):
        raise InputError(
            f'settings: [identity] sign = "{identity.sign}" needs key (a file) and agent (the https:// address of its '
            "key directory): `xyro identity` makes both"
        )
    for section, low_name, low, high_name, high in (
        ("refresh", "min_interval", refresh.min_interval, "max_interval", refresh.max_interval),
        ("fetch", "connect_timeout", fetch.connect_timeout, "total_timeout", fetch.total_timeout),
        ("fetch", "first_byte_timeout", fetch.first_byte_timeout, "total_timeout", fetch.total_timeout),
        ("fetch", "header_timeout", fetch.header_timeout, "total_timeout", fetch.total_timeout),
    ):
        if low > high:
            place = f"settings: [{section}] {low_name}"
            raise InputError(f"{place}: {low:g} is above {high_name}, {high:g}: lower the one or raise the other")
