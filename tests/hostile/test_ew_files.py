"""Model files that are damaged, foreign or made to do harm: one error, nothing else."""

from __future__ import annotations

import os
import random
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from edgewise.errors import ModelFormatError
from edgewise.format.container import aligned, seal
from edgewise.format.read import check, read, read_bytes
from edgewise.ir.module import Module

GOLDEN = Path(__file__).parents[2] / "schema" / "golden" / "v1.ew"
WHOLE = GOLDEN.read_bytes()
HEADER = WHOLE[: 4 + struct.unpack_from("<I", WHOLE)[0]]
DATA = WHOLE[aligned(len(HEADER) + 4) :]
SLOWEST = 5.0  # seconds for a file of some kilobytes, on a busy machine


def resealed(header: bytes, data: bytes = DATA) -> bytes:
    """A file whose checksum is right, so that only verification can refuse it."""
    return seal(header) + data


def outcome(data: bytes) -> str:
    """``read`` or ``refused``; anything but a module or one line fails the test."""
    start, reason = time.perf_counter(), None
    try:
        found = read_bytes(data)
    except ModelFormatError as error:
        reason = str(error)
    assert time.perf_counter() - start < SLOWEST
    if reason is None:
        assert isinstance(found, Module)
        return "read"
    assert reason
    assert "\n" not in reason
    assert len(reason) < 1000
    return "refused"


def refuse(data: bytes, reason: str) -> None:
    with pytest.raises(ModelFormatError, match=reason):
        read_bytes(data)


def test_the_file_that_is_mutated_here_is_good() -> None:
    assert outcome(WHOLE) == "read"
    assert resealed(HEADER) == WHOLE


def test_every_truncation_is_refused() -> None:
    for size in range(len(WHOLE)):
        assert outcome(WHOLE[:size]) == "refused", size


def test_every_truncation_of_the_header_is_refused() -> None:
    for size in range(12, len(HEADER) - 8):  # the last bytes may be padding
        cut = struct.pack("<I", size - 4) + HEADER[4:size]
        assert outcome(resealed(cut)) == "refused", size


def test_more_bytes_than_were_written_are_refused() -> None:
    for size in (1, 64, 4096):
        assert outcome(WHOLE + bytes(size)) == "refused"


def test_a_changed_byte_of_the_header_is_seen_at_once() -> None:
    for place in range(4, len(HEADER)):
        changed = bytearray(WHOLE)
        changed[place] ^= 0x40
        assert outcome(bytes(changed)) == "refused", place


def test_a_changed_byte_of_the_data_is_seen_by_check(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    for place in range(len(WHOLE) - len(DATA), len(WHOLE), 7):
        changed = bytearray(WHOLE)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ModelFormatError, match=r"segment|not zero") as caught:
            check(path)
        assert caught.value.path == str(path)


def mutants(count: int, seed: int) -> None:
    """Change, copy, cut and insert; then seal, so that the verifier has to see it."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    seen = {"read": 0, "refused": 0}
    for _ in range(count):
        header = bytearray(HEADER)
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            place = rng.randrange(12, len(header))
            match rng.randrange(5):
                case 0:
                    header[place] ^= 1 << rng.randrange(8)
                case 1:
                    header[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
                case 2:
                    place &= ~3
                    value = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1))
                    value = rng.choice((value, rng.randrange(2 * len(header))))
                    header[place : place + 4] = struct.pack("<I", value)
                case 3:
                    place &= ~7
                    value = rng.choice((2**63 - 1, 2**63, 2**64 - 1, 2**40, 0))
                    header[place : place + 8] = struct.pack("<Q", value)
                case 4:
                    source = rng.randrange(12, len(header) - 16) & ~3
                    header[place : place + 16] = header[source : source + 16]
        header[0:4] = struct.pack("<I", len(header) - 4)
        seen[outcome(resealed(bytes(header)))] += 1
    assert seen["read"] > count // 100
    assert seen["refused"] > count // 4


def test_mutants_are_read_or_refused() -> None:
    mutants(2000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_more_mutants_are_read_or_refused(seed: int) -> None:
    mutants(5000, seed)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no model file"),
        (b"EDGW", "no model file"),
        (b"\x7fELF" + bytes(100), "no model file"),
        (b"\x08\x07\x12\x07pytorch" + bytes(100), "ONNX model: convert it"),
        (struct.pack("<I", 2**32 - 1) + bytes(4) + b"EDGW" + bytes(52), "the header"),
        (struct.pack("<I", 1000) + bytes(4) + b"EDGW" + bytes(52), "is cut short"),
        (resealed(struct.pack("<II", 8, 2**31) + b"EDGW", b""), "lies beyond"),
        (resealed(struct.pack("<II", 8, 2**32 - 1) + b"EDGW", b""), "lies beyond"),
        (resealed(struct.pack("<II", 8, 0) + b"EDGW", b""), "."),
        (resealed(struct.pack("<II", 8, 4) + b"EDGW", b""), "."),
        (resealed(b"\0\0\0\0" + bytes(4) + b"EDGW", b""), "."),
    ],
)
def test_what_is_no_model_is_refused(data: bytes, reason: str) -> None:
    refuse(data, reason)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, "/dev/zero"):
        with pytest.raises(ModelFormatError, match="is not a regular file"):
            read(path)
        with pytest.raises(ModelFormatError, match="is not a regular file"):
            check(path)


class Tables:
    """FlatBuffers written by hand, from the end to the front as offsets demand.

    A place is counted from the end of the file.
    """

    def __init__(self) -> None:
        self.data = b""

    def put(self, part: bytes) -> int:
        """Put a part before all others; where it starts."""
        self.data = part + bytes(-len(part + self.data) % 8) + self.data
        return len(self.data)

    def text(self, value: bytes) -> int:
        return self.put(struct.pack("<I", len(value)) + value + b"\0")

    def vector(self, *targets: int) -> int:
        size = 4 + 4 * len(targets)
        start = len(self.data) + size + -(size + len(self.data)) % 8
        offsets = [start - 4 - 4 * i - target for i, target in enumerate(targets)]
        return self.put(struct.pack(f"<{1 + len(targets)}I", len(targets), *offsets))

    def table(self, **slots: int) -> int:
        """A table of offsets: ``s4=place`` puts one in slot 4."""
        used = {int(name[1:]): target for name, target in slots.items()}
        fields = self.vector(*used.values())  # its count becomes the way to the vtable
        size = max(used) + 1
        places = [4 + 4 * list(used).index(s) if s in used else 0 for s in range(size)]
        vtable = struct.pack(f"<{2 + size}H", 4 + 2 * size, 4 + 4 * len(used), *places)
        distance = self.put(vtable) - fields
        at = len(self.data) - fields
        self.data = self.data[:at] + struct.pack("<i", distance) + self.data[at + 4 :]
        return fields

    def file(self, **slots: int) -> bytes:
        """The file whose root has these fields, of format version 1."""
        slots.setdefault("s2", self.text(b"0.1.0"))
        root = self.table(s0=0, **slots)
        at = len(self.data) - root + 4
        self.data = self.data[:at] + struct.pack("<I", 1) + self.data[at + 4 :]
        size = 16 + len(self.data)
        start = struct.pack("<II4sI", size - 4, size - root - 4, b"EDGW", 0)
        return resealed(start + self.data, b"")


def test_a_file_written_by_hand_is_read() -> None:
    tables = Tables()
    entry = tables.table(s0=tables.text(b"key"), s1=tables.text(b"value"))
    found = read_bytes(tables.file(s4=tables.vector(entry)))
    assert found.metadata == {"key": "value"}


def test_an_entry_listed_many_times_is_not_unfolded() -> None:
    tables = Tables()
    text = tables.text(b"x")
    entry = tables.table(s0=text, s1=text)
    data = tables.file(s4=tables.vector(*[entry] * 500))
    refuse(data, "reads parts of the header again")


def test_an_offset_that_wraps_around_is_not_followed() -> None:
    tables = Tables()
    earlier = len(tables.data) + 4096  # a place before the vector: a cycle
    op = tables.table(s0=tables.text(b"relu"), s1=0)
    at = len(tables.data) - op + 8
    wrapped = struct.pack("<I", 2**32 - earlier)
    tables.data = tables.data[:at] + wrapped + tables.data[at + 4 :]
    refuse(tables.file(s9=tables.vector(op)), "lies beyond")


def test_attributes_nested_without_end_are_refused() -> None:
    tables = Tables()
    inner = tables.table(s4=tables.text(b"x"))
    for _ in range(100):
        inner = tables.table(s6=tables.vector(inner))
    op = tables.table(s0=tables.text(b"relu"), s1=tables.vector(inner))
    refuse(tables.file(s9=tables.vector(op)), "nested deeper")


def test_attributes_that_fan_out_are_refused() -> None:
    tables = Tables()
    inner = tables.table(s4=tables.text(b"x"))
    for _ in range(12):
        inner = tables.table(s6=tables.vector(*[inner] * 20))
    op = tables.table(s0=tables.text(b"relu"), s1=tables.vector(inner))
    refuse(tables.file(s9=tables.vector(op)), "parts of the header again")


@pytest.mark.parametrize("count", [2**16, 2**30, 2**31 - 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("slot", [1, 4, 6, 7, 8, 9, 10, 11])
def test_a_vector_longer_than_the_file_is_refused(slot: int, count: int) -> None:
    tables = Tables()
    vector = tables.put(struct.pack("<II", count, 0))
    refuse(tables.file(**{f"s{slot}": vector}), "lies beyond")


@pytest.mark.parametrize("length", [2**16, 2**31, 2**32 - 1, 2**32 - 5])
def test_a_text_longer_than_the_file_is_refused(length: int) -> None:
    tables = Tables()
    text = tables.put(struct.pack("<II", length, 0))
    refuse(tables.file(s3=text), "lies beyond")


def test_texts_without_end_or_not_utf8_are_refused() -> None:
    tables = Tables()
    text = tables.put(struct.pack("<I4s", 3, b"abcd"))
    refuse(tables.file(s3=text), "has no end")
    tables = Tables()
    refuse(tables.file(s3=tables.text(b"\xff\xfe")), "is not UTF-8")


@pytest.mark.parametrize("missing", ["s0", "s1"])
def test_a_missing_field_is_refused(missing: str) -> None:
    tables = Tables()
    slots = {"s0": tables.text(b"key"), "s1": tables.text(b"value")}
    del slots[missing]
    data = tables.file(s4=tables.vector(tables.table(**slots)))
    refuse(data, f"Entry has no {'key' if missing == 's0' else 'value'}")


def rooted(vtable: bytes, distance: int) -> bytes:
    """A file that is a vtable and, 8 bytes after its start, a root."""
    body = vtable.ljust(8, b"\0")[:8] + struct.pack("<iI", distance, 0)
    start = struct.pack("<II4sI", 12 + len(body), 20, b"EDGW", 0)
    return resealed(start + body, b"")


@pytest.mark.parametrize(
    "vtable",
    [(3, 8), (5, 8), (4, 0), (4, 3), (6, 4, 4), (6, 8, 2), (6, 8, 6), (65534, 8)],
    ids=str,
)
def test_vtables_that_cannot_be_are_refused(vtable: tuple[int, ...]) -> None:
    data = rooted(struct.pack(f"<{len(vtable)}H", *vtable), 8)
    refuse(data, "vtable|wrong place|shorter|no min_version")


@pytest.mark.parametrize("distance", [2**31 - 1, -(2**31), 7, 33, -100])
def test_a_vtable_outside_the_file_is_refused(distance: int) -> None:
    refuse(rooted(b"", distance), "vtable of Stamp at byte .* lies beyond")


def test_checksums_cover_the_size_prefix() -> None:
    header = struct.pack("<I", len(HEADER) - 8) + HEADER[4:]
    data = header + struct.pack("<I", zlib.crc32(HEADER))
    refuse(data.ljust(aligned(len(data)), b"\0") + DATA, "checksum")


def test_huge_files_of_zeros_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sparse.ew"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ModelFormatError, match="no model file"):
        read(path)
    with path.open("r+b") as file:
        file.write(WHOLE)
    with pytest.raises(ModelFormatError, match="cut short or too long"):
        read(path)


def test_noise_is_refused() -> None:
    rng = np.random.default_rng(0)
    for size in range(0, 400, 7):
        header = bytearray(rng.bytes(12 + size))
        header[8:12] = b"EDGW"
        header[0:4] = struct.pack("<I", len(header) - 4)
        assert outcome(resealed(bytes(header), b"")) == "refused"
