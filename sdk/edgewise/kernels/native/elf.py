"""What an object file needs from outside: its undefined symbols, read from ELF."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<40xQ10xHHH")  # section table, entry size, entries, names
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2


def undefined_symbols(data: bytes) -> frozenset[str]:
    """Names that a 64-bit little-endian relocatable object uses and does not define."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    table, size, count, _ = _HEADER.unpack_from(data)
    sections = [_SECTION.unpack_from(data, table + size * i) for i in range(count)]
    found = set()
    for section in sections:
        kind, offset, length, names = section[1], section[4], section[5], section[6]
        if kind != _SYMBOL_TABLE:
            continue
        strings = sections[names][4]
        for start in range(offset, offset + length, _SYMBOL.size):
            name, _, _, home, _, _ = _SYMBOL.unpack_from(data, start)
            if name and home == 0:
                end = data.index(b"\0", strings + name)
                found.add(data[strings + name : end].decode())
    return frozenset(found)
