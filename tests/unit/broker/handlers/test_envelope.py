"""Requests of clients that a broker hands on."""

import pytest

from riverlog.broker.limits import REQUEST_PORTION
from riverlog.broker.requests.principal import encode_principal
from riverlog.model.access import Principal
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import decode_response, encode_request
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.envelope import EnvelopeRequest
from riverlog.wire.messages.produce import ProduceRequest
from tests.support.clusters import controller_line
from tests.support.virtual_time import run

WHO, ADDRESS = encode_principal(Principal("alice", "10.0.0.7"))
REASSIGN = API_BY_KEY[ApiKey.ALTER_PARTITION_REASSIGNMENTS]
CREATE = API_BY_KEY[ApiKey.CREATE_TOPICS]


PRODUCE = encode_request(API_BY_KEY[ApiKey.PRODUCE], 9, 1, "x", ProduceRequest())[4:]


def create(name: str, version: int = 7) -> bytes:
    request = CreateTopicsRequest(topics=[CreatableTopic(name, num_partitions=1, replication_factor=1)])
    return encode_request(CREATE, version, 5, "tool", request)[4:]


def test_what_is_handed_on_is_answered_as_if_it_had_been_asked_here() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            for version in (2, 7):
                request = EnvelopeRequest(create(f"t{version}", version), WHO, ADDRESS)
                response = await line.ask(ApiKey.ENVELOPE, 0, request)
                assert response.error_code == ErrorCode.NONE
                correlation_id, answer = decode_response(CREATE, version, response.response_data)
                assert (correlation_id, answer.topics[0].error_code) == (5, ErrorCode.NONE)
            assert [topic.name for topic in cluster.nodes[1].controller.image.all_topics()] == ["t2", "t7"]

    run(scenario())


def test_a_large_request_is_answered_whole() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            partitions = [ReassignablePartition(index, None) for index in range(REQUEST_PORTION * 2 + 1)]
            request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)])
            data = encode_request(REASSIGN, 1, 5, "tool", request)[4:]
            response = await line.ask(ApiKey.ENVELOPE, 0, EnvelopeRequest(data, WHO, ADDRESS))
            _correlation_id, answer = decode_response(REASSIGN, 1, response.response_data)
            [topic] = answer.responses
            assert [each.partition_index for each in topic.partitions] == list(range(len(partitions)))
            assert {each.error_code for each in topic.partitions} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    run(scenario())


@pytest.mark.parametrize(
    ("data", "who", "code"),
    [
        (create("t"), None, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (create("t"), b"\x00\x01abc", ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"", WHO, ErrorCode.INVALID_REQUEST),
        (create("t")[:-3], WHO, ErrorCode.INVALID_REQUEST),
        (
            encode_request(API_BY_KEY[ApiKey.PRODUCE], 9, 1, "x", ProduceRequest())[4:],
            WHO,
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(data: bytes, who: bytes | None, code: ErrorCode) -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            response = await line.ask(ApiKey.ENVELOPE, 0, EnvelopeRequest(data, who, ADDRESS))
            assert (response.error_code, response.response_data) == (code, None)
            assert list(cluster.nodes[1].controller.image.all_topics()) == []

    run(scenario())
