"""A run of compaction over a log: what it writes beside the segments, and what it leaves alone."""

from dataclasses import replace
from random import Random

import pytest

from riverlog.log.compaction.cleaning import CleaningPlan, clean, plan_cleaning
from riverlog.log.log import Log
from riverlog.model.errors import Refusal
from riverlog.model.ids import TIMESTAMP_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.model.limits import PRODUCER_BATCHES_REMEMBERED
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import Compression, check_produced, headers
from riverlog.records.record import BatchBuilder, Record, read_batches
from riverlog.records.walk import delete_horizon
from tests.support.compacting import ROOMY, compact, dirt_of
from tests.support.disk import MemoryDisk

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, cleanup_compact=True, delete_retention_ms=1_000)
NOW = 50_000


class Shop:
    """A compacted log on a disk in memory."""

    def __init__(self, **config: object) -> None:
        self.disk = MemoryDisk()
        settings = replace(CONFIG, **config)  # type: ignore[arg-type]
        self.log = Log.open(self.disk, FOLDER, settings, recovery_point=Offset(0), clean=True, now_ms=NOW)

    def send(self, *entries: tuple[bytes | None, bytes | None], producer: int = -1, sequence: int = -1) -> None:
        epoch = ProducerEpoch(0 if producer >= 0 else -1)
        builder = BatchBuilder(
            Compression.LZ4, producer_id=ProducerId(producer), producer_epoch=epoch, base_sequence=sequence
        )
        for key, value in entries:
            builder.append(key, value, timestamp_ms=NOW)
        batch = memoryview(builder.build())
        header = check_produced(batch, batch_bytes_max=1 << 20)
        self.log.append(batch, header, leader_epoch=LeaderEpoch(0), now_ms=NOW)

    def roll(self) -> None:
        self.log.roll(NOW)

    def plan(self, *, keys_bytes_max: int = ROOMY, bytes_per_second_max: float = float("inf")) -> CleaningPlan:
        return plan_cleaning(
            self.log,
            dirt_of(self.log, now_ms=NOW),
            now_ms=NOW,
            keys_bytes_max=keys_bytes_max,
            bytes_per_second_max=bytes_per_second_max,
        )

    def content(self, name: str) -> bytes:
        file = self.disk.open(f"{FOLDER}/{name}")
        try:
            return file.read(0, file.size())
        finally:
            file.close()

    def records(self, name: str = "00000000000000000000.log") -> list[Record]:
        return [record for _, records in read_batches(self.content(name)) for record in records]


def silent(_seconds: float) -> None:
    """Rest for no time at all."""


def test_what_was_there_is_not_touched() -> None:
    shop = Shop()
    shop.send((b"a", b"1"))
    shop.roll()
    shop.send((b"a", b"2"))
    shop.roll()
    before = shop.content("00000000000000000000.log")
    (group,) = clean(shop.disk, shop.plan(), silent)
    assert [facts.base_offset for facts in group.replaced] == [0, 1]
    assert group.clean_upto == 2
    assert shop.content("00000000000000000000.log") == before
    assert [record.value for record in shop.records("00000000000000000000.log.cleaned")] == [b"2"]
    assert group.size == len(shop.content("00000000000000000000.log.cleaned"))
    assert group.size_before == 2 * len(before)


def test_a_segment_that_would_stay_the_same_is_not_written() -> None:
    shop = Shop()
    shop.send((b"a", b"1"), (b"b", b"1"))
    shop.roll()
    (group,) = clean(shop.disk, shop.plan(), silent)
    assert group.size is None
    assert not any(name.endswith(".cleaned") for name in shop.disk.list(FOLDER))


def test_a_tombstone_gets_a_horizon_once_and_goes_when_that_is_over() -> None:
    shop = Shop()
    shop.send((b"a", b"1"))
    shop.send((b"a", None), (b"b", b"1"))
    shop.roll()
    horizons = []
    for now_ms in (NOW, NOW + 999):
        compact(shop.disk, shop.log, now_ms=now_ms)
        assert [(record.offset, record.value) for record in shop.records()] == [(1, None), (2, b"1")]
        ((header, _),) = read_batches(shop.content("00000000000000000000.log"))
        horizons.append(delete_horizon(header))
    assert horizons == [NOW + 1_000, NOW + 1_000]
    compact(shop.disk, shop.log, now_ms=NOW + 1_000)
    assert [(record.offset, record.value) for record in shop.records()] == [(2, b"1")]


def test_batches_that_may_be_sent_again_and_the_last_of_a_segment_stay_without_records() -> None:
    shop = Shop()
    shop.send((b"a", b"1"), (b"a", b"2"), producer=7, sequence=0)
    for sequence in range(PRODUCER_BATCHES_REMEMBERED + 2):
        shop.send((b"a", b"%d" % sequence), producer=8, sequence=sequence)
    shop.send((b"a", b"5"))
    shop.roll()
    shop.send((b"a", b"6"))
    shop.roll()
    shop.log.configure(replace(CONFIG, segment_bytes=1))  # nothing is put together
    compact(shop.disk, shop.log, now_ms=NOW)
    left = [(header.base_offset, len(records)) for header, records in read_batches(shop.content(f"{0:020d}.log"))]
    assert left == [(0, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0)]
    assert [record.value for record in shop.records(f"{10:020d}.log")] == [b"6"]


def test_with_little_memory_a_run_goes_as_far_as_it_can() -> None:
    shop = Shop()
    for value in (b"1", b"2", b"3"):
        shop.send((b"a", value), (b"b", value))
    shop.roll()
    assert compact(shop.disk, shop.log, now_ms=NOW, keys_bytes_max=1) == 2
    assert compact(shop.disk, shop.log, now_ms=NOW, keys_bytes_max=1, cleaned_offset=2) == 4
    assert [record.value for record in shop.records()] == [b"2", b"2", b"3", b"3"]
    assert compact(shop.disk, shop.log, now_ms=NOW, keys_bytes_max=1, cleaned_offset=4) == 6
    assert [record.value for record in shop.records()] == [b"3", b"3"]


def test_records_from_before_the_topic_was_compacted_go_if_they_have_no_key() -> None:
    shop = Shop()
    shop.send((None, b"1"), (b"a", b"1"))
    shop.roll()
    compact(shop.disk, shop.log, now_ms=NOW)
    assert [record.key for record in shop.records()] == [b"a"]


def test_bytes_are_read_and_written_no_faster_than_allowed() -> None:
    shop = Shop()
    noise = Random(1).randbytes(100_000)
    for number in range(40):
        shop.send((b"%d" % number, noise))
    shop.roll()
    shop.send((b"1", b"2"))
    shop.roll()
    rests: list[float] = []
    spent = sum(group.size_before for group in clean(shop.disk, shop.plan(bytes_per_second_max=1e6), rests.append))
    assert sum(rests) == pytest.approx(3 * spent / 1e6, rel=0.4)


def test_a_damaged_log_is_not_compacted() -> None:
    shop = Shop()
    shop.send((b"a", b"1"))
    shop.send((b"a", b"2"))
    shop.roll()
    shop.disk.damage(f"{FOLDER}/{0:020d}.log", 70)
    with pytest.raises(Refusal, match="damaged at position 0"):
        list(clean(shop.disk, shop.plan(), silent))


def test_a_run_begins_when_what_is_closed_is_durable() -> None:
    shop = Shop()
    shop.send((b"a", b"1"))
    shop.roll()
    dirt = dirt_of(shop.log, now_ms=NOW)
    shop.send((b"a", b"2"))
    shop.roll()
    with pytest.raises(AssertionError, match="closed segments are not durable"):
        plan_cleaning(shop.log, dirt, now_ms=NOW, keys_bytes_max=ROOMY, bytes_per_second_max=1)
    plan = shop.log.pending_sync()
    with pytest.raises(AssertionError, match="closed segments are not durable"):  # they are on their way
        plan_cleaning(shop.log, dirt, now_ms=NOW, keys_bytes_max=ROOMY, bytes_per_second_max=1)
    plan.run()
    shop.log.synced(plan)
    assert plan_cleaning(shop.log, dirt, now_ms=NOW, keys_bytes_max=ROOMY, bytes_per_second_max=1).segments


@pytest.mark.parametrize("delete_retention_ms", [1_000, TIMESTAMP_MAX])
def test_the_longest_retention_of_tombstones_is_cleaned_like_any_other(delete_retention_ms: int) -> None:
    shop = Shop(delete_retention_ms=delete_retention_ms)
    shop.send((b"a", b"1"), (b"b", b"1"))
    shop.send((b"a", None))
    shop.roll()
    compact(shop.disk, shop.log, now_ms=NOW)
    found = shop.log.read(Offset(0), bytes_max=1 << 20, upto=shop.log.log_end_offset).records
    assert found is not None
    batches = list(headers(found.file.read(found.position, found.size)))
    assert [delete_horizon(header) for _, header in batches] == [None, min(NOW + delete_retention_ms, TIMESTAMP_MAX)]
