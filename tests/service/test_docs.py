"""Whatever a person can type, set or ask for is documented, in README.md or docs/, and what is documented exists."""

import configparser
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import msgspec
import pytest

from tests.service.face import ROOT, xyro
from xyro.configs.load import TABLES, load
from xyro.configs.schema import Settings
from xyro.service.cli.main import main
from xyro.service.views.export import COLUMNS

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
README = PAGES["README.md"]
TEXT = "\n".join(PAGES.values())
"""all that is documented"""
PROSE = re.sub(r"^```.*?^```$", "", TEXT, flags=re.DOTALL | re.MULTILINE)
"""the same without transcripts and drawings"""
DEFAULTS = (ROOT / "configs" / "default.toml").read_text(encoding="utf-8")
CONTRACT = {
    "crawl": {"--data", "--max-pages", "--max-seconds", "--scope", "--max-depth", "--delay", "--only-net", "--contact",
              "--refresh", "--partitions", "--json", "--config"},
    "serve": {"--config", "--data"},
    "submit": {"--file", "--priority", "--data"},
    "status": {"--json", "--data"},
    "top": {"-n", "--by", "--json", "--data"},
    "why": {"--json", "--data"},
    "plan": {"--target", "--bandwidth", "--policy", "--replay", "--json", "--data"},
    "pause": {"--data"},
    "resume": {"--data"},
    "block": {"--data"},
    "export": {"--data", "--format", "-o"},
    "audit": {"--data", "--json"},
    "rank": {"--data", "--method", "--damping", "--focus", "--edges", "--reading", "--weighted", "--epsilon",
             "--memory", "--iterations", "--workers", "--asynchronous", "--keep", "-n", "--format", "-o", "--json"},
    "xml get": {"--data", "--version", "--at", "-o"},
    "xml versions": {"--data", "--json"},
    "xml query": {"--data", "--host", "--root", "--namespace", "--by", "-n", "--json"},
    "xml diff": {"--data", "--from", "--to", "--json"},
    "xml dtds": {"--data", "--json"},
    "xml stats": {"--data", "--json", "--plot"},
    "page get": {"--data", "--as", "--version", "--time", "-o"},
    "page versions": {"--data"},
    "page diff": {"--data", "--from", "--to"},
    "lab web": set(),
    "lab demo": {"--data"},
}  # fmt: skip
"""names that the documentation promises"""


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """Full name -> command, of all that do something."""
    found: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        here = (*path, name)
        found |= commands(command, here) if isinstance(command, click.Group) else {" ".join(here): command}
    return found


COMMANDS = commands()
GROUPS = {name.split()[0] for name in COMMANDS if " " in name}


def options(command: click.Command) -> set[str]:
    return {name for option in command.params if isinstance(option, click.Option) for name in option.opts}


def shown() -> list[str]:
    """What the transcripts type, a command each, without the variables that are set for it alone."""
    blocks = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    typed = [re.sub(r"^([A-Z_]+=\S+ )+", "", line) for line in lines]
    return [part.strip(" &") for line in typed for part in re.split(r"[;|]", line.split("  #")[0].rstrip())]


XYRO = [line for line in shown() if line.startswith("xyro ")]


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contract_s_names_exist(name):
    assert name in COMMANDS and options(COMMANDS[name]) >= CONTRACT[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_and_has_help(name):
    words = name.split()
    written = rf"`xyro {name}|`(xyro \w+ HOST`, `)*{name} HOST" if len(words) == 1 else rf"`xyro {name}"
    assert re.search(written, PROSE), f"no page tells of `xyro {name}`"
    assert COMMANDS[name].help and COMMANDS[name].help.rstrip().endswith((".", "."))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option):
            assert option.help, f"xyro {name} {option.opts[0]}"


@pytest.mark.parametrize("option", sorted(options(COMMANDS["crawl"]) | options(COMMANDS["serve"])))
def test_every_option_of_a_crawl_is_documented(option):
    assert re.search(rf"^\| .*`{option}\b", PAGES["docs/commands.md"], re.MULTILINE)


def test_options_of_serve_are_marked():
    marked = set(re.findall(r"^\| `(--[\w-]+)[^|]*\* \|", TEXT, re.MULTILINE))
    assert marked == {option for option in options(COMMANDS["serve"]) if option.startswith("--")}


def test_transcripts_type_commands():
    assert len(XYRO) > 15
    typed = {
        words[0] if words[0] not in GROUPS else " ".join(words[:2]) for words in (line.split()[1:] for line in XYRO)
    }
    assert typed >= set(CONTRACT) - {"lab web", "lab demo"}


@pytest.mark.parametrize("line", XYRO)
def test_what_transcripts_type_can_be_typed(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"--config (\S+)", line):
        (tmp_path / name).touch()
    words = shlex.split(line)[1:]
    if words in (["--help"], ["--version"]):
        return
    name = " ".join(words[:2]) if words[0] in GROUPS else words[0]
    command = COMMANDS[name]
    context = command.make_context(name, words[len(name.split()) :])  # raises where an option or a value is unknown
    assert context.command is command


def test_make_targets_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {line.split()[1] for line in shown() if line.startswith("make ")} | set(re.findall(r"`make (\w+)", TEXT))
    assert named and named <= targets | {"crawl", "test", "lint"} and {"crawl", "test", "lint"} <= targets


def test_modules_exist():
    for module in re.findall(r"python3? -m (\S+?)[ `]", TEXT):
        if module != "http.server":
            assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def headings(page: str) -> set[str]:
    """The anchors of a page, as GitHub makes them of its headings."""
    titles = re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    links = re.findall(r"\]\(([^)]+)\)", PAGES[name])
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        if path.startswith("https://"):
            continue
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.is_file(), link
        assert not anchor or anchor in headings(target.read_text(encoding="utf-8")), link


def test_readme_is_short_and_leads_to_every_page():
    assert len(README.splitlines()) <= 120
    assert [name for name in PAGES if name != "README.md" and f"({name})" not in README] == []


def test_commands_that_are_documented_exist():
    words = set(re.findall(r"`xyro ([a-z]+(?: [a-z]+)?)", PROSE))
    unknown = {word for word in words if word.split()[0] not in COMMANDS and word not in {*COMMANDS, *GROUPS}}
    assert words and unknown == set()


def test_options_that_are_documented_exist():
    known = {name for command in COMMANDS.values() for name in options(command)} | {"--help", "--version"}
    lines = [line for line in PROSE.splitlines() if "`xyro lab" not in line]  # most of its commands read their own
    named = {name for line in lines for name in re.findall(r"`(--[a-z][\w-]*)", line)}
    assert len(named) > 20 and named - known == set()


ROWS = re.findall(r"^\| (`xyro (?!lab).*?) \| (.*) \|$", PAGES["docs/commands.md"], re.MULTILINE)


@pytest.mark.parametrize(("cell", "text"), ROWS)
def test_a_command_has_the_options_of_its_row(cell, text):
    words = [name.split() for name in re.findall(r"`(?:xyro )?([a-z]+(?: [a-z]+)?)", cell + text)]
    names = {" ".join(word) for word in words} | {word[0] for word in words}
    known = {option for name in names & set(COMMANDS) for option in options(COMMANDS[name])}
    assert known
    assert set(re.findall(r"`(--[a-z][\w-]*)", cell + text)) - known - {"--join"} == set()


ROUTE = re.compile(r"web\.(get|post|put|delete)\(\s*\"(/[^\"]*)\"")


def routes() -> set[tuple[str, str]]:
    """(method, path) of every endpoint that the product answers at, as its sources register them."""
    sources = [
        path.read_text(encoding="utf-8") for top in ("service", "plugins") for path in (ROOT / top).rglob("*.py")
    ]
    return {(method.upper(), path) for source in sources for method, path in ROUTE.findall(source)}


def test_every_endpoint_is_documented_and_those_that_are_documented_exist():
    documented = set(re.findall(r"`(GET|POST|PUT|DELETE) (/[\w/{}]*)", PROSE))
    assert len(documented) > 20
    assert routes() - documented == set(), "docs/commands.md, The HTTP interface, does not tell of these"
    assert documented - routes() == set()


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_is_documented_and_nothing_else(table):
    """A row's paragraph or line names its columns in their order, whatever is said of them in brackets."""
    told = re.search(rf"A row of `export {table}` (.*?)\n(?:\n|- |$)", PAGES["docs/data.md"], re.DOTALL)
    assert told, table
    named = re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", told[1]))
    assert named == list(COLUMNS[table])


def settings() -> list[tuple[str, str]]:
    sections = [field for field in msgspec.structs.fields(Settings) if field.name not in TABLES]
    return [(section.name, key.name) for section in sections for key in msgspec.structs.fields(section.type)]


@pytest.mark.parametrize("section", sorted({section for section, _ in settings()}))
def test_every_section_is_documented(section):
    assert f"| `[{section}]` |" in PAGES["docs/settings.md"]


def test_sections_and_keys_that_are_documented_exist():
    keys = settings()
    sections = set(re.findall(r"`\[(\w+)\]`", PROSE))
    assert sections - {section for section, _ in keys} == set()
    assert set(re.findall(r"`\[\[(\w+)\]\]`", PROSE)) - set(TABLES) == set()
    named = set(re.findall(r"`\[(\w+)\] (\w+)", PROSE))
    assert named and named - set(keys) == set()


@pytest.mark.parametrize(("section", "key"), settings())
def test_every_setting_is_in_default_toml_below_a_comment(section, key):
    within = DEFAULTS.split(f"\n[{section}]\n")[1].split("\n[")[0]
    before = re.split(rf"^#?{key} = ", within, flags=re.MULTILINE)
    assert len(before) == 2, f"[{section}] {key} stands there {len(before) - 1} times"
    assert "# " in before[0]


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_documented(name):
    assert f"[[{name}]]" in DEFAULTS and f"`[[{name}]]`" in PAGES["docs/settings.md"]
    within = DEFAULTS.split(f"#[[{name}]]")[1].split("#[[")[0]
    assert all(f"\n#{key.name} = " in within for key in msgspec.structs.fields(TABLES[name]))


def test_settings_that_are_shown_are_settings(tmp_path):
    shown_settings = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert shown_settings
    for text in shown_settings:
        (path := tmp_path / "s.toml").write_text(text)
        load([path], {})


def test_example_files_are_documented_and_are_toml():
    for path in sorted((ROOT / "configs").glob("*.toml")):
        assert f"(../configs/{path.name})" in PAGES["docs/settings.md"]
        tomllib.loads(path.read_text(encoding="utf-8"))


def test_the_service_file_starts_stops_and_reloads_what_there_is():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string((ROOT / "configs" / "xyro.service").read_text(encoding="utf-8"))
    service = unit["Service"]
    program, command, *options = shlex.split(service["ExecStart"])
    given, left, _ = COMMANDS[command].make_parser(click.Context(COMMANDS[command])).parse_args(options)
    assert Path(program).name == "xyro" and given["data"] and given["config"] and not left
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID" and service["KillSignal"] == "SIGTERM"
    assert {service["StandardOutput"], service["StandardError"]} == {"journal"}, "the platform rotates the log"
    assert service["RestartPreventExitStatus"] == "1 2", "bad input stays bad, and a refused seed refused"


def test_variables_are_settings():
    for section, key in re.findall(r"XYRO_([A-Z]+)__([A-Z_]+)", TEXT):
        assert (section.lower(), key.lower()) in settings()


def test_packages_tell_their_story():
    """Each room names its files, and service and plugins their rooms."""
    rooms = [
        path.parent for top in ("frontier", "service", "plugins", "lab") for path in (ROOT / top).rglob("__init__.py")
    ]
    for room in sorted(rooms):
        told = (room / "__init__.py").read_text()
        assert [path.name for path in sorted(room.glob("*.py")) if not _named(path, told)] == []
        assert [
            path.parent.name for path in sorted(room.glob("*/__init__.py")) if f"{path.parent.name}/" not in told
        ] == []


def _named(path: Path, told: str) -> bool:
    family = path.name.partition("_")[0] + "_*.py"
    return path.name in ("__init__.py", "__main__.py") or path.name in told or family in told


def test_nothing_of_this_machine_is_documented():
    found = re.findall(r"/(?:root|work|tmp|home(?!/you/))/\S*", TEXT)
    assert found == []


@pytest.mark.parametrize("name", ["", *sorted(GROUPS), *COMMANDS])
def test_help_of_every_command_fits_a_terminal(name):
    """Those of the laboratory, too, each of which makes its own; one of them has parts with a help of their own."""
    told = _help(name)
    parts = re.search(r"^usage:.* (\w+(?:\|\w+)+) \.\.\.$", told, re.MULTILINE | re.DOTALL)
    assert (parts is not None) == (name == "lab speed")
    for part in parts[1].split("|") if parts else ():
        _help(f"{name} {part}")


def _help(name):
    """The help of a command, at 80 columns."""
    done = xyro(*name.split(), "--help", COLUMNS="80")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) > 3
    assert [line for line in lines if len(line) > 80] == []
    return done.stdout


def test_shell_lines_are_shell():
    for line in shown():
        if line:
            subprocess.run(["bash", "-n", "-c", line], check=True, timeout=30)
