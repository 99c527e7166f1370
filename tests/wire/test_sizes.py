import pytest

from xyro.wire.errors import InputError
from xyro.wire.sizes import size, sized


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("17", 17), ("500 MB", 500_000_000), ("1.5 GB", 1_500_000_000), ("2 GiB", 2 << 30), ("3kb", 3000)],
)
def test_sizes_as_people_write_them(text, count):
    assert size(text, "x") == count


@pytest.mark.parametrize("text", ["", "GB", "-1 GB", "1 XB", "1 GB more", "１ GB"])
def test_what_is_no_size_is_named(text):
    with pytest.raises(InputError, match="place"):
        size(text, "place")


def test_sizes_for_people():
    assert [sized(n) for n in (0, 999, 1500, 2.5e6, 7e9, 3e15)] == [
        *("0 bytes", "999 bytes", "1.5 kB", "2.5 MB", "7.0 GB", "3,000.0 TB")
    ]
