"""Committed records on their way into the view."""

from riverlog.controller.limits import RECORDS_LOADED_PER_TURN
from riverlog.controller.loader import MetadataLoader
from riverlog.controller.view import MetadataView
from riverlog.metadata.encoding import encode_record
from riverlog.metadata.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    TransactionRecord,
)
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.resolution import configure
from riverlog.records.record import BatchBuilder
from tests.support.disk import MemoryDisk
from tests.unit.controller.test_storage import SNAPSHOT, add, content_of, level, opened


def loader_over(disk: MemoryDisk) -> tuple[MetadataLoader, MetadataView]:
    view = MetadataView(configure().settings)
    loader = MetadataLoader(opened(disk), view)
    loader.begin()
    return loader, view


def put(disk: MemoryDisk, *records: MetadataRecord | TransactionRecord) -> None:
    storage = opened(disk)
    for record in records:
        builder = BatchBuilder()
        builder.append(None, encode_record(record), timestamp_ms=1)
        storage.append(memoryview(builder.build()), LeaderEpoch(1))


def test_only_what_is_committed_is_loaded() -> None:
    disk = MemoryDisk()
    add(opened(disk), 7, 8, 9)
    loader, view = loader_over(disk)
    assert not loader.load_some(Offset(2))
    assert (loader.offset, view.image.features) == (2, {"metadata.version": 8})
    assert not loader.load_some(Offset(3))
    assert view.image.features == {"metadata.version": 9}


def test_a_large_batch_is_read_in_pieces_and_published_whole() -> None:
    disk, builder = MemoryDisk(), BatchBuilder()
    for number in range(2 * RECORDS_LOADED_PER_TURN + 7):
        builder.append(None, encode_record(level(number)), timestamp_ms=1)
    storage = opened(disk)
    end = storage.append(memoryview(builder.build()), LeaderEpoch(1))
    loader, view = loader_over(disk)
    seen, more = list[object](), True
    while more:
        more = loader.load_some(end)
        seen.append(view.image.features.get("metadata.version"))
    assert seen[:2] == [None, None]
    assert seen[-1] == 2 * RECORDS_LOADED_PER_TURN + 6
    assert loader.offset == end


def test_what_a_transaction_holds_back_takes_effect_at_its_end() -> None:
    disk = MemoryDisk()
    put(disk, level(7), BeginTransactionRecord(name="t"), level(8), EndTransactionRecord())
    loader, view = loader_over(disk)
    loader.load_some(Offset(3))
    assert loader.in_transaction
    assert view.image.features == {"metadata.version": 7}
    loader.load_some(Offset(4))
    assert not loader.in_transaction
    assert view.image.features == {"metadata.version": 8}


def test_a_snapshot_that_was_fetched_is_loaded_in_the_place_of_all() -> None:
    disk = MemoryDisk()
    add(opened(disk), 7)
    view = MetadataView(configure().settings)
    storage = opened(disk)
    loader, told = MetadataLoader(storage, view), list[int]()
    loader.begin()
    loader.load_some(Offset(1))
    view.watch(lambda delta: told.append(delta.image.features["metadata.version"]))
    storage.write_part(SNAPSHOT, 0, content_of(level(3), FeatureLevelRecord(name="group.version", feature_level=1)))
    storage.install(SNAPSHOT)
    loader.load_some(Offset(50))
    assert view.image.features == {"metadata.version": 3, "group.version": 1}
    assert (loader.offset, told) == (50, [3])
