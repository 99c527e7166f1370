"""Three layers over each other, and errors that name the place and the mend."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from xyro.configs import gone
from xyro.configs.gone import GONE
from xyro.configs.load import TABLES, load, refuse_strangers
from xyro.configs.schema import PolitenessSettings, RuleTable, Settings
from xyro.wire.errors import InputError

SECONDS = 'expected a number of seconds, 0 or more, or a text such as "10m"'


@pytest.fixture
def toml(tmp_path):
    def write(text: str, name: str = "mine.toml") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        return path

    return write


def refusal(*args, **kwargs) -> str:
    with pytest.raises(InputError) as caught:
        load(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_given_is_the_defaults():
    assert load() == Settings()


def test_files_environment_command_line_in_this_order(toml):
    first = toml("[politeness]\nmin_delay = 1\nfactor = 1.0\nip_delay = 1.0\ndelay = 9.0\n", "a.toml")
    second = toml("[politeness]\nfactor = 2\nip_delay = 2\ndelay = 8.5\n", "b.toml")
    environ = {"XYRO_POLITENESS__IP_DELAY": "3", "XYRO_POLITENESS__DELAY": "8"}
    settings = load([first, second], environ, {"politeness.delay": 4})
    assert settings.politeness == PolitenessSettings(min_delay=1.0, factor=2.0, ip_delay=3.0, delay=4.0)


def test_what_the_command_line_did_not_say_overrides_nothing(toml):
    path = toml('[fetch]\nonly_net = ["127.0.0.0/8"]\n[crawl]\nmax_depth = 3\n')
    settings = load([path], {}, {"fetch.only_net": (), "crawl.max_depth": None, "crawl.max_pages": 0})
    assert settings.fetch.only_net == ("127.0.0.0/8",)
    assert settings.crawl.max_depth == 3


def test_command_line_types():
    settings = load(
        (), {}, {"store.data": Path("here"), "fetch.only_net": ("127.0.0.0/8", "::1"), "crawl.refresh": True}
    )
    assert settings.store.data == "here"
    assert settings.fetch.only_net == ("127.0.0.0/8", "::1")
    assert settings.crawl.refresh is True


@pytest.mark.parametrize(
    ("variable", "text", "section", "key", "value"),
    [
        ("XYRO_CRAWL__REFRESH", "true", "crawl", "refresh", True),
        ("XYRO_CRAWL__MAX_PAGES", "100", "crawl", "max_pages", 100),
        ("XYRO_CRAWL__MAX_DEPTH", "0", "crawl", "max_depth", 0),
        ("XYRO_CRAWL__SCOPE", "any", "crawl", "scope", "any"),
        ("XYRO_POLITENESS__DELAY", "0.25", "politeness", "delay", 0.25),
        ("XYRO_FETCH__ONLY_NET", "127.0.0.0/8, ::1/128", "fetch", "only_net", ("127.0.0.0/8", "::1/128")),
        ("XYRO_FETCH__ONLY_NET", '["127.0.0.0/8", "10.0.0.0/8"]', "fetch", "only_net", ("127.0.0.0/8", "10.0.0.0/8")),
        ("XYRO_FETCH__PORTS", "80,443", "fetch", "ports", (80, 443)),
        ("XYRO_FETCH__NAME_SERVERS", "[::1]:5353,9.9.9.9", "fetch", "name_servers", ("[::1]:5353", "9.9.9.9")),
        ("XYRO_CRAWL__SKIP_SUFFIXES", "[]", "crawl", "skip_suffixes", ()),
        ("XYRO_FETCH__USER_AGENT", "My-Bot", "fetch", "user_agent", "My-Bot"),
    ],
)
def test_environment_is_read_by_the_type_of_the_key(variable, text, section, key, value):
    assert getattr(getattr(load((), {variable: text}), section), key) == value


@pytest.mark.parametrize(
    ("text", "seconds"), [("'10m'", 600.0), ("'1h'", 3600.0), ("'1.5 h'", 5400.0), ("'90s'", 90.0), ("90", 90.0)]
)
def test_seconds_are_told_in_words_too(toml, text, seconds):
    assert load([toml(f"[refresh]\nmin_interval = {text}\n")]).refresh.min_interval == seconds


def test_spans_of_the_environment_and_of_their_ranges():
    environ = {"XYRO_REFRESH__MIN_INTERVAL": "1h", "XYRO_REFRESH__MAX_INTERVAL": "30d", "XYRO_POLITENESS__DELAY": "0"}
    settings = load((), environ)
    assert (settings.refresh.min_interval, settings.refresh.max_interval) == (3600.0, 30 * 86_400.0)
    assert settings.politeness.delay == 0.0
    told = 'environment: XYRO_REFRESH__MAX_INTERVAL: expected a number of seconds, 1 or more, or a text such as "30d"'
    assert refusal((), {"XYRO_REFRESH__MAX_INTERVAL": "30 years"}).startswith(told)
    assert refusal((), {"XYRO_REFRESH__MAX_INTERVAL": "0.5s"}).startswith(told)


def test_variables_that_are_not_settings_are_left_alone():
    environ = {"XYRO_CRASH": "commit:3", "PATH": "/bin", "XYRO_API__PORT": "", "OTHER_CRAWL__SCOPE": "any"}
    assert load((), environ) == Settings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[politeness]\ndelay = 'x'", f"[politeness] delay: {SECONDS}, got 'x'"),
        ("[politeness]\nmin_delay = -1", f"[politeness] min_delay: {SECONDS}, got -1"),
        ("[politeness]\nmin_delay = nan", f"[politeness] min_delay: {SECONDS}, got nan"),
        ("[politeness]\nmin_delay = inf", f"[politeness] min_delay: {SECONDS}, got inf"),
        ("[politeness]\nmin_delay = true", f"[politeness] min_delay: {SECONDS}, got True"),
        ("[crawl]\nmax_pages = 1.5", "[crawl] max_pages: expected a whole number, 0 or more, got 1.5"),
        ("[crawl]\nrefresh = 1", "[crawl] refresh: expected true or false, got 1"),
        ("[crawl]\nscope = 'site'", '[crawl] scope: expected "host", "domain" or "any", got \'site\''),
        ("[crawl]\ninclude = '*'", "[crawl] include: expected a list of URL patterns with * and ?"),
        (
            "[crawl]\nskip_suffixes = ['png']",
            "[crawl] skip_suffixes: expected a list of lower-case suffixes with their dot",
        ),
        ("[crawl]\nskip_suffixes = ['.tar.gz']", "[crawl] skip_suffixes: expected a list of lower-case suffixes"),
        ("[crawl]\npartitions = 0", "[crawl] partitions: expected a whole number, 1 to 4096, got 0"),
        ("[opic]\ndamping = 1.0", "[opic] damping: expected a number between 0 and 1, got 1.0"),
        ("[refresh]\ngamma = 101", '[refresh] gamma: expected a percentage, 0 to 100, or "auto", got 101'),
        (
            "[fetch]\nonly_net = ['10.0.0.1/8']",
            "[fetch] only_net: expected a list of networks, such as 10.0.0.0/8, got",
        ),
        ("[fetch]\nonly_net = ['host']", "[fetch] only_net: expected a list of networks"),
        ("[fetch]\nonly_net = ['127.0.0.1/8']", "got ['127.0.0.1/8']; write 127.0.0.0/8"),
        (
            "[fetch]\nname_servers = ['dns.example']",
            "[fetch] name_servers: expected a list of addresses of name servers",
        ),
        (
            "[fetch]\nname_servers = ['127.0.0.1:0']",
            "[fetch] name_servers: expected a list of addresses of name servers",
        ),
        (
            "[fetch]\nname_servers = ['127.0.0.1:']",
            "[fetch] name_servers: expected a list of addresses of name servers",
        ),
        ("[fetch]\nports = [70000]", "[fetch] ports: expected a list of port numbers, 1 to 65535, got [70000]"),
        ("[fetch]\nuser_agent = 'Xyro/1.0'", "[fetch] user_agent: expected a product token of letters"),
        ('[fetch]\ncontact = "a@b\\r\\nHost: x"', "[fetch] contact: expected a mail address or URL"),
        ("[fetch]\ncontact = 'me'", "[fetch] contact: expected a mail address or URL"),
        ("[fetch]\ncontact = 'example.org/bot'", "[fetch] contact: expected a mail address or URL"),
        ("[politness]\ndelay = 1", "[politness]: unknown; did you mean politeness?"),
        ("[politeness]\nmindelay = 1", "[politeness] mindelay: unknown; did you mean min_delay?"),
        ("[crawl]\nmin_delay = 1", "[crawl] min_delay: no such key here; it belongs to [politeness]"),
        ("[api]\nzzz = 1", "[api] zzz: unknown; known are host, port"),
        ("gamma = 3", "[gamma]: unknown"),
        ("crawl = 3", "crawl: expected a section, [crawl] with its keys below it, got one value"),
        ("[[crawl]]\nscope = 'any'", "crawl: expected a section"),
        ("[rules]\nhost = 'a'", "rules: expected tables, each headed [[rules]]"),
        ("[[rules]]\nmax_depth = 1", "[[rules]] number 1: expected a host or a pattern"),
        ("[[rules]]\nhost='a'\n[[rules]]\nhost='A b'", "[[rules]] number 2: host: expected a host, or"),
        ("[[rules]]\nhost='a'\ndepth=1", "[[rules]] number 1: depth: unknown; did you mean max_depth?"),
        ("[crawl\n", "Expected ']'"),
        ('["\\u001b[31mred"]\nx = 1', "['\\x1b[31mred']: unknown"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_place_and_mend(toml, text, told):
    path = toml(text)
    message = refusal([path])
    assert message.startswith(f"{path}: ")
    assert told in message
    assert message.isprintable()


def test_the_layer_at_fault_is_named(toml):
    good = toml("[opic]\nwindow = 2\n")
    assert refusal([good], {"XYRO_OPIC__WINDOW": "wide"}) == (
        "environment: XYRO_OPIC__WINDOW: expected a number of turnovers, 0.1 to 1000, or \"auto\", got 'wide'"
    )
    assert (
        refusal([], {"XYRO_OPIC__WINDO": "2"}) == "environment: XYRO_OPIC__WINDO: windo: unknown; did you mean window?"
    )
    assert "section opc: unknown; did you mean opic?" in refusal([], {"XYRO_OPC__WINDOW": "2"})
    assert refusal([], {}, {"opic.window": 0}) == (
        'command line: [opic] window: expected a number of turnovers, 0.1 to 1000, or "auto", got 0'
    )
    assert "command line: [opic] windw: unknown" in refusal([], {}, {"opic.windw": 1})


# Secrets

SECRET = "p4ss word\n"
"""wrong in every field whose value has a form"""


def secret_fields() -> Iterator[tuple[str, str]]:
    """(section, key) of each field that the schema marks."""
    for section in msgspec.structs.fields(Settings):
        kind = TABLES.get(section.name) or section.type
        for field in msgspec.structs.fields(kind):
            if "'secret': True" in repr(field.type):
                yield section.name, field.name


def test_the_schema_marks_every_field_that_may_hold_a_secret():
    marked = set(secret_fields())
    fields = {
        (section.name, field.name)
        for section in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(TABLES.get(section.name) or section.type)
    }
    words = r"(headers|cookies|auth|proxy|secret|tokens?|password|url|callback|join|command)$"
    assert marked == {(section, key) for section, key in fields if re.search(words, key)}


@pytest.mark.parametrize(("section", "key"), [*secret_fields()])
def test_no_source_shows_a_value_that_may_be_a_secret(toml, section, key):
    told = []
    for value in (SECRET, [SECRET], {"x": SECRET}, {"env": SECRET}, 3, "x" * 5000):
        line = f"{key} = {_inline(value)}\n"
        told.append(_told([toml(f"[{section}]\n{line}")]))
        if section in TABLES:
            told.append(_told([toml(f"[[{section}]]\n{line}")]))
        else:
            told.append(_told([], {f"XYRO_{section}__{key}".upper(): json.dumps(value)}))
            told.append(_told([], {}, {f"{section}.{key}": value}))
    assert any("got something else" in line for line in told)
    assert not [line for line in told if "p4ss" in line or "xxxx" in line]


def _inline(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {json.dumps(text)}" for name, text in value.items()) + " }"
    return json.dumps(value)


def _told(*layers) -> str:
    try:
        load(*layers)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("XYRO_FETCH__PROXY_AUTH", "pu:PR0XYS3CRET"),
        ("XYRO_FETCH__HEADERS", '["Authorization: Bearer S3CRET"]'),
        ("XYRO_FETCH__PROXY", "http://pu:S3CRET@127.0.31.1:3128"),
    ],
)
def test_a_secret_in_a_variable_stays_there(variable, value):
    told = refusal([], {variable: value})
    assert "got something else" in told
    assert "S3CRET" not in told


def test_a_value_beside_secrets_is_shown(toml):
    """The field decides, not a word in the name of the file or of another setting."""
    path = toml("[fetch]\nproxy_resolves = 3\n", "proxy-secret.toml")
    assert refusal([path]) == f"{path}: [fetch] proxy_resolves: expected true or false, got 3"


def test_a_mistake_is_told_even_where_a_later_layer_would_cover_it(toml):
    assert "min_delay" in refusal([toml("[politeness]\nmin_delay = 'x'")], {}, {"politeness.min_delay": 1.0})


def test_files_that_cannot_be_read(tmp_path):
    assert refusal([tmp_path / "none.toml"]) == f"{tmp_path / 'none.toml'}: No such file or directory"
    assert refusal([tmp_path]).startswith(f"{tmp_path}: ")
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# caf\xe9\n")
    assert refusal([latin]).startswith(f"{latin}: ")


def test_settings_that_contradict_each_other():
    assert refusal([], {}, {"refresh.min_interval": 7200.0, "refresh.max_interval": 60.0}) == (
        "settings: [refresh] min_interval: 7200 is above max_interval, 60: lower the one or raise the other"
    )
    assert "first_byte_timeout" in refusal([], {}, {"fetch.total_timeout": 12.0})


def test_rules_are_kept_in_order_and_replaced_as_a_whole(toml):
    one = toml(
        "[[rules]]\nhost = 'a.example'\nmax_depth = 1\n[[rules]]\npattern = '*/old/*'\nexclude = ['*']\n", "a.toml"
    )
    assert load([one]).rules == (RuleTable(host="a.example", max_depth=1), RuleTable(pattern="*/old/*", exclude=("*",)))
    two = toml("[[rules]]\nhost = '*.b.example'\n", "b.toml")
    assert load([one, two]).rules == (RuleTable(host="*.b.example"),)
    assert load([one, toml("[crawl]\nscope = 'any'", "c.toml")]).rules == load([one]).rules


def test_settings_are_frozen():
    with pytest.raises(AttributeError):
        load().crawl.scope = "any"


def test_the_package_alone_imports_nothing_heavy():
    code = "import sys, xyro.configs; assert not {'msgspec', 'tomllib', 'xyro.configs.schema'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize(
    ("variable", "mend"),
    [
        ("XYRO_POLITENESS_MIN_DELAY", "did you mean XYRO_POLITENESS__MIN_DELAY?"),
        ("XYRO_MIN_DELAY", "did you mean XYRO_POLITENESS__MIN_DELAY?"),
        ("XYRO_DIRECTORY", "did you mean XYRO_KEEP__DIRECTORY or XYRO_BACKUP__DIRECTORY?"),
        ("XYRO_FETCH_PROXI", "did you mean XYRO_FETCH__PROXY?"),
        ("XYRO_SITES", "[[sites]] stands in a file (--config)"),
        ("XYRO_API_PORT", "did you mean XYRO_API__PORT?"),
        ("XYRO_DEBUG", "those are called XYRO_SECTION__KEY: correct its name, or unset it"),
    ],
)
def test_a_variable_of_ours_that_is_no_setting_is_refused(variable, mend):
    with pytest.raises(InputError) as caught:
        refuse_strangers({"PATH": "/bin", variable: "S3CRET"}, Settings())
    assert str(caught.value) == f"environment: {variable}: not a setting; {mend}"


def test_a_table_is_no_variable():
    told = "environment: XYRO_SITES__HOST: [[sites]] stands in a file (--config)"
    assert refusal([], {"XYRO_SITES__HOST": "example.org"}) == told


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("XYRO_CONTACT", "me@example.org"),
        ("XYRO_TEST_KILLS", "25"),
        ("XYRO_FETCH__PROXY", "http://127.0.0.1:3128"),
        ("XYRO_DEBUG", ""),
        ("MY_XYRO_DEBUG", "1"),
        ("XYRO_SERVICE_HOST", "10.0.0.1"),
        ("XYRO_HUB_SERVICE_PORT_NATS", "4222"),
        ("XYRO_API_PORT", "tcp://10.0.0.1:8089"),
        ("XYRO_PORT_8089_TCP", "tcp://10.0.0.1:8089"),
        ("XYRO_PORT_8089_TCP_ADDR", "10.0.0.1"),
        ("XYRO_WIKI", "user:password"),
        ("XYRO_WIKI_KEY", "key"),
        ("XYRO_PROXY_LOGIN", "user:password"),
    ],
)
def test_variables_that_others_named_so_are_left_alone(toml, variable, text):
    """Those of a test, of a service in Kubernetes, and of secrets that the settings name."""
    secrets = (
        '[fetch]\nproxy_auth = { env = "XYRO_PROXY_LOGIN" }\n[[sites]]\nhost = "a.example"\n'
        'auth = { env = "XYRO_WIKI" }\nheaders = { "X-Key" = { env = "XYRO_WIKI_KEY" } }\n'
    )
    refuse_strangers({variable: text}, load([toml(secrets)]))


# Settings that went


@pytest.mark.parametrize(("section", "key", "value"), GONE)
def test_a_setting_that_went_is_answered_with_what_stands_for_it_now(toml, section, key, value):
    path, line = toml(f"[{section}]\n{key} = {value or 'x'!r}\n"), GONE[section, key, value]
    assert refusal([path]) == f"{path}: [{section}] {key}: {line}"
    variable = f"XYRO_{section}__{key}".upper()
    assert refusal([], {variable: value or "x"}) == f"environment: {variable}: {line}"
    assert refusal([], {}, {f"{section}.{key}": value or "x"}) == f"command line: [{section}] {key}: {line}"
    assert line.isprintable()


def test_what_went_is_no_setting_any_more():
    for section, key, value in GONE:
        kind = TABLES.get(section) or type(getattr(Settings(), section))
        assert value is not None or key not in kind.__struct_fields__


def test_a_value_that_went_leaves_the_others_of_its_key(monkeypatch, toml):
    monkeypatch.setattr(gone, "GONE", {("log", "level", "debug"): "went: write info"})
    assert load([toml("[log]\nlevel = 'info'\n")]).log.level == "info"
    assert refusal([toml("[log]\nlevel = 'debug'\n")]).endswith("[log] level: went: write info")
    assert refusal([toml("[log]\nlevel = 3\n")]).endswith("got 3")
