"""What the project declares, locks and ships, against what its code uses."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests import layers

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DECLARED = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
EXTRAS = {
    extra: [Requirement(line) for line in lines] for extra, lines in PROJECT["project"]["optional-dependencies"].items()
}
OPTIONAL = [requirement for extra, lines in EXTRAS.items() if extra != "dev" for requirement in lines]
BUILD = [Requirement(line) for line in PROJECT["build-system"]["requires"]]
PACKAGES = PROJECT["tool"]["setuptools"]["packages"]
OURS = layers.read(ROOT, PACKAGES)

CARD_PACKAGES = ("aiohttp", "aiodns", "lxml", "selectolax", "plyvel", "msgpack", "uvloop", "protego")
CARD_FOLDERS = ("xyro", "metadata", "opic", "refresh", "loader", "configs", "tests")
CARD_NAMES = ("pyproject.toml", *CARD_FOLDERS, "docker-compose.yml", "README.md")
LOCKS = ("requirements.lock", "requirements-dev.lock")


def module_of(requirement: Requirement) -> str:
    return {"pyyaml": "yaml"}.get(requirement.name, requirement.name.replace("-", "_"))


# What is used


def test_each_package_of_the_card_is_declared_and_used() -> None:
    assert {requirement.name for requirement in DECLARED} >= set(CARD_PACKAGES)
    assert layers.imported(OURS) >= set(CARD_PACKAGES)


def test_each_dependency_is_used_and_nothing_else_is() -> None:
    foreign = layers.imported(OURS) - sys.stdlib_module_names - set(PACKAGES)
    assert foreign == {module_of(requirement) for requirement in [*DECLARED, *OPTIONAL]}


def test_what_the_tests_import_is_declared() -> None:
    declared = [*DECLARED, *OPTIONAL, *EXTRAS["dev"], *BUILD]
    used = layers.imported(layers.read(ROOT, ["tests"])) - sys.stdlib_module_names - {*PACKAGES, "tests"}
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
        (line,) = re.findall(rf'^ +"{re.escape(requirement.name)}[^a-z-].*$', text, re.M)
        assert re.search(r'",\s+# .{5,}', line), line
        assert " -> " in line or requirement.name == "xyro", line


def test_all_lists_of_packages_are_one_list() -> None:
    rooms = [path.parent.relative_to(ROOT) for depth in ("*", "*/*") for path in ROOT.glob(f"{depth}/__init__.py")]
    folders = {".".join(room.parts) for room in rooms if room.parts[0] not in ("tests", ".venv")}
    assert set(PACKAGES) == folders
    assert PROJECT["tool"]["mypy"]["files"] == [name for name in PACKAGES if "." not in name]


@pytest.mark.parametrize("room", PACKAGES)
def test_the_map_of_a_package_names_all_its_modules(room: str) -> None:
    folder = ROOT / room.replace(".", "/")
    words = re.findall(r"[a-z_0-9]+[*]?", str(ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))))
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel that `pip install .` makes, built from a copy: building leaves files in its folder."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*(name for name in PACKAGES if "." not in name), "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    built = subprocess.run(
        [*command, "-w", target, source], capture_output=True, text=True, env=environment, timeout=120
    )
    assert built.returncode == 0, f"{built.stderr}\nThe environment lacks the build backend of the lock: `make dev`"
    (path,) = target.iterdir()
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_the_packages_and_the_settings_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    settings = {path.relative_to(ROOT).as_posix() for path in (ROOT / "configs").glob("*.toml")}
    assert "configs/default.toml" in settings
    assert shipped == set(OURS) | settings


def test_the_wheel_gives_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    points = configparser.ConfigParser()
    points.read_string(wheel.read(name).decode())
    module, _, function = points["console_scripts"]["xyro"].partition(":")
    assert f"def {function}(" in wheel.read(f"{module.replace('.', '/')}.py").decode()


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    said = Parser().parsestr(wheel.read(name).decode())
    assert (said["Name"], said["License-Expression"], said["Requires-Python"]) == ("xyro", "Apache-2.0", ">=3.11")
    assert any(entry.endswith("/licenses/LICENSE") for entry in wheel.namelist())
    required = {Requirement(line) for line in said.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert required == set(DECLARED)
    assert set(said.get_all("Provides-Extra", [])) == EXTRAS.keys()


def test_licence_version_and_change_log_agree() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence and "Version 2.0, January 2004" in licence
    version = PROJECT["project"]["version"]
    assert re.search(rf"^## \[.*{re.escape(version)}", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
