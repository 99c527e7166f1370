"""Page ids: partition and row number, there and back."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import layers
from xyro.wire.ids import LocalPage, PageId, first_id, join, local_page, owner_of, split

ROOT = Path(__file__).parents[2]


def test_an_id_is_the_partition_and_the_row_number() -> None:
    page = join(3, 7)
    assert page == 3 * 2**32 + 7
    assert split(page) == (owner_of(page), local_page(page)) == (3, 7)


def test_the_widest_numbers_go_there_and_back() -> None:
    assert split(join(2**16 - 1, 2**32 - 1)) == (2**16 - 1, LocalPage(2**32 - 1))
    assert split(PageId(2**63 - 1)) == (2**31 - 1, 2**32 - 1)


def test_row_numbers_become_ids_by_addition() -> None:
    assert [first_id(2) + page for page in (0, 5)] == [join(2, 0), join(2, 5)]


MIXED = """
from xyro.wire.ids import LocalPage, PageId, join, local_page, local_pages, page_range, split

def read(page: LocalPage) -> None: ...
def post(page: PageId) -> None: ...

post(join(3, LocalPage(7)))
read(split(PageId(7))[1])
read(page_range(LocalPage(7), 2)[0])
post(LocalPage(7))  # refused
read(PageId(7))  # refused
read(7)  # refused
post(local_page(PageId(7)))  # refused
join(3, PageId(7))  # refused
split(LocalPage(7))  # refused
"""


@pytest.mark.long
def test_the_type_checker_keeps_them_apart(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.py"
    mixed.write_text(MIXED)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=skip"]
    command += ["--explicit-package-bases", f"--cache-dir={tmp_path}", "xyro/wire/ids.py", str(mixed)]
    environment = {**os.environ, "MYPYPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT, env=environment)
    errors = [line.split(": error: ") for line in done.stdout.splitlines()]
    refused = [number for number, line in enumerate(MIXED.splitlines(), 1) if line.endswith("# refused")]
    assert [int(place.rpartition(":")[2]) for place, _ in errors] == refused, done.stdout + done.stderr
    assert all("[arg-type]" in message for _, message in errors)


def test_every_signature_says_which_it_takes() -> None:
    """A page annotated as a bare integer would take either number; lab/ has pages that are neither."""
    rooms = [folder for folder in layers.FOLDERS if folder not in ("lab", "opic")]
    assert bare_pages(layers.read(ROOT, rooms)) == []


def test_a_bare_page_is_found() -> None:
    text = (
        "class A:\n    page: int\n    pages: int\n    def f(self, page: int | None, *, old_pages: Sequence[int]):\n"
        "        self.page: LocalPage = page\n        pages: dict[int, str] = {}\n        late_page: int = 3\n"
    )
    assert bare_pages({"wire/a.py": text}) == [
        "wire/a.py:2: page: int",
        "wire/a.py:4: page: int | None",
        "wire/a.py:4: old_pages: Sequence[int]",
        "wire/a.py:6: pages: dict[int, str]",
        "wire/a.py:7: late_page: int",
    ]


def bare_pages(sources: layers.Sources) -> list[str]:
    """Parameters, attributes and variables of pages whose annotation is a bare int (`pages: int` is a count)."""
    found = []
    for path, text in sorted(sources.items()):
        for node in ast.walk(layers.parsed(text)):
            if isinstance(node, ast.arg):
                name, hint = node.arg, node.annotation
            elif isinstance(node, ast.AnnAssign):
                name, hint = ast.unparse(node.target).rpartition(".")[2], node.annotation
            else:
                continue
            if hint is None or re.fullmatch(r"(\w*_)?pages?", name) is None:
                continue
            shape = ast.unparse(hint)
            single = re.match(r"int\b", shape) and not name.endswith("s")
            if single or re.match(r"\w+\[int\b(?!, list\[LocalPage)", shape):
                found.append((path, node.lineno, f"{path}:{node.lineno}: {name}: {shape}"))
    return [line for _, _, line in sorted(found, key=lambda each: each[:2])]
