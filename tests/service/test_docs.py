"""Whatever a person can type or set is documented, and whatever is documented can be typed."""

import configparser
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import msgspec
import pytest

from tests.service.face import ROOT
from xyro.configs.load import TABLES
from xyro.configs.schema import Settings
from xyro.service.cli.main import main
from xyro.service.views.export import COLUMNS

README = (ROOT / "README.md").read_text(encoding="utf-8")
DEFAULTS = (ROOT / "configs" / "default.toml").read_text(encoding="utf-8")
CONTRACT = {
    "crawl": {"--data", "--max-pages", "--max-seconds", "--scope", "--max-depth", "--delay", "--only-net", "--contact",
              "--refresh", "--partitions", "--json", "--config"},
    "serve": {"--config", "--data"},
    "submit": {"--file", "--priority", "--data"},
    "status": {"--json", "--data"},
    "top": {"-n", "--by", "--json", "--data"},
    "why": {"--json", "--data"},
    "plan": {"--target", "--bandwidth", "--policy", "--json", "--data"},
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
    "lab web": set(),
    "lab demo": {"--data"},
}  # fmt: skip
"""names that the README promises"""


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


def options(command: click.Command) -> set[str]:
    return {name for option in command.params if isinstance(option, click.Option) for name in option.opts}


def shown() -> list[str]:
    """What README's transcripts type, a command each."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    typed = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [part.strip(" &") for line in typed for part in re.split(r"[;|]", line.split("  #")[0].rstrip())]


XYRO = [line for line in shown() if line.startswith("xyro ")]


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contract_s_names_exist(name):
    assert name in COMMANDS and options(COMMANDS[name]) >= CONTRACT[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_readme_and_has_help(name):
    words = name.split()
    written = rf"`xyro {name}|`(xyro \w+ HOST`, `)*{name} HOST" if len(words) == 1 else rf"`xyro {name}"
    assert re.search(written, README), f"README does not tell of `xyro {name}`"
    assert COMMANDS[name].help and COMMANDS[name].help.rstrip().endswith((".", "."))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option):
            assert option.help, f"xyro {name} {option.opts[0]}"


@pytest.mark.parametrize("option", sorted(options(COMMANDS["crawl"]) | options(COMMANDS["serve"])))
def test_every_option_of_a_crawl_is_in_readme(option):
    assert re.search(rf"`{option}\b", README)


def test_options_of_serve_are_marked_in_readme():
    marked = set(re.findall(r"^\| `(--[\w-]+)[^|]*\* \|", README, re.MULTILINE))
    assert marked == options(COMMANDS["serve"])


def test_readme_types_commands():
    assert len(XYRO) > 15
    typed = {words[0] if words[0] != "xml" else " ".join(words[:2]) for words in (line.split()[1:] for line in XYRO)}
    assert typed >= set(CONTRACT) - {"lab web", "lab demo"}


@pytest.mark.parametrize("line", XYRO)
def test_what_readme_types_can_be_typed(line):
    words = shlex.split(line)[1:]
    if words in (["--help"], ["--version"]):
        return
    name = " ".join(words[:2]) if words[0] in ("lab", "xml") else words[0]
    command = COMMANDS[name]
    context = command.make_context(name, words[len(name.split()) :])  # raises where an option or a value is unknown
    assert context.command is command


def test_make_targets_of_readme_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {line.split()[1] for line in shown() if line.startswith("make ")} | set(re.findall(r"`make (\w+)", README))
    assert named and named <= targets | {"crawl", "test", "lint"} and {"crawl", "test", "lint"} <= targets


def test_modules_of_readme_exist():
    for module in re.findall(r"python3? -m (\S+?)[ `]", README):
        if module != "http.server":
            assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def test_links_of_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    for link in links:
        assert link.startswith("https://") or (ROOT / link).is_file(), link


@pytest.mark.parametrize("table", ["pages", "documents"])
def test_every_column_is_in_readme(table):
    assert [name for name in COLUMNS[table] if f"`{name}`" not in README] == []


def settings() -> list[tuple[str, str]]:
    sections = [field for field in msgspec.structs.fields(Settings) if field.name not in TABLES]
    return [(section.name, key.name) for section in sections for key in msgspec.structs.fields(section.type)]


@pytest.mark.parametrize("section", sorted({section for section, _ in settings()}))
def test_every_section_is_in_readme(section):
    assert f"| `[{section}]` |" in README


@pytest.mark.parametrize(("section", "key"), settings())
def test_every_setting_is_in_default_toml_below_a_comment(section, key):
    within = DEFAULTS.split(f"\n[{section}]\n")[1].split("\n[")[0]
    before = re.split(rf"^#?{key} = ", within, flags=re.MULTILINE)
    assert len(before) == 2, f"[{section}] {key} stands there {len(before) - 1} times"
    assert "# " in before[0]


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_documented(name):
    assert f"[[{name}]]" in DEFAULTS and f"`[[{name}]]`" in README
    within = DEFAULTS.split(f"#[[{name}]]")[1].split("#[[")[0]
    assert all(f"\n#{key.name} = " in within for key in msgspec.structs.fields(TABLES[name]))


def test_example_files_are_in_readme_and_are_toml():
    for path in sorted((ROOT / "configs").glob("*.toml")):
        assert f"(configs/{path.name})" in README
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
    assert service["RestartPreventExitStatus"] == "2", "bad input stays bad"


def test_variables_of_readme_are_settings():
    for section, key in re.findall(r"XYRO_([A-Z]+)__([A-Z_]+)", README):
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


def test_nothing_of_this_machine_is_in_readme():
    found = re.findall(r"/(?:root|work|tmp|home)/\S*", README)
    assert found == []


def test_help_of_every_command_fits_a_terminal():
    for name in COMMANDS:
        if name.startswith("lab ") and name != "lab demo":
            continue
        with COMMANDS[name].make_context(f"xyro {name}", ["x"] * 2, resilient_parsing=True) as context:
            assert max(map(len, COMMANDS[name].get_help(context).splitlines())) <= 110


def test_shell_lines_of_readme_are_shell():
    for line in shown():
        if line:
            subprocess.run(["bash", "-n", "-c", line], check=True, timeout=30)
