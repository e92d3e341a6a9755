"""How large each index of aborted transactions is, and its checksum, in a small file beside the segments.

A segment without aborted transactions has no index, so one that is lost would not be missed, nor one that was emptied.
The file is written with the snapshots of producers and when the log is closed: an index may have grown since, and what
lies behind the newest snapshot is replayed after a crash. Kafka does not look at it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from riverlog.log.checkpoint import BadCheckpoint, decode_lines, encode_lines
from riverlog.model.ids import Offset

ABORTED_FILE: Final = "aborted-transactions-checkpoint"
_CHECKSUM_BYTES: Final = 9


class IndexSum(NamedTuple):
    """How many bytes an index had, and their checksum."""

    size: int
    crc: int

    def begins(self, content: bytes | bytearray) -> bool:
        """Return whether a file's content begins with what the index was."""
        return 0 <= self.size <= len(content) and crc32c(bytes(content[: self.size])) == self.crc


UNKNOWN: Final = IndexSum(-1, 0)
"""Of an index that is believed in no case, because nobody knows what was in it."""


def sum_of(content: bytes | bytearray) -> IndexSum:
    """Measure the content of an index."""
    return IndexSum(len(content), crc32c(bytes(content)))


def encode_sums(sums: Mapping[Offset, IndexSum]) -> bytes:
    """Write the file's content: a line per segment, and a checksum over them."""
    content = encode_lines(f"{base_offset} {size} {crc:08x}" for base_offset, (size, crc) in sorted(sums.items()))
    return content + b"%08x\n" % crc32c(content)


def decode_sums(content: bytes, path: str) -> dict[Offset, IndexSum]:
    """Read the file's content; BadCheckpoint where it is damaged."""
    lines, given = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if given != b"%08x\n" % crc32c(lines):
        raise BadCheckpoint(f"{path} is damaged")
    sums = {}
    for line in decode_lines(lines, path):
        base_offset, size, crc = line.split(" ")
        sums[Offset(int(base_offset))] = IndexSum(int(size), int(crc, 16))
    return sums
