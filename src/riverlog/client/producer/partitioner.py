"""Which partition a record goes to.

Records with a key follow murmur2, bit for bit as in Kafka's Java client, so that all clients agree where a key
lives. Records without one stay on a partition for a batch's worth of bytes and then move to another at random
(KIP-794): full batches, and still an even spread.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

from riverlog.model.ports import Random

Partitioner = Callable[[str, bytes | None, bytes | None, int], int]
"""Chooses for (topic, key, value, number of partitions) a partition from 0 up."""


class DefaultPartitioner:
    """murmur2 of the key; without a key, one partition at a time."""

    def __init__(self, random: Random, sticky_bytes: int) -> None:
        self._random = random
        self._sticky_bytes = sticky_bytes
        self._current: dict[str, tuple[int, int]] = {}  # topic -> partition, bytes still to send there

    def choose(self, topic: str, key: bytes | None, size: int, count: int, available: Sequence[int]) -> int:
        """Choose for a record of `size` bytes; a keyless record goes to an available partition if there is one."""
        if key is not None:
            return (murmur2(key) & 0x7FFF_FFFF) % count
        partition, bytes_left = self._current.get(topic, (-1, 0))
        if bytes_left <= 0 or partition >= count:
            choices = available or range(count)
            partition = choices[self._random.randrange(0, len(choices))]
            bytes_left = self._sticky_bytes
        self._current[topic] = (partition, bytes_left - size)
        return partition


class RoundRobin:
    """Each record one partition further, whatever its key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __call__(self, topic: str, _key: bytes | None, _value: bytes | None, count: int) -> int:
        number = self._next.get(topic, 0)
        self._next[topic] = number + 1
        return number % count


_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFF_FFFF
_WORD: Final = Struct("<I")


def murmur2(data: bytes) -> int:
    """Hash as `org.apache.kafka.common.utils.Utils.murmur2` does, as an unsigned number of 32 bits."""
    length = len(data)
    hashed = (_SEED ^ length) & _MASK
    whole = length & ~3
    for (word,) in _WORD.iter_unpack(data[:whole]):
        word = (word * _M) & _MASK
        word ^= word >> 24
        word = (word * _M) & _MASK
        hashed = ((hashed * _M) & _MASK) ^ word
    rest = data[whole:]
    if rest:
        hashed ^= int.from_bytes(rest, "little")
        hashed = (hashed * _M) & _MASK
    hashed ^= hashed >> 13
    hashed = (hashed * _M) & _MASK
    return hashed ^ (hashed >> 15)
