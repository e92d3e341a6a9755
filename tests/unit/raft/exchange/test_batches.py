"""Batches of a Fetch response, with what they say of voters."""

from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.raft.control_records import encode_batch, voters_record
from riverlog.raft.exchange.requests import encode_request
from riverlog.raft.exchange.responses import decode_response, encode_response
from riverlog.raft.messages import (
    FetchResponse,
    LogRange,
)
from riverlog.records.record import BatchBuilder
from tests.support.controllers import CLUSTER, HEARD, REQUESTS, over_the_wire
from tests.support.raft import voters


def fetched(content: bytes) -> FetchResponse:
    response = FetchResponse(HEARD, Offset(0), records=LogRange(Offset(40), 1000))
    message = over_the_wire(encode_response(encode_request(REQUESTS[4], CLUSTER), response, content))
    arrived = decode_response(message)
    assert isinstance(arrived, FetchResponse)
    return arrived


def test_batches_come_with_what_they_say_of_voters() -> None:
    control = encode_batch([voters_record(voters(1, 2))], base_offset=Offset(40), epoch=LeaderEpoch(7), timestamp_ms=1)
    builder = BatchBuilder()
    builder.append(None, b"one", timestamp_ms=1)
    builder.append(None, b"two", timestamp_ms=1)
    data = bytes(builder.build(base_offset=Offset(41), leader_epoch=LeaderEpoch(7)))
    found = fetched(control + data + data[:20]).records
    assert found is not None and not isinstance(found, LogRange)
    first, second = found.batches
    assert first.voters == ((Offset(40), voters(1, 2)),)
    assert (second.base_offset, second.count, second.epoch, second.voters) == (41, 2, 7, ())
    assert found.content == control + data, "a batch that came in part is left out"


def test_nothing_new_is_no_batch() -> None:
    assert fetched(b"").records is None
