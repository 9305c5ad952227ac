"""The log of the kernel's dm-log-writes: a device's writes in order, replayed to any flush.

Format: `drivers/md/dm-log-writes.c` of Linux, "Log writing".
"""

import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8


@dataclass
class Entry:
    offset: int
    length: int
    flags: int
    # Where a write's data lies in the log; a mark's text.
    data: int
    text: str


def entries(log: Path) -> tuple[list[Entry], int]:
    """All entries, and the size of a sector."""
    found = []
    with log.open("rb") as file:
        magic, _, count, sector = struct.unpack("<QQQI", file.read(28))
        if magic != MAGIC:
            raise ValueError(f"{log} is no log of dm-log-writes")
        at = sector
        for _ in range(count):
            file.seek(at)
            place, sectors, flags, length = struct.unpack("<QQQQ", file.read(32))
            text = file.read(length).rstrip(b"\0").decode(errors="replace") if flags & MARK else ""
            found.append(Entry(place * sector, sectors * sector, flags, at + sector, text))
            at += sector + (0 if flags & (DISCARD | MARK) else sectors * sector)
    return found, sector


class Replay:
    """Copies of a device as it was at each flush, made one after the other."""

    def __init__(self, log: Path, base: Path):
        self.log, self.content = log, bytearray(base.read_bytes())
        self.entries, self.sector = entries(log)

    def states(self):
        """At each entry that flushed: the marks before it, and the content until it is advanced."""
        marks: list[str] = []
        with self.log.open("rb") as file:
            for entry in self.entries:
                if entry.flags & MARK:
                    marks.append(entry.text)
                    continue
                end = entry.offset + entry.length
                if entry.flags & DISCARD:
                    self.content[entry.offset : end] = bytes(entry.length)
                elif entry.length:
                    file.seek(entry.data)
                    self.content[entry.offset : end] = file.read(entry.length)
                if entry.flags & (FLUSH | FUA):
                    yield list(marks), self.content
