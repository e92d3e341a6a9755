"""Reading closed segments again for no other reason than to see whether they are still what was written.

A list of segments is all that the work needs, so that another process can do it. Nothing is changed: what is found
goes into the log's quarantine if the segment is still the same one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from riverlog.log.retention import SegmentFacts
from riverlog.log.segments.flaws import SEARCH_EVERYTHING, Flaw, examine
from riverlog.log.segments.log_folder import LOG_SUFFIX, path_of
from riverlog.model.ports import Disk

_BYTES_PER_PAUSE: Final = 1024 * 1024


class ScrubbedSegment(NamedTuple):
    """What was found in a segment."""

    folder: str
    segment: SegmentFacts
    flaws: list[Flaw]
    error: str = ""
    """Why the disk did not give its bytes, if it did not."""


def scrub(
    disk: Disk,
    segments: Sequence[tuple[str, SegmentFacts]],
    *,
    bytes_per_second_max: float,
    pause: Callable[[float], None],
) -> Iterator[ScrubbedSegment]:
    """Examine segments one after the other, given with their folders; one that was deleted meanwhile is left out."""
    for folder, segment in segments:
        flaws: list[Flaw] = []
        try:
            for count in _examine(disk, folder, segment, flaws):
                if (seconds := count / bytes_per_second_max) > 0.001:
                    pause(seconds)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield ScrubbedSegment(folder, segment, flaws, str(error))
            continue
        yield ScrubbedSegment(folder, segment, flaws)


def _examine(disk: Disk, folder: str, segment: SegmentFacts, flaws: list[Flaw]) -> Iterator[int]:
    """Read a segment, noting its flaws; yield the count of bytes from time to time."""
    file = disk.open(path_of(folder, segment.base_offset, LOG_SUFFIX))
    try:
        begun = position = 0
        for found in examine(
            file,
            0,
            segment.size,
            after=segment.base_offset,
            limit=segment.next_offset,
            search_bytes_max=SEARCH_EVERYTHING,
        ):
            if isinstance(found, Flaw):
                flaws.append(found)
                position = found.end
            else:
                position = found[0] + found[1].size
            if position - begun >= _BYTES_PER_PAUSE:
                # Readers want the newest records in memory, not these.
                file.forget(begun, position - begun)
                yield position - begun
                begun = position
        file.forget(begun, segment.size - begun)
        yield segment.size - begun
    finally:
        file.close()
