"""Markers, byte for byte as Kafka writes them."""

from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.records.batch import read_header
from riverlog.records.control import Marker, build_marker, read_marker
from riverlog.records.record import BatchBuilder
from riverlog.records.walk import empty


def test_a_marker_is_read_as_it_was_written() -> None:
    for committed in (True, False):
        marker = Marker(committed, 12)
        batch = build_marker(marker, ProducerId(9), ProducerEpoch(4), timestamp_ms=1_000)
        assert read_marker(batch) == marker


def test_a_marker_is_a_control_batch_without_a_sequence() -> None:
    batch = build_marker(Marker(True, 5), ProducerId(9), ProducerEpoch(4), timestamp_ms=1_000)
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (9, 4, -1, 1)
    assert header.max_timestamp == 1_000
    # length, attributes, time, offset, key of 4 bytes: version 0 and type 1, value of 6: version 0 and epoch 5, headers
    assert bytes(batch[61:]) == bytes.fromhex("20 00 00 00 08 00000001 0c 000000000005 00".replace(" ", ""))


def test_other_control_batches_say_nothing_about_transactions() -> None:
    builder = BatchBuilder(control=True)
    builder.append(b"\x00\x00\x00\x02", b"", timestamp_ms=0)  # a leader change of a Raft log
    assert read_marker(builder.build()) is None
    marker = build_marker(Marker(True, 5), ProducerId(9), ProducerEpoch(4), timestamp_ms=1_000)
    assert read_marker(empty(read_header(marker))) is None
