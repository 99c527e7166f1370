"""Bodies of waiting documents: in memory until the library has them."""

from __future__ import annotations

from xyro.loader.bodies import Bodies
from xyro.loader.library import NOTHING, StoredPart


class Shelves:
    """A library that has some bodies."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[int, int], bytes] = {}

    def part(self, url: str, *, unchanged: bool = False) -> StoredPart | None:
        return None

    def body(self, page: int, epoch: int) -> bytes | None:
        return self.bodies.get((page, epoch))


def test_what_the_library_has_leaves_the_memory_and_is_read_from_there() -> None:
    library = Shelves()
    bodies = Bodies(1_000, library)
    for page in range(100):
        library.bodies[page, 1] = packed = bytes([page]) * 100
        bodies.put(page, 1, packed)
        assert bodies.size <= 1_000
    assert all(bodies.get(page, 1) == bytes([page]) * 100 for page in range(100))
    assert not list(bodies.excess())


def test_what_is_on_its_way_to_the_library_stays() -> None:
    library = Shelves()
    bodies = Bodies(1_000, library)
    for page in range(30):
        bodies.put(page, 1, bytes(100))
    assert bodies.size == 3_000 and not list(bodies.excess())
    assert all(bodies.get(page, 1) is not None for page in range(30))
    library.bodies.update({(page, 1): bytes(100) for page in range(30)})
    for page in range(30, 35):
        bodies.put(page, 1, bytes(100))
    assert bodies.size < 2_000, "as soon as it is written, with the next ones"


def test_the_oldest_beyond_all_bounds_are_given_up() -> None:
    bodies = Bodies(1_000, NOTHING)
    for page in range(12):
        bodies.put(page, 1, bytes(100))
    assert list(bodies.excess()) == [0, 1]


def test_another_read_is_another_body() -> None:
    bodies = Bodies(1_000, NOTHING)
    bodies.put(1, 5, b"five")
    assert bodies.get(1, 4) is None
    bodies.put(1, 6, b"sixth")
    assert (bodies.get(1, 6), bodies.size) == (b"sixth", 5)
    bodies.drop(1)
    assert (bodies.get(1, 6), bodies.size) == (None, 0)
