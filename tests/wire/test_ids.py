"""Page ids: partition and row number, there and back."""

from xyro.wire.ids import LocalPage, PageId, first_id, join, local_page, owner_of, split


def test_an_id_is_the_partition_and_the_row_number() -> None:
    page = join(3, 7)
    assert page == 3 * 2**32 + 7
    assert split(page) == (owner_of(page), local_page(page)) == (3, 7)


def test_the_widest_numbers_go_there_and_back() -> None:
    assert split(join(2**16 - 1, 2**32 - 1)) == (2**16 - 1, LocalPage(2**32 - 1))
    assert split(PageId(2**63 - 1)) == (2**31 - 1, 2**32 - 1)


def test_row_numbers_become_ids_by_addition() -> None:
    assert [first_id(2) + page for page in (0, 5)] == [join(2, 0), join(2, 5)]
