"""What Spark writes in the logs of a checkpoint: `offsets/N` plans a batch, `commits/N` ends it.

Pure, and patient: what cannot be read says nothing.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

SourceOffset = tuple[str, int, int]
"""Topic, partition, and the offset from which the next batch reads."""

_OFFSET_MAX = 2**63 - 1


class StateName(NamedTuple):
    """One store of state, and the unique id of its files for a batch."""

    operator: str
    partition: int
    id: str


def source_offsets(planned: bytes) -> tuple[SourceOffset, ...]:
    """Return the offsets behind a batch, of every source that names them as `{"topic": {"0": 42}}`."""
    found: dict[tuple[str, int], int] = {}
    for source in _objects(planned):
        for topic, partitions in source.items():
            if isinstance(partitions, dict) and partitions and all(map(_is_place, partitions.items())):
                found |= {(topic, int(index)): offset for index, offset in partitions.items()}
    return tuple((topic, index, offset) for (topic, index), offset in sorted(found.items()))


def query_of(metadata: bytes) -> str | None:
    """Return the id of the query whose checkpoint has this `metadata`; None where it names none."""
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return None
    query = found.get("id") if isinstance(found, dict) else None
    return query if isinstance(query, str) else None


def watermark_ms(planned: bytes) -> int | None:
    """Return the watermark of a batch, by which rows of the next one are late; None where the file names none."""
    for facts in _objects(planned):
        found = facts.get("batchWatermarkMs")
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return None


def state_names(commit: bytes) -> frozenset[StateName]:
    """Return the state that a `commits/N` names (checkpoint format 2): none for a query without state."""
    return frozenset(
        StateName(str(operator), partition, name)
        for facts in _objects(commit)
        if isinstance(operators := facts.get("stateUniqueIds"), dict)
        for operator, partitions in operators.items()
        if isinstance(partitions, list)
        for partition, names in enumerate(partitions)
        if isinstance(names, list)
        for name in names
        if isinstance(name, str)
    )


def _objects(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects among the lines behind the version."""
    for line in text.decode("utf-8", "replace").splitlines()[1:]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _is_place(item: tuple[str, Any]) -> bool:
    index, offset = item
    digits = index.isascii() and index.isdigit() and len(index) < 10
    return digits and isinstance(offset, int) and not isinstance(offset, bool) and 0 <= offset <= _OFFSET_MAX
