"""Small logs, for the tests of this room."""

from dataclasses import replace

from riverlog.log.log import Log
from riverlog.log.segments.gathered_write import AppendResult
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, TopicConfig
from riverlog.records.batch import check_produced
from tests.support.batches import batch_of, records_of
from tests.support.disk import MemoryDisk

FOLDER = "/data/orders-0"
SMALL = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=1_000, index_interval_bytes=100)
NOW = 10_000


def open_log(disk: MemoryDisk, config: TopicConfig = SMALL, *, recovery_point: int = 0, clean: bool = False) -> Log:
    return Log.open(disk, FOLDER, config, recovery_point=Offset(recovery_point), clean=clean, now_ms=NOW)


def append(log: Log, *values: bytes, epoch: int = 0, now_ms: int = NOW, **fields: int) -> AppendResult:
    batch = batch_of(values or (b"value",), **fields)  # type: ignore[arg-type]
    header = check_produced(batch, batch_bytes_max=1 << 20)
    return log.append(batch, header, leader_epoch=LeaderEpoch(epoch), now_ms=now_ms)


def gather(log: Log, value: bytes, *, epoch: int = 0, **fields: int) -> AppendResult:
    batch = batch_of([value], **fields)  # type: ignore[arg-type]
    header = check_produced(batch, batch_bytes_max=1 << 20)
    return log.gather(batch, header, leader_epoch=LeaderEpoch(epoch), now_ms=NOW)


def read_all(log: Log, offset: int = 0, bytes_max: int = 1 << 20) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    at = Offset(offset)
    while at < log.log_end_offset:
        records = records_of(log.read(at, bytes_max=bytes_max, upto=log.log_end_offset).records)
        found += [(record.offset, record.value or b"") for record in records if record.offset >= at]
        at = Offset(records[-1].offset + 1)
    return found


def filled(log: Log, batches: int = 60) -> list[tuple[int, bytes]]:
    values = [b"value %d" % number for number in range(batches * 2)]
    for number in range(0, len(values), 2):
        append(log, *values[number : number + 2], timestamp_ms=1_000 + 10 * number)
    return list(enumerate(values))
