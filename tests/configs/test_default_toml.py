"""default.toml is the reference: every key once, equal to the schema; the variations load and do vary."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from xyro import configs
from xyro.configs.load import TABLES, load
from xyro.configs.schema import FocusTable, RuleTable, Settings

FOLDER = Path(configs.__file__).parent
DEFAULT = FOLDER / "default.toml"
VARIATIONS = ["single.toml", "cluster.toml", "fresh.toml", "xml.toml", "archive.toml", "serve.toml"]


def keys_of_the_schema() -> list[tuple[str, str]]:
    sections = {field.name: TABLES.get(field.name, field.type) for field in msgspec.structs.fields(Settings)}
    return [(name, field.name) for name, section in sections.items() for field in msgspec.structs.fields(section)]


def keys_of_the_file(text: str) -> list[tuple[str, str]]:
    """(section, key) of every line `key = ...` and `#key = ...` (no blank behind the #: a key that is not set)."""
    found, section = [], ""
    for line in text.splitlines():
        if header := re.match(r"#?\[+(\w+)\]+$", line):
            section = header[1]
        elif key := re.match(r"#?(\w+) = ", line):
            found.append((section, key[1]))
    return found


def test_it_loads_and_equals_the_defaults_of_the_schema():
    assert load([DEFAULT]) == Settings()


def test_every_key_stands_in_it_exactly_once_and_in_the_order_of_the_schema():
    assert keys_of_the_file(DEFAULT.read_text()) == keys_of_the_schema()


def test_a_key_is_commented_out_only_where_the_schema_has_no_value_for_it():
    document = tomllib.loads(DEFAULT.read_text())
    unset = {
        (section, field.name)
        for section, table in msgspec.structs.asdict(Settings()).items()
        if section not in TABLES
        for field in msgspec.structs.fields(table)
        if field.default is None
    }
    active = {(section, key) for section, table in document.items() for key in table}
    assert active | unset == {pair for pair in keys_of_the_schema() if pair[0] not in TABLES}
    assert not active & unset


def test_commented_examples_are_themselves_valid(tmp_path):
    text = re.sub(r"(?m)^#(?=\[|\w+ = )", "", DEFAULT.read_text())
    path = tmp_path / "all.toml"
    path.write_text(text)
    settings = load([path])
    assert settings.crawl.max_depth == 5
    assert settings.politeness.delay == 1.0
    assert settings.rules == (RuleTable("*.example.org", "*/archive/*", 2, (), ("*?page=*",)),)
    leads_to = ("xml", "rss", "atom")
    assert settings.focus == (FocusTable(5.0, ("*/news/*",), ("*.example.org",), ("XML",), ("news",), leads_to),)


def test_every_section_and_key_is_explained():
    blocks = DEFAULT.read_text().split("\n")
    for number, line in enumerate(blocks):
        if re.match(r"#?\w+ = ", line):
            above = next(text for text in reversed(blocks[:number]) if not re.match(r"#?\w+ = ", text))
            assert above.startswith(("# ", "]", "#[[")), line


@pytest.mark.parametrize("name", VARIATIONS)
def test_a_variation_loads_varies_and_says_when_to_use_it(name):
    path = FOLDER / name
    text = path.read_text()
    assert load([path]) != Settings()
    assert len(re.match(r"(#.*\n)+", text)[0]) > 300
    document = tomllib.loads(text)
    same = [
        (section, key)
        for section, table in document.items()
        if section not in TABLES
        for key, value in table.items()
        if value == getattr(getattr(Settings(), section), key)
    ]
    assert same == []


def test_cluster_has_64_partitions():
    assert load([FOLDER / "cluster.toml"]).crawl.partitions == 64
