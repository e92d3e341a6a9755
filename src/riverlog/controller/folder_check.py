"""What must hold of the metadata log's folder before it is opened: opening a log cuts off what it cannot explain.

Only the last batch can be torn, and after a clean stop none can. Offsets and epochs are not covered by a batch's
checksum; they must go on where the batch before ends. Whatever contradicts that is damage, and nothing is changed.
"""

from itertools import zip_longest
from typing import Final, NamedTuple

from riverlog.controller.snapshot_files import SNAPSHOT_SUFFIX, BadMetadata, VotersSaid, snapshot_id, voters_said
from riverlog.log.checkpoint import read_file
from riverlog.log.recovery.recovery import list_folder
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.ports import Disk
from riverlog.raft.control_records import BadControlRecord
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.quorum_state import QUORUM_STATE_FILE, BadQuorumState, SavedElection, decode_election
from riverlog.records.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, MAGIC_POSITION, checksum, read_header
from riverlog.records.errors import CorruptBatch

_BEGINNING: Final = Offset(0)


class CheckedFolder(NamedTuple):
    """What was found in the folder of the metadata log; nothing was changed."""

    folder: str
    snapshots: dict[SnapshotId, int]
    """The snapshots, oldest first, and the size in bytes of the newest."""
    said: list[VotersSaid]
    """What snapshot and log say of voters, in the order of their offsets."""
    vote: SavedElection | None
    """The own vote; None where the log is new, or from before there were elections."""

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return next(reversed(self.snapshots), None)


def check_folder(
    disk: Disk, folder: str, *, flushed: Offset = _BEGINNING, after_clean_stop: bool = False
) -> CheckedFolder:
    """Look through the folder, which is made where there is none; BadMetadata where something is missing or damaged.

    All below `flushed` is known to have been on the medium.
    """
    disk.make_folder(folder)
    paths = sorted(f"{folder}/{name}" for name in disk.list(folder) if name.endswith(SNAPSHOT_SUFFIX))
    snapshots = {snapshot_id(path): 0 for path in paths}
    begins_at, said = _BEGINNING, list[VotersSaid]()
    if snapshots:
        newest = next(reversed(snapshots))
        begins_at = newest.end_offset
        content = read_file(disk, paths[-1]) or b""
        snapshots[newest] = len(content)
        said += voters_in_snapshot(folder, content, newest)
    found = check_segments(disk, folder, after_clean_stop=after_clean_stop)
    end = max(found.end, begins_at)
    if end < flushed:
        raise BadMetadata(folder, f"its records end at offset {end}, and were there up to {flushed}")
    said += [each for each in found.said if each.offset >= begins_at]
    return CheckedFolder(folder, snapshots, said, _read_vote(disk, folder))


class CheckedSegments(NamedTuple):
    """What was found in the segments of the log."""

    said: list[VotersSaid]
    """What they say of voters."""
    end: Offset
    """Behind the last whole batch; 0 where there is none."""


def check_segments(disk: Disk, folder: str, *, after_clean_stop: bool) -> CheckedSegments:
    """Refuse damage that opening the log would take for a torn write, and cut."""
    said, end, epoch = list[VotersSaid](), Offset(0), LeaderEpoch(0)
    bases = list_folder(disk, folder).segments
    for base_offset, next_base in zip_longest(bases, bases[1:]):
        path = f"{folder}/{base_offset:020}.log"
        content = memoryview(read_file(disk, path) or b"")
        position, end = 0, base_offset
        while _is_batch(content[position:]):
            header = read_header(content, position)
            if header.base_offset != end or header.leader_epoch < epoch:
                raise BadMetadata(
                    folder,
                    f"{path} has a batch at position {position} with offset {header.base_offset} and epoch "
                    f"{header.leader_epoch}, behind offset {end} and epoch {epoch}",
                )
            end, epoch = header.next_offset, header.leader_epoch
            position += header.size
        rest = content[position:]
        # What a failed write left lies before a segment that begins exactly behind the good batches.
        torn = not (after_clean_stop or _holds_batch(rest)) if next_base is None else end == next_base
        if any(rest) and not torn:
            raise BadMetadata(folder, f"{path} is damaged at position {position}")
        try:
            said += voters_said(content[:position])
        except (BadControlRecord, CorruptBatch) as error:
            raise BadMetadata(folder, f"in {path} {error}") from error
    return CheckedSegments(said, end)


def voters_in_snapshot(folder: str, content: bytes, snapshot: SnapshotId) -> list[VotersSaid]:
    """Find what a snapshot says of voters, as if its last record said it."""
    try:
        said = voters_said(content)
    except (BadControlRecord, CorruptBatch) as error:
        raise BadMetadata(folder, str(error)) from error
    together = VotersSaid(Offset(snapshot.end_offset - 1))
    for each in said:
        together = VotersSaid(
            together.offset,
            together.voters if each.voters is None else each.voters,
            together.kraft_version if each.kraft_version is None else each.kraft_version,
        )
    return [together]


def _read_vote(disk: Disk, folder: str) -> SavedElection | None:
    content = read_file(disk, f"{folder}/{QUORUM_STATE_FILE}")
    if content is None:
        return None
    try:
        return decode_election(content)
    except BadQuorumState as error:
        raise BadMetadata(folder, f"{QUORUM_STATE_FILE} cannot be read, {error}") from error


def _holds_batch(content: memoryview) -> bool:
    """Return whether there is a whole batch anywhere behind the beginning."""
    data = bytes(content)
    magic = data.find(MAGIC, MAGIC_POSITION + 1)
    while magic >= 0:
        if _is_batch(content[magic - MAGIC_POSITION :]):
            return True
        magic = data.find(MAGIC, magic + 1)
    return False


def _is_batch(content: memoryview) -> bool:
    if len(content) < HEADER_BYTES or content[MAGIC_POSITION] != MAGIC:
        return False
    header = read_header(content)
    if not HEADER_BYTES - LOG_OVERHEAD <= header.length <= len(content) - LOG_OVERHEAD:
        return False
    return checksum(content[: header.size]) == header.crc
