"""Whole frames, written out by hand from Kafka's protocol description."""

from typing import Any

import pytest

from riverlog.model.ports import FileRange
from riverlog.wire.apis import API_BY_KEY, Api, ApiKey
from riverlog.wire.codec import MalformedMessage, decode
from riverlog.wire.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    read_window,
    with_window,
)
from riverlog.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from riverlog.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

API_VERSIONS = API_BY_KEY[ApiKey.API_VERSIONS]
FETCH = API_BY_KEY[ApiKey.FETCH]
METADATA = API_BY_KEY[ApiKey.METADATA]
PRODUCE = API_BY_KEY[ApiKey.PRODUCE]

GOLDEN_REQUESTS = {
    "ApiVersions 0": (
        *(API_VERSIONS, 0, 1, "rdkafka", ApiVersionsRequest()),
        "00000011 0012 0000 00000001 0007 72646b61666b61",
    ),
    "ApiVersions 3: the client id stays a plain string, tagged fields follow it": (
        *(API_VERSIONS, 3, 7, "me", ApiVersionsRequest("kit", "1.0")),
        "00000016 0012 0003 00000007 0002 6d65 00 04 6b6974 04 312e30 00",
    ),
    "Metadata 1: null asks for all topics": (
        *(METADATA, 1, 2, None, MetadataRequest(None)),
        "0000000e 0003 0001 00000002 ffff ffffffff",
    ),
    "Metadata 12: by name, with the zero id": (
        *(METADATA, 12, 3, "c", MetadataRequest([MetadataRequestTopic(name="orders")], False)),
        "00000028 0003 000c 00000003 0001 63 00 02 00000000000000000000000000000000 07 6f7264657273 00 00 00 00",
    ),
    "Produce 7": (
        *(PRODUCE, 7, 4, "p", ProduceRequest(None, -1, 30_000, [TopicProduceData("t", partition_data=[])])),
        "0000001e 0000 0007 00000004 0001 70 ffff ffff 00007530 00000001 0001 74 00000000",
    ),
    "Produce 9": (
        *(
            *(PRODUCE, 9, 5, "p"),
            ProduceRequest(
                None,
                acks=1,
                timeout_ms=1000,
                topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(2, memoryview(b"batch"))])],
            ),
        ),
        "00000024 0000 0009 00000005 0001 70 00 00 0001 000003e8 02 02 74 02 00000002 06 6261746368 00 00 00",
    ),
}


def raw(spaced: str) -> bytes:
    return bytes.fromhex(spaced.replace(" ", ""))


@pytest.mark.parametrize("case", GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS)
def test_golden_requests(case: tuple[Api, int, int, str | None, Any, str]) -> None:
    api, version, correlation_id, client_id, message, golden = case
    frame = encode_request(api, version, correlation_id, client_id, message)
    assert frame.hex(" ") == raw(golden).hex(" ")
    body = memoryview(frame)[4:]
    header, position = decode_request_header(body)
    assert header == RequestHeader(api.key, version, correlation_id, client_id)
    assert decode(api.request, version, body, position) == (message, len(body))


GOLDEN_RESPONSES = {
    "ApiVersions 0": (
        *(API_VERSIONS, 0, 1, ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4)])),
        "00000010 00000001 0000 00000001 0012 0000 0004",
    ),
    "ApiVersions 3: a header without tagged fields, features in tagged fields of the body": (
        *(
            *(API_VERSIONS, 3, 1),
            ApiVersionsResponse(
                api_keys=[ApiVersion(18, 0, 4)],
                finalized_features_epoch=0,
                finalized_features=[FinalizedFeatureKey("f", 2, 1)],
            ),
        ),
        "00000027 00000001 0000 02 0012 0000 0004 00 00000000 02 01 08 0000000000000000 02 08 02 02 66 0002 0001 00",
    ),
    "Fetch 4": (
        *(
            *(FETCH, 4, 9),
            FetchResponse(
                responses=[
                    FetchableTopicResponse("t", partitions=[PartitionData(1, 0, 5, 5, records=memoryview(b"xyz"))])
                ]
            ),
        ),
        "00000034 00000009 00000000 00000001 0001 74 00000001 00000001 0000 0000000000000005 0000000000000005"
        " ffffffff 00000003 78797a",
    ),
}


@pytest.mark.parametrize("case", GOLDEN_RESPONSES.values(), ids=GOLDEN_RESPONSES)
def test_golden_responses(case: tuple[Api, int, int, Any, str]) -> None:
    api, version, correlation_id, message, golden = case
    frame = b"".join(encode_response(api, version, correlation_id, message))
    assert frame.hex(" ") == raw(golden).hex(" ")
    assert decode_response(api, version, frame[4:]) == (correlation_id, message)


def test_the_response_header_of_api_versions_is_version_0_even_when_the_body_is_flexible() -> None:
    frame = b"".join(encode_response(API_VERSIONS, 3, 0x01020304, ApiVersionsResponse(error_code=0x1122)))
    assert frame[4:10].hex() == "010203041122"
    other = b"".join(encode_response(METADATA, 9, 0x01020304, METADATA.response()))
    assert other[4:9].hex() == "0102030400"


def test_an_unknown_version_of_api_versions_is_answered_with_a_version_0_body() -> None:
    asked = memoryview(raw("0012 0063 0000002a 0003 6d6f72 00 ff ff ff"))
    header, _ = decode_request_header(asked)
    assert header == (ApiKey.API_VERSIONS, 0x63, 42, None)
    answer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, 4)])
    frame = b"".join(encode_response(API_VERSIONS, 0, header.correlation_id, answer))
    assert frame.hex(" ") == raw("00000010 0000002a 0023 00000001 0012 0000 0004").hex(" ")


@pytest.mark.parametrize(
    ("api_key", "version"), [(9999, 0), (-1, 3), (0, 2), (3, 14), (1, -1), (18, 32767)], ids=lambda number: str(number)
)
def test_what_is_not_spoken_still_gives_key_version_and_correlation_id(api_key: int, version: int) -> None:
    frame = api_key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + raw("00000007 7fff ff")
    header, _ = decode_request_header(memoryview(frame))
    assert header == (api_key, version, 7, None)


@pytest.mark.parametrize(
    "frame",
    {
        "nothing": "",
        "nine bytes": "0003 0009 00000001 00",
        "client id longer than the frame": "0003 0009 00000001 0009 6d65",
        "client id of length -2": "0003 0009 00000001 fffe 00",
        "client id not UTF-8": "0003 0009 00000001 0002 c328 00",
        "no tagged fields where they must be": "0003 0009 00000001 0002 6d65",
        "tagged field larger than the frame": "0003 0009 00000001 0000 01 00 7f",
        "more tagged fields than bytes": "0003 0009 00000001 0000 ffffffff07",
    }.values(),
)
def test_a_bad_request_header_is_malformed(frame: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_request_header(memoryview(raw(frame)))


def test_unknown_tagged_fields_of_a_request_header_are_skipped() -> None:
    frame = memoryview(raw("0003 0009 00000001 0002 6d65 02 00 01 aa 05 02 bbcc ff"))
    assert decode_request_header(frame) == ((3, 9, 1, "me"), len(frame) - 1)


def test_unknown_tagged_fields_of_a_response_header_are_skipped() -> None:
    encoded = b"".join(encode_response(METADATA, 9, 1, METADATA.response()))[4:]
    assert decode_response(METADATA, 9, encoded[:4] + raw("01 00 01 aa") + encoded[5:]) == (1, METADATA.response())


@pytest.mark.parametrize("frame", ["", "000000", "00000001", "00000001 80"])
def test_a_bad_response_header_is_malformed(frame: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_response(METADATA, 9, raw(frame))


class NoFile:
    """Stands where a file would: encoding must not touch it."""


@pytest.mark.parametrize("version", list(FETCH.versions))
def test_records_of_a_fetch_are_parts_of_their_own_never_copied(version: int) -> None:
    in_memory = memoryview(bytearray(300))
    in_file = FileRange(NoFile(), 4096, 1_000_000)  # type: ignore[arg-type]
    partitions = [PartitionData(0, records=in_memory), PartitionData(1, records=in_file), PartitionData(2)]
    parts = encode_response(FETCH, version, 1, FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)]))
    assert [type(part) for part in parts].count(FileRange) == 1
    assert any(part is in_memory for part in parts)
    assert any(part is in_file for part in parts)
    sizes = [part.size if isinstance(part, FileRange) else len(part) for part in parts]
    assert int.from_bytes(parts[0][:4]) == sum(sizes) - 4  # type: ignore[index]
    whole = b"".join(bytes(part.size) if isinstance(part, FileRange) else part for part in parts)
    _, back = decode_response(FETCH, version, whole[4:])
    assert [partition.records and len(partition.records) for partition in back.responses[0].partitions] == [
        300,
        1_000_000,
        None,
    ]


@pytest.mark.parametrize("version", list(FETCH.versions))
def test_empty_records_are_no_part_of_their_own(version: int) -> None:
    for empty in (b"", FileRange(NoFile(), 0, 0)):  # type: ignore[arg-type]
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=empty)])])
        (only,) = encode_response(FETCH, version, 1, response)
        _, back = decode_response(FETCH, version, memoryview(only)[4:])  # type: ignore[arg-type]
        assert back.responses[0].partitions[0].records == b""


def test_fetch_sessions_are_declined_with_session_id_0() -> None:
    _, back = decode_response(FETCH, 12, b"".join(encode_response(FETCH, 12, 1, FetchResponse()))[4:])
    assert back.session_id == 0


def test_the_window_is_a_tagged_field_of_the_response_header() -> None:
    plain = encode_response(METADATA, 9, 0x01020304, METADATA.response())
    frame = b"".join(with_window(METADATA, 9, plain, 0x00ABCDEF))  # type: ignore[arg-type]
    assert frame[4:16].hex(" ") == raw("01020304 01 904e 04 00abcdef").hex(" ")
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert read_window(METADATA, 9, frame[4:]) == 0x00ABCDEF
    assert decode_response(METADATA, 9, frame[4:]) == (0x01020304, METADATA.response())


@pytest.mark.parametrize(("api", "version"), [(METADATA, 8), (API_VERSIONS, 3)], ids=["not flexible", "ApiVersions"])
def test_a_header_without_tagged_fields_tells_no_window(api: Api, version: int) -> None:
    plain = encode_response(api, version, 1, api.response())
    assert with_window(api, version, plain, 5) == plain
    assert read_window(api, version, b"".join(plain)[4:]) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("head", ["00000001 00", "00000001 01 00 01 aa", "00000001 01 904e 05 0000000000", "00", ""])
def test_other_headers_tell_no_window(head: str) -> None:
    assert read_window(METADATA, 9, raw(head)) is None


def test_records_stay_where_they_are_beside_a_window() -> None:
    records = memoryview(bytes(100))
    topic = FetchableTopicResponse(partitions=[PartitionData(records=records)])
    parts = with_window(FETCH, 13, encode_response(FETCH, 13, 1, FetchResponse(responses=[topic])), 7)
    assert any(part is records for part in parts)
