"""The shared libraries that a program needs, of any architecture, read from its ELF file."""

import struct
from pathlib import Path

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB = 1, 5


def needed(path: Path) -> tuple[str | None, list[str]]:
    """The loader's path, if the file names one, and the names of its libraries."""
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return None, []
    offset, size, count = (
        struct.unpack_from("<Q", data, 32)[0],
        *struct.unpack_from("<HH", data, 54),
    )
    segments = [struct.unpack_from("<IIQQQQQQ", data, offset + size * n) for n in range(count)]
    loads = [(vaddr, at, length) for kind, _, at, vaddr, _, length, _, _ in segments if kind == PT_LOAD]

    def place(address: int) -> int:
        return next(at + address - vaddr for vaddr, at, length in loads if vaddr <= address < vaddr + length)

    def text(at: int) -> str:
        return data[at : data.index(b"\0", at)].decode()

    loader, names, strings = None, [], 0
    for kind, _, at, _, _, length, _, _ in segments:
        if kind == PT_INTERP:
            loader = text(at)
        if kind == PT_DYNAMIC:
            entries = [struct.unpack_from("<qQ", data, at + 16 * n) for n in range(length // 16)]
            strings = place(dict(entries)[DT_STRTAB])
            names = [text(strings + value) for tag, value in entries if tag == DT_NEEDED]
    return loader, names
