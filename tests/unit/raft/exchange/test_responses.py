"""Responses between controllers arrive as they were meant, and those that cannot be used are named."""

import pytest

from riverlog.model.epochs import EpochEnd
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, Offset
from riverlog.raft.exchange.requests import encode_request
from riverlog.raft.exchange.responses import BadResponse, decode_response, encode_refusal, encode_response
from riverlog.raft.messages import (
    AddVoterRequest,
    EpochResponse,
    FetchResponse,
    FetchSnapshotResponse,
    Leadership,
    RemoveVoterRequest,
    Request,
    Response,
    SnapshotRange,
    VersionsRequest,
    VersionsResponse,
    VoterChangeResponse,
    VoteResponse,
)
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from tests.support.controllers import CLUSTER, HEARD, REQUESTS, SNAPSHOT, UNKNOWN, over_the_wire

RESPONSES: list[tuple[Request, Response]] = [
    (REQUESTS[0], VoteResponse(HEARD, granted=True)),
    (REQUESTS[0], VoteResponse(UNKNOWN)),
    (REQUESTS[2], EpochResponse(HEARD)),
    (REQUESTS[3], EpochResponse(UNKNOWN)),
    (REQUESTS[4], FetchResponse(HEARD, Offset(990), Offset(10))),
    (REQUESTS[4], FetchResponse(HEARD, Offset(990), diverging=EpochEnd(LeaderEpoch(4), Offset(800)))),
    (REQUESTS[4], FetchResponse(HEARD, NO_OFFSET, snapshot=SNAPSHOT)),
    (REQUESTS[4], FetchResponse(UNKNOWN)),
    (REQUESTS[6], FetchSnapshotResponse(HEARD, SNAPSHOT, 5000, 4096, b"bytes")),
    (REQUESTS[-1], VoterChangeResponse(HEARD)),
]


@pytest.mark.parametrize(("asked", "response"), RESPONSES)
def test_a_response_arrives_as_it_was_meant(asked: Request, response: Response) -> None:
    content = response.content if isinstance(response, FetchSnapshotResponse) else None
    assert not isinstance(content, SnapshotRange)
    message = over_the_wire(encode_response(encode_request(asked, CLUSTER), response, content))
    assert decode_response(message) == response


def test_a_change_of_voters_is_answered_with_a_sentence() -> None:
    refused = VoterChangeResponse(Leadership(ErrorCode.DUPLICATE_VOTER, LeaderEpoch(7)), "It votes already.")
    for asked in REQUESTS:
        if isinstance(asked, AddVoterRequest | RemoveVoterRequest):
            message = over_the_wire(encode_response(encode_request(asked, CLUSTER), refused))
            arrived = decode_response(message)
            assert isinstance(arrived, VoterChangeResponse)
            assert (arrived.leadership.error, arrived.message) == (ErrorCode.DUPLICATE_VOTER, "It votes already.")


def test_a_response_that_cannot_be_used_is_named() -> None:
    asked = encode_request(REQUESTS[0], CLUSTER)
    with pytest.raises(BadResponse, match="INCONSISTENT_CLUSTER_ID"):
        decode_response(over_the_wire(encode_refusal(asked, ErrorCode.INCONSISTENT_CLUSTER_ID)))
    empty = over_the_wire(encode_response(asked, VoteResponse(HEARD)))
    empty.topics = []
    with pytest.raises(BadResponse, match="another log"):
        decode_response(empty)


def test_a_voter_says_which_levels_it_knows() -> None:
    assert type(encode_request(VersionsRequest(), CLUSTER)).__name__ == "ApiVersionsRequest"
    known = ApiVersionsResponse(supported_features=[SupportedFeatureKey("kraft.version", 0, 1)])
    assert decode_response(over_the_wire(known)) == VersionsResponse((0, 1))
    assert decode_response(ApiVersionsResponse()) == VersionsResponse(None)
    assert API_BY_KEY[ApiKey.API_VERSIONS].versions.max >= 3
