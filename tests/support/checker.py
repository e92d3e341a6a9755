"""Judges a history: what was sent and acknowledged, against what can be read back.

One writer with idempotence sends values `0`, `1`, `2` … to one partition. Whatever happens to the node in between,
each acknowledged value must stand at its acknowledged offset, no value twice, all in the order of sending, and no
offset may be missing. Values that were sent and never acknowledged may be there or not.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class History:
    """What the writer of one partition knows."""

    sent: int = 0
    acknowledged: dict[int, int] = field(default_factory=dict)  # offset -> value

    def next_value(self) -> int:
        """Give the next value to send."""
        self.sent += 1
        return self.sent - 1

    def acknowledge(self, offset: int, value: int) -> None:
        """Note that the broker promised to keep this value at this offset."""
        assert offset not in self.acknowledged, f"offset {offset} was acknowledged twice"
        self.acknowledged[offset] = value


def judge(history: History, read: list[tuple[int, int]]) -> list[str]:
    """Name everything that is wrong with what was read from the beginning to the end, as (offset, value) pairs."""
    at = dict(read)
    offsets = [offset for offset, _ in read]
    values = [value for _, value in read]
    wrong = [
        f"lost: value {value} of offset {offset}" for offset, value in history.acknowledged.items() if offset not in at
    ]
    wrong += [
        f"altered: offset {offset} holds {at[offset]}, not {value}"
        for offset, value in history.acknowledged.items()
        if at.get(offset, value) != value
    ]
    wrong += [f"duplicate: value {value} stands {count} times" for value, count in Counter(values).items() if count > 1]
    wrong += [f"invented: value {value} was never sent" for value in values if not 0 <= value < history.sent]
    wrong += [f"reordered: value {later} behind {earlier}" for earlier, later in pairwise(values) if later < earlier]
    wrong += [f"gap: offset {second} behind {first}" for first, second in pairwise(offsets) if second != first + 1]
    return wrong
