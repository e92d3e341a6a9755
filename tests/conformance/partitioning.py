"""Where a key goes: the two hashes in use among Kafka's clients, written independently of any of them."""

import zlib
from typing import Final

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995


def java_partition(key: bytes, partitions: int) -> int:
    """Place a key as the Java client does, and all that follow it."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def librdkafka_partition(key: bytes, partitions: int) -> int:
    """Place a key as librdkafka does unless told otherwise (`consistent_random`)."""
    return zlib.crc32(key) % partitions


def murmur2(key: bytes) -> int:
    """Hash 32 bits wide, little-endian words, Kafka's seed."""
    value = _SEED ^ len(key)
    whole = len(key) - len(key) % 4
    for position in range(0, whole, 4):
        word = _times(int.from_bytes(key[position : position + 4], "little"))
        value = _times(value) ^ _times(word ^ word >> 24)
    if rest := key[whole:]:
        value = _times(value ^ int.from_bytes(rest, "little"))
    value = _times(value ^ value >> 13)
    return value ^ value >> 15


def _times(value: int) -> int:
    return value * _FACTOR & 0xFFFFFFFF
