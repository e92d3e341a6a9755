"""Whatever the bytes: a message or MalformedMessage, never anything else."""

from functools import cache
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.wire.apis import Api
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.headers import decode_request_header, decode_response
from tests.support.kio_oracle import random_message, spoken

CASES = list(spoken())


@cache
def valid(case: tuple[Api, str, int], seed: int) -> bytes:
    api, direction, version = case
    return encode(random_message(getattr(api, direction), version, Random(seed)), version)


def reads(case: tuple[Api, str, int], raw: bytes) -> None:
    api, direction, version = case
    declaration = getattr(api, direction)
    try:
        message, position = decode(declaration, version, raw)
    except MalformedMessage:
        return
    assert 0 <= position <= len(raw)
    again = encode(message, version)
    assert decode(declaration, version, again) == (message, len(again))


@settings(max_examples=250, deadline=None)
@given(case=st.sampled_from(CASES), raw=st.binary(max_size=120))
def test_random_bytes(case: tuple[Api, str, int], raw: bytes) -> None:
    reads(case, raw)


@settings(max_examples=400, deadline=None)
@given(
    case=st.sampled_from(CASES),
    seed=st.integers(0, 20),
    place=st.integers(0, 2**16),
    change=st.sampled_from(["flip", "cut", "insert", "remove", "ones", "zeros"]),
    amount=st.integers(1, 255),
)
def test_valid_messages_with_a_change(
    case: tuple[Api, str, int], seed: int, place: int, change: str, amount: int
) -> None:
    raw = bytearray(valid(case, seed))
    if not raw:
        return
    place %= len(raw)
    match change:
        case "flip":
            raw[place] ^= amount
        case "cut":
            del raw[place:]
        case "insert":
            raw[place:place] = bytes([amount]) * (amount % 5 + 1)
        case "remove":
            del raw[place : place + amount % 5 + 1]
        case "ones":
            raw[place : place + 4] = b"\xff" * 4
        case "zeros":
            raw[place : place + 4] = bytes(4)
    reads(case, bytes(raw))


@settings(max_examples=150, deadline=None)
@given(frame=st.binary(max_size=40), key=st.sampled_from([0, 1, 3, 18, 9999]), version=st.integers(0, 20))
def test_request_headers(frame: bytes, key: int, version: int) -> None:
    for raw in (frame, key.to_bytes(2) + version.to_bytes(2) + frame):
        try:
            header, position = decode_request_header(memoryview(raw))
        except MalformedMessage:
            continue
        assert position <= len(raw)
        assert header.api_key == int.from_bytes(raw[:2], signed=True)


@settings(max_examples=100, deadline=None)
@given(case=st.sampled_from([case for case in CASES if case[1] == "response"]), frame=st.binary(max_size=60))
def test_responses(case: tuple[Api, str, int], frame: bytes) -> None:
    api, _, version = case
    try:
        correlation_id, _ = decode_response(api, version, frame)
    except MalformedMessage:
        return
    assert correlation_id == int.from_bytes(frame[:4], signed=True)
