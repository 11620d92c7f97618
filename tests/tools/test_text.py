"""Figures as text."""

import pytest

from edgewise.errors import InternalError
from edgewise.tools.text import size_text, table_text, time_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (5 << 20, "5.00 MiB"),
        (3 << 30, "3.00 GiB"),
        (5 << 40, "5120.00 GiB"),
    ],
)
def test_a_size_has_a_binary_unit(count: int, text: str) -> None:
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 us"), (2.5e-6, "2.5 us"), (1e-3, "1.000 ms"), (61, "61.00 s")],
)
def test_a_time_has_a_unit_that_shows_it(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_columns_of_numbers_stand_to_the_right() -> None:
    text = table_text(("op", "macs"), [("conv", 12), ("linear", 3456)])
    assert text.splitlines() == [
        "op      macs",
        "------  ----",
        "conv      12",
        "linear  3456",
    ]


def test_a_table_without_rows_shows_its_header() -> None:
    assert table_text(("a", "bc"), []).splitlines() == ["a  bc", "-  --"]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(InternalError, match="2 cells"):
        table_text(("a", "b"), [("only",)])


def test_lines_are_as_short_as_asked_and_numbers_stay_whole() -> None:
    rows = [("a" * 50, "b" * 30, 123456), ("c", "d", 7)]
    text = table_text(("name", "more", "macs"), rows, 40)
    assert [len(line) for line in text.splitlines()] == [40] * 4
    assert "123456" in text
    assert "a…" in text
    wide = table_text(("name", "more", "macs"), rows, 200)
    assert wide == table_text(("name", "more", "macs"), rows)


def test_no_column_is_cut_beyond_reading() -> None:
    text = table_text(("name", "macs"), [("a" * 50, 123456)], 3)
    assert text.splitlines()[2] == "aaaaa…  123456"
