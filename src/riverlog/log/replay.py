"""What a log knows beside its batches, learnt again from small files and from the batches behind them.

Epochs and producers are written down now and then; the batches' headers know both. So a file that is old costs a
scan from where it ends, one that is missing or damaged a longer scan, and neither changes an answer.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from riverlog.log.checkpoint import BadCheckpoint, read_file
from riverlog.log.epochs import Epochs
from riverlog.log.producers import BadSnapshot, Producers
from riverlog.log.scan import scan_headers
from riverlog.log.segment import SNAPSHOT_SUFFIX, path_of
from riverlog.log.segments import Segments
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk
from riverlog.records.batch import BatchHeader

EPOCHS_FILE: Final = "leader-epoch-checkpoint"


def restore_epochs(disk: Disk, folder: str, segments: Segments) -> Epochs:
    """Learn the epochs from their file, or from all batches where it is missing or damaged."""
    path = f"{folder}/{EPOCHS_FILE}"
    content = read_file(disk, path)
    try:
        if content is not None:
            return Epochs.decode(content, path)
    except BadCheckpoint:
        pass
    headers = headers_from(segments, segments.bases[0])
    return Epochs((header.leader_epoch, header.base_offset) for header in headers)


def restore_producers(
    disk: Disk, folder: str, segments: Segments, snapshots: Sequence[Offset], epochs: Epochs, *, now_ms: int
) -> Producers:
    """Learn the producers from the newest good snapshot and from the batches behind it, and newer epochs too.

    Snapshots that neither belong to a segment nor were needed are removed.
    """
    producers, replay_from = Producers(), segments.bases[0]
    for offset in reversed(snapshots):
        if segments.bases[0] <= offset <= segments.active.next_offset:
            content = read_file(disk, path_of(folder, offset, SNAPSHOT_SUFFIX))
            try:
                producers, replay_from = Producers.decode(content or b""), offset
            except BadSnapshot:
                continue
            break
    for header in headers_from(segments, replay_from):
        epochs.begin(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            producers.remember(header, header.base_offset, now_ms)
    for offset in snapshots:
        path = path_of(folder, offset, SNAPSHOT_SUFFIX)
        if offset != replay_from and offset not in segments.bases and disk.exists(path):  # recovery may have been first
            disk.remove(path)
    return producers


def headers_from(segments: Segments, offset: Offset) -> Iterator[BatchHeader]:
    """Walk the headers of all batches from this offset on, as far as they can be read."""
    if offset >= segments.active.next_offset:
        return
    for slot in range(segments.slot_of(offset), len(segments)):
        segment = segments[slot]
        try:
            position = segment.locate(offset) if offset > segment.base_offset else 0
        except Refusal:
            # Damage is reported when it is read; what lies behind it is still worth knowing.
            continue
        for _, header in scan_headers(segment.file(), position, segment.size):
            yield header
