"""Transactions for tests: their batches and markers, and a reader of committed records as every client is one."""

from collections.abc import Iterator

from riverlog.log.log import Log
from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.records.batch import read_header
from riverlog.records.control import Marker, build_marker
from riverlog.records.record import BatchBuilder, ControlType, Record, control_type, read_batches


def transactional_batch(
    producer: int, sequence: int, *values: bytes | None, epoch: int = 0, key: bytes | None = None
) -> memoryview:
    """Build a batch of a transaction."""
    builder = BatchBuilder(
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=sequence,
        transactional=True,
    )
    for value in values:
        builder.append(key, value, timestamp_ms=1_000)
    return memoryview(builder.build())


def append(log: Log, batch: memoryview) -> Offset:
    """Append a batch, and give its first offset."""
    return log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=1_000).base_offset


def end(log: Log, producer: int, *, committed: bool, epoch: int = 0) -> Offset:
    """Append a producer's marker, and give its offset."""
    marker = Marker(committed, 0)
    batch = memoryview(build_marker(marker, ProducerId(producer), ProducerEpoch(epoch), timestamp_ms=1_000))
    appended = log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=1_000, marker=marker)
    return appended.base_offset


def committed_values(log: Log, offset: int = 0, *, bytes_max: int = 1 << 20) -> list[bytes | None]:
    """Read the values that readers of committed records get from an offset on, when all of the log is committed."""
    return [record.value for record in committed_records(log, offset, bytes_max=bytes_max)]


def committed_records(log: Log, offset: int = 0, *, bytes_max: int = 1 << 20) -> list[Record]:
    """Read what readers of committed records get from an offset on, when all of the log is committed."""
    log.producers.transactions.committed(log.log_end_offset)
    upto = log.last_stable_offset(log.log_end_offset)
    found: list[Record] = []
    while offset < upto:
        read = log.read(Offset(offset), bytes_max=bytes_max, upto=upto)
        if read.records is None:
            break
        data = read.records.file.read(read.records.position, read.records.size)
        for next_offset, given in passed_over(data, log.aborted_in(read, Offset(offset)), offset):
            offset = next_offset
            found += given
    return found


def passed_over(data: bytes, aborted: list[AbortedRange], offset: int) -> Iterator[tuple[int, list[Record]]]:
    """Pass over the aborted records of a range as clients do; give the offset behind each batch, and its records."""
    assert aborted == sorted(aborted, key=lambda each: each.first_offset)
    aborting: set[int] = set()
    for header, records in read_batches(data):
        while aborted and aborted[0].first_offset <= header.last_offset:
            aborting.add(aborted.pop(0).producer_id)
        given: list[Record] = []
        if header.is_control:
            if records and control_type(records[0]) is ControlType.ABORT:
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            given = [record for record in records if record.offset >= offset]
        yield header.next_offset, given
