"""The records of a produced batch, checked one by one: what a topic with `record.validation=full` asks for.

The checks are those of Kafka's LogValidator: every record can be read, offset deltas count up from 0, timestamps fit
into 64 bits and into the topic's bounds. The largest timestamp in the header is put right where a client wrote another
one. Without this a broker knows of a batch only what its header says.
"""

from struct import Struct
from typing import Final

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.limits import DECOMPRESSED_BYTES_MAX
from riverlog.model.topic_config import TopicConfig
from riverlog.records.batch import CRC_POSITION, LOG_APPEND_TIME, MAX_TIMESTAMP_POSITION, BatchHeader, checksum
from riverlog.records.errors import BatchTooLarge, CorruptBatch
from riverlog.records.limits import UNFOLDED_BATCHES_MAX
from riverlog.records.record import Record, records_in, unfolded

_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1
_TIMESTAMP: Final = Struct(">q")
_CRC: Final = Struct(">I")


def check_records(batch: memoryview, header: BatchHeader, config: TopicConfig, *, now_ms: int) -> BatchHeader:
    """Refuse a batch with a record that cannot be read or is too old; return its header, put right.

    The batch passed `check_produced`. Its bytes change only where the header names another largest timestamp, which the
    log compares with the topic's bounds when it takes the batch.
    """
    records = _records(batch, header, config.max_message_bytes)
    if header.attributes & LOG_APPEND_TIME:
        return header
    first, last = _first_and_last(records)
    if config.message_timestamp_log_append_time:
        return header
    if first >= 0 and now_ms - first > config.message_timestamp_before_max_ms:
        raise Refusal(
            ErrorCode.INVALID_TIMESTAMP,
            f"a record's timestamp is {now_ms - first} ms old; "
            f"message.timestamp.before.max.ms allows {config.message_timestamp_before_max_ms}",
        )
    return header if last == header.max_timestamp else _with_last(batch, header, last)


def with_true_last_timestamp(batch: memoryview, header: BatchHeader, *, batch_bytes_max: int) -> BatchHeader:
    """Return the header of a batch that names a last timestamp before its first, put right: some clients leave it out.

    Records are found by that time, and retention goes by it. Refuses the batch if its records cannot be read.
    """
    return _with_last(batch, header, _first_and_last(_records(batch, header, batch_bytes_max))[1])


def _records(batch: memoryview, header: BatchHeader, batch_bytes_max: int) -> list[Record]:
    bytes_max = min(DECOMPRESSED_BYTES_MAX, UNFOLDED_BATCHES_MAX * batch_bytes_max)
    try:
        records = records_in(unfolded(batch, header, decompressed_bytes_max=bytes_max), header)
    except BatchTooLarge:
        raise
    except CorruptBatch as flaw:
        raise Refusal(ErrorCode.INVALID_RECORD, f"the batch's records cannot be read: {flaw.message}") from None
    # Deltas only grow, so all of them are right where the last one is.
    if records[-1].offset != header.last_offset:
        raise Refusal(ErrorCode.INVALID_RECORD, "the offsets of the batch's records do not count up by one")
    return records


def _first_and_last(records: list[Record]) -> tuple[int, int]:
    first = min(record.timestamp for record in records)
    last = max(record.timestamp for record in records)
    if first < _LONG_MIN or last > _LONG_MAX:
        raise Refusal(ErrorCode.INVALID_RECORD, "a record's timestamp does not fit into 64 bits")
    return first, last


def _with_last(batch: memoryview, header: BatchHeader, last: int) -> BatchHeader:
    _TIMESTAMP.pack_into(batch, MAX_TIMESTAMP_POSITION, last)
    crc = checksum(batch)
    _CRC.pack_into(batch, CRC_POSITION, crc)
    return header._replace(max_timestamp=last, crc=crc)
