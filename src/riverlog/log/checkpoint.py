"""Small files that are replaced as a whole: a crash leaves the old content or the new one, never a mix.

Kafka's text formats live here: `version`, `count`, then one line per entry. A file that does not parse is
`BadCheckpoint`; what that means is for the reader of the file to decide.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from riverlog.model.disk_errors import NO_ROOM, FlushFailed
from riverlog.model.ids import Offset, TopicId, TopicPartition
from riverlog.model.ports import Disk
from riverlog.model.uuids import decode_uuid, encode_uuid

TEMPORARY_SUFFIX: Final = ".tmp"
PARTITION_FILE: Final = "partition.metadata"
"""Beside a partition's segments: which topic they belong to."""
_VERSION: Final = "0"


class BadCheckpoint(ValueError):
    """A checkpoint file holds something else than it should; the message is one sentence."""


def replace_file(disk: Disk, path: str, content: bytes) -> None:
    """Write the content beside the file, sync it, rename it into place, sync the folder."""
    write_durably(disk, path + TEMPORARY_SUFFIX, content)
    put_in_place(disk, path + TEMPORARY_SUFFIX, path)


def write_durably(disk: Disk, path: str, content: bytes) -> None:
    """Write a file whole and wait until its content is on the medium; its name is not, yet.

    Where there was no room it may be done again: that begins with the content, and so promises nothing that is lost.
    """
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.write(0, [content])
        file.sync()
    except FlushFailed as error:
        if error.errno in NO_ROOM:
            raise OSError(error.errno, error.strerror, path) from error
        raise
    finally:
        file.close()


def put_in_place(disk: Disk, beside: str, path: str) -> None:
    """Rename a file that is on the medium over another, durably."""
    disk.rename(beside, path)
    disk.sync_folder(path.rpartition("/")[0])


def read_file(disk: Disk, path: str) -> bytes | None:
    """Read a small file whole; None where there is none."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def encode_lines(lines: Iterable[str]) -> bytes:
    """Write Kafka's checkpoint form: version, count, entries."""
    entries = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode()


def decode_lines(content: bytes, path: str) -> list[str]:
    """Read Kafka's checkpoint form; the count must match the entries."""
    try:
        version, count, *entries = content.decode().splitlines()
        if version == _VERSION and int(count) == len(entries):
            return entries
    except ValueError:
        pass
    raise BadCheckpoint(f"{path} is not a checkpoint file of version {_VERSION}, or it is damaged")


def encode_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """Write one offset per partition: `orders 3 1200`."""
    return encode_lines(f"{at.topic} {at.partition} {offset}" for at, offset in sorted(offsets.items()))


def decode_offsets(content: bytes, path: str) -> dict[TopicPartition, Offset]:
    """Read one offset per partition."""
    offsets = {}
    for line in decode_lines(content, path):
        try:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, int(partition))] = Offset(int(offset))
        except ValueError:
            raise BadCheckpoint(f"{path} has a line that is no partition and offset: {line!r}") from None
    return offsets


def encode_topic_id(topic_id: TopicId) -> bytes:
    """Write a `partition.metadata` file."""
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}\n".encode()


def decode_topic_id(content: bytes, path: str) -> TopicId:
    """Read a `partition.metadata` file."""
    pairs = dict(line.split(": ", 1) for line in content.decode(errors="replace").splitlines() if ": " in line)
    try:
        return TopicId(decode_uuid(pairs["topic_id"]))
    except (KeyError, ValueError):
        raise BadCheckpoint(f"{path} does not name a topic id") from None
