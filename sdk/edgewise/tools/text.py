"""Figures as people read them: sizes, times, aligned tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgewise.errors import InternalError

SPACE = "  "
NARROWEST = 6  # characters of a text that is cut


def size_text(count: float) -> str:
    """Bytes with a binary unit: ``1.50 MiB``."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def time_text(seconds: float) -> str:
    """Seconds with a unit: ``1.250 ms``."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3f} ms"
    return f"{seconds:.2f} s"


def cut_text(text: str, longest: int) -> str:
    """A text, or its beginning where it has more characters than that."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def table_text(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    columns: int | None = None,
) -> str:
    """Columns as wide as they need; those that hold only numbers stand to the right.

    Args:
        header: Names of the columns.
        rows: A cell for each of them.
        columns: Characters a line may take: longer texts are cut; None: any number.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if any(len(row) != len(header) for row in cells):
        raise InternalError(f"a row of a table has not {len(header)} cells")
    by_column = list(zip(header, *cells, strict=True))
    widths = [max(map(len, column)) for column in by_column]
    right = [_numeric(column[1:]) for column in by_column]
    if columns is not None:
        _narrow(widths, right, columns)
    lines = []
    for row in (list(header), ["-" * width for width in widths], *cells):
        padded = (
            cell.rjust(width) if flag else cut_text(cell, width).ljust(width)
            for cell, width, flag in zip(row, widths, right, strict=True)
        )
        lines.append(SPACE.join(padded).rstrip())
    return "\n".join(lines)


def _narrow(widths: list[int], right: Sequence[bool], columns: int) -> None:
    """Take from the widest texts what the lines are too long."""
    texts = [place for place, flag in enumerate(right) if not flag]
    while texts and sum(widths) + len(SPACE) * (len(widths) - 1) > columns:
        widest = max(texts, key=lambda place: widths[place])
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1


def _numeric(cells: Sequence[str]) -> bool:
    return bool(cells) and all(cell[:1].isdigit() or cell[:1] in "-." for cell in cells)
