"""The repository: against a plain model of it, over every way to store, retain and forget; on a real LevelDB too."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.rig import in_memory_partition
from xyro.metadata import rows
from xyro.metadata.documents import (
    COMPARED,
    DAY,
    Archive,
    Documents,
    changed_bytes,
    digest_of,
    unpack_document,
    unpack_version,
)
from xyro.metadata.partition import create
from xyro.metadata.recovery import open_partition
from xyro.metadata.store import MemoryStore
from xyro.wire.errors import MachineError
from xyro.wire.messages import Document, Kind, Verdict

BODIES = [b"", b"<a/>", b"<a>1</a>", b"<a>2</a>"]


def document(body, epoch=1, page=0, **fields):
    said = {"read_at": float(epoch), "kind": Kind.XML} | fields
    return Document(
        page,
        f"http://a.example/{page}",
        epoch,
        digest=digest_of(body),
        packed=zlib.compress(body),
        size=len(body),
        **said,
    )


def memory():
    return in_memory_partition(MemoryStore(), 0, 1)


def committed(partition):
    """A context: one commit group, written at its end."""

    class Group:
        def __enter__(self):
            partition.begin()

        def __exit__(self, *error):
            commit = partition.seal({})
            partition.write(commit)
            partition.written(commit)

    return Group()


def rows_of(partition):
    """What the store holds of documents, counted by this test alone."""
    scan = partition.store.scan
    heads = {rows.DOCUMENT.split(key): unpack_document(value) for key, value in scan(rows.DOCUMENT.prefix)}
    versions = {rows.VERSIONS.split(key): unpack_version(value) for key, value in scan(rows.VERSIONS.prefix)}
    bodies = {rows.BODY.split(key): zlib.decompress(value) for key, value in scan(rows.BODY.prefix)}
    counts = {rows.COUNT.split(key): int.from_bytes(value, "big") for key, value in scan(rows.COUNT.prefix)}
    return heads, versions, bodies, counts


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([*BODIES, None]), st.sampled_from([1, 3]), st.booleans()), max_size=25
)


@given(STEPS, st.integers(0, 3))
def test_it_is_the_model(steps, most):
    """A list of bodies a page; None forgets the page. Groups end where the last item says."""
    partition = memory()
    documents = Documents(partition, most)
    model: dict[int, list[tuple[int, bytes]]] = {}
    partition.begin()
    for epoch, (page, body, depth, ends) in enumerate(steps, 1):
        if body is None:
            documents.forget(page)
            model.pop(page, None)
        else:
            kept = model.setdefault(page, [])
            new = not kept or kept[-1][1] != body
            assert documents.store(page, document(body, epoch, page, depth=depth)) is new
            if new:
                kept.append((kept[-1][0] + 1 if kept else 1, body))
            model[page] = kept[-most:] if most else kept
        for which in range(3):
            said = [(number, documents.body(which, number)) for number, _ in documents.versions(which)]
            assert said == model.get(which, []), "reads see what this very turn put"
        if ends:
            finish(partition)
            partition.begin()
    finish(partition)
    heads, versions, bodies, counts = rows_of(partition)
    assert {page: (head.first, head.last) for page, head in heads.items()} == {
        page: (kept[0][0], kept[-1][0]) for page, kept in model.items()
    }
    held = [body for kept in model.values() for _, body in kept]
    assert bodies == {digest_of(body): body for body in held}
    assert counts == {digest_of(body): held.count(body) for body in held}
    assert len(versions) == len(held)
    said = documents.counts()
    assert (said.versions, said.bodies) == (len(held), len(bodies))
    assert said.packed == sum(len(zlib.compress(body)) for body in bodies.values())
    assert said.size == sum(len(kept[-1][1]) for kept in model.values())
    latest = [documents.latest(page) for page in model]
    assert said.depth == sum(row.depth for row in latest)
    assert said.by_kind == ({"XML": len(model)} if model else {})


def finish(partition):
    commit = partition.seal({})
    partition.write(commit)
    partition.written(commit)


def test_it_is_on_disk_with_its_turn_and_not_before(tmp_path):
    create(tmp_path / "p", 0, 1, 7, {})
    partition = open_partition(tmp_path / "p")
    documents = Documents(partition)
    partition.begin()
    assert documents.store(0, document(b"<a/>"))
    commit = partition.seal({})
    assert documents.body(0) == b"<a/>", "sealed and on its way"
    assert Archive(partition.store.get).body(0) is None
    partition.write(commit)
    partition.written(commit)
    partition.close()
    again = open_partition(tmp_path / "p")
    assert Documents(again).body(0) == b"<a/>" and Documents(again).counts().bodies == 1
    again.close()


def test_a_message_that_comes_twice_changes_nothing():
    partition = memory()
    documents = Documents(partition)
    with committed(partition):
        documents.store(0, document(b"<a/>", 5))
    before = list(partition.store.scan(b""))
    with committed(partition):
        assert not documents.store(0, document(b"<a/>", 5))
    changes = [(key[:1], value) for key, value in partition.store.scan(b"") if (key, value) not in before]
    assert {key for key, _ in changes} <= {b"j", b"m"}


def test_an_older_read_changes_nothing():
    partition = memory()
    documents = Documents(partition)
    with committed(partition):
        documents.store(0, document(b"<new/>", 5))
        assert not documents.store(0, document(b"<old/>", 4))
    assert documents.body(0) == b"<new/>" and [number for number, _ in documents.versions(0)] == [1]


def test_another_judgement_of_the_same_body_renews_its_version():
    partition = memory()
    documents = Documents(partition)
    with committed(partition):
        documents.store(0, document(b"<a/>", 1, verdict=Verdict.VALID))
        documents.store(0, document(b"<b/>", 2, verdict=Verdict.VALID, read_at=20.0))
        assert not documents.store(
            0, document(b"<b/>", 3, verdict=Verdict.INVALID, problems=("line 1: no",), read_at=9.0)
        )
    row = documents.latest(0)
    assert (row.verdict, row.problems, row.read_at, row.changed) == (Verdict.INVALID, ("line 1: no",), 20.0, 1)
    assert documents.counts().by_verdict == {"INVALID": 1} and documents.head(0).epoch == 3
    assert documents.version(0, 1).verdict is Verdict.VALID


def test_dtds_are_counted_apart():
    partition = memory()
    documents = Documents(partition)
    with committed(partition):
        documents.store(0, document(b"<!ELEMENT a ANY>", kind=Kind.DTD))
        documents.store(1, document(b"<a/>", page=1, verdict=Verdict.VALID))
    counts = documents.counts()
    assert counts.by_kind == {"DTD": 1, "XML": 1} and counts.by_verdict == {"VALID": 1}


def test_versions_stay_until_they_were_replaced_for_so_many_days():
    partition = memory()
    documents = Documents(partition, days=2.0)
    with committed(partition):
        for day in (0, 1, 2, 3, 10):
            documents.store(0, document(b"<d%d/>" % day, day + 1, read_at=day * DAY))
    assert [number for number, _ in documents.versions(0)] == [4, 5], "version 4 held until day 10"
    assert documents.body(0, 3) is None and documents.counts().bodies == 2


def test_what_is_damaged_is_said(tmp_path):
    partition = memory()
    documents = Documents(partition)
    with committed(partition):
        documents.store(0, document(b"<a>whole</a>"))
    key = rows.BODY.key(digest_of(b"<a>whole</a>"))
    for planted, words in (
        (zlib.compress(b"<a>whole, and more</a>"), "not of 12 bytes"),
        (b"junk", "does not unpack"),
        (None, "is missing"),
    ):
        with committed(partition):
            partition.put(key, planted) if planted else partition.delete(key)
        with pytest.raises(MachineError, match=words):
            documents.body(0)
    with committed(partition):
        partition.delete(rows.VERSIONS.key(0, 1))
    with pytest.raises(MachineError, match="lacks version 1"):
        documents.latest(0)


def test_a_bomb_in_the_store_is_not_unpacked():
    partition = memory()
    documents = Documents(partition)
    with committed(partition):
        documents.store(0, document(b"<a/>"))
        partition.put(rows.BODY.key(digest_of(b"<a/>")), zlib.compress(bytes(100_000_000)))
    with pytest.raises(MachineError, match="not of 4 bytes"):
        documents.body(0)


# Quantity of change


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (b"<a/>", b"<a/>", 0),
        (b"", b"<a/>", 4),
        (b"<a><b>1</b><c/></a>", b"<a><b>2</b><c/></a>", 1),
        (b"<a><b>1</b></a>", b"<a><b>1</b><c>2</c></a>", 8),
        (b"<r><a/><b/><c/><d/><e/></r>", b"<r><e/><b/><c/><d/><a/></r>", 6),
    ],
)
def test_changed_bytes(old, new, changed):
    assert changed_bytes(old, new) == changed == changed_bytes(new, old)


@given(st.lists(st.sampled_from([b"<a>", b"</a>", b"x", b">", b"<bb c='1'/>"])).map(b"".join), st.data())
def test_changed_bytes_is_symmetric_bounded_and_zero_for_equal_ones_only(old, data):
    new = data.draw(st.lists(st.sampled_from([b"<a>", b"</a>", b"y", b"<bb c='2'/>"])).map(b"".join))
    changed = changed_bytes(old, new)
    assert type(changed) is int and changed == changed_bytes(new, old) <= max(len(old), len(new))
    assert (changed == 0) == (old == new)


def test_the_change_of_huge_bodies_is_not_counted():
    partition = memory()
    documents = Documents(partition)
    with committed(partition):
        documents.store(0, document(b"x" * (COMPARED + 1), 1))
        documents.store(0, document(b"<a/>", 2))
    assert documents.latest(0).changed == -1
