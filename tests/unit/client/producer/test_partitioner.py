"""Where records go: Java's hash bit for bit, and an even spread of those without a key."""

from random import Random

import pytest
from aiokafka.partitioner import murmur2 as other_murmur2

from riverlog.client.producer.partitioner import DefaultPartitioner, RoundRobin, murmur2


@pytest.mark.parametrize(
    ("key", "expected"),
    [  # from Kafka's own UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFF_FFFF


@pytest.mark.parametrize("length", range(0, 40, 3))
def test_murmur2_agrees_with_another_client(length: int) -> None:
    key = Random(length).randbytes(length)
    assert murmur2(key) == other_murmur2(key) & 0xFFFF_FFFF


def test_a_key_always_goes_to_the_same_partition() -> None:
    choose = DefaultPartitioner(Random(1), sticky_bytes=100).choose
    assert {choose("t", b"foobar", 50, 12, ()) for _ in range(20)} == {(-790332482 & 0x7FFF_FFFF) % 12}
    assert choose("t", b"", 50, 12, ()) == (murmur2(b"") & 0x7FFF_FFFF) % 12, "an empty key is a key"


def test_records_without_key_stay_for_a_batch_and_then_move_on() -> None:
    choose = DefaultPartitioner(Random(1), sticky_bytes=1_000).choose
    chosen = [choose("t", None, 100, 4, range(4)) for _ in range(2_000)]
    runs = [chosen[start : start + 10] for start in range(0, len(chosen), 10)]
    assert all(len(set(run)) == 1 for run in runs)
    shares = [chosen.count(partition) / len(chosen) for partition in range(4)]
    assert all(0.15 < share < 0.35 for share in shares), shares


def test_records_without_key_avoid_partitions_without_leader() -> None:
    choose = DefaultPartitioner(Random(1), sticky_bytes=1).choose
    assert {choose("t", None, 100, 4, (1, 3)) for _ in range(50)} == {1, 3}
    assert {choose("t", None, 100, 4, ()) for _ in range(100)} == {0, 1, 2, 3}, "with none left any will do"


def test_round_robin_goes_round() -> None:
    choose = RoundRobin()
    assert [choose("t", b"same", None, 3) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert choose("other", None, None, 3) == 0
