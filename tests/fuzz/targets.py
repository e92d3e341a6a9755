"""What is fuzzed in this process: each target takes any bytes and does what the node or a client does with them.

A target returns or raises one of its own refusals; `outcome` gives that in words. Anything else is a crash, and
so is an input that takes too long: that raises out of `outcome`.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Final

from riverlog.arrow.columns import TYPES, Cut, schema_of
from riverlog.arrow.decoding import compiled_decoder, plain_decoder
from riverlog.arrow.decoding.decoder import record_batches
from riverlog.arrow.encoding.compiled_encoder import CompiledEncoder
from riverlog.arrow.encoding.plain_encoder import PlainEncoder
from riverlog.arrow.encoding.rows import EncodingRules, TopicIndex, rows_of
from riverlog.client.consumer.fetched_records import Chunk
from riverlog.client.errors import CorruptRecords
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.records.batch import CRC_POSITION, HEADER_BYTES, check_produced, checksum, headers
from riverlog.records.compression import decompress
from riverlog.records.errors import BatchTooLarge, CorruptBatch
from riverlog.records.record import BatchBuilder, read_batch, unfolded
from riverlog.wire.apis import API_BY_KEY
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.framing import FrameBuffer, FrameRefused
from riverlog.wire.headers import decode_request_header
from tests.support import layouts

SECONDS_PER_INPUT_MAX: Final = 2.0
FRAME_BYTES_MAX: Final = 1024 * 1024
UNFOLDED_BYTES_MAX: Final = 4 * 1024 * 1024
HERE: Final = TopicPartition("orders", 0)
WHOLE: Final = Cut(Offset(0), Offset(2**63 - 1))
ALL_COLUMNS: Final = schema_of(TYPES)
_RULES: Final = EncodingRules(batch_bytes_max=600)
_REFUSALS: Final = (MalformedMessage, FrameRefused, Refusal, CorruptBatch, BatchTooLarge, CorruptRecords)


class TooSlow(Exception):
    """An input took longer than any input may."""


def outcome(target: str, data: bytes) -> str:
    """Pass the bytes to a target, and return what it made of them, as a sentence."""
    if target in ("columns", "layouts"):
        _compile_kernels()
    began = time.process_time()  # others may use the machine too
    try:
        result = TARGETS[target](data)
    except _REFUSALS as refusal:
        result = f"{type(refusal).__name__}: {refusal}"
    seconds = time.process_time() - began
    if seconds > SECONDS_PER_INPUT_MAX:
        raise TooSlow(f"{len(data)} bytes took {seconds:.1f} s")
    return result


@cache
def _compile_kernels() -> None:
    """Read and write something as columns once: in a new folder that takes seconds, which are no input's fault."""
    builder = BatchBuilder()
    builder.append(b"key", b"value", timestamp_ms=0)
    assert columns(builder.build()) == "records"
    assert layouts_of(b"\1") == "records"


def request(data: bytes) -> str:
    """Read a frame as a node does: the header, and then the body in the version that it names."""
    frame = memoryview(bytearray(data))
    header, position = decode_request_header(frame)
    api = API_BY_KEY.get(header.api_key)
    if api is None or header.api_version not in api.versions:
        return "no such API or version"
    message, end = decode(api.request, header.api_version, frame, position)
    assert position <= end <= len(frame)
    # What was understood can be said again, and means the same.
    again = encode(message, header.api_version)
    assert decode(api.request, header.api_version, again)[0] == message
    return "a request"


def stream(data: bytes) -> str:
    """Receive bytes as a connection does, a few at a time; the first byte says how many."""
    frames = FrameBuffer(FRAME_BYTES_MAX)
    step = data[0] + 1 if data else 1
    position, count = 1, 0
    while position < len(data):
        room = frames.room()
        chunk = data[position : position + min(step, len(room))]
        assert chunk
        room[: len(chunk)] = chunk
        frames.received(len(chunk))
        position += len(chunk)
        for frame in frames.frames():
            assert 0 < len(frame) <= FRAME_BYTES_MAX
            count += 1
    return "no frame" if count == 0 else "frames"


def batch(data: bytes) -> str:
    """Check a batch as a node does and read it as a consumer does; its checksum is made right before."""
    raw = bytearray(data)
    if len(raw) >= HEADER_BYTES:
        raw[CRC_POSITION : CRC_POSITION + 4] = checksum(raw).to_bytes(4)
    check_produced(memoryview(raw), batch_bytes_max=FRAME_BYTES_MAX)
    records = read_batch(raw, decompressed_bytes_max=UNFOLDED_BYTES_MAX)
    return "records" if records else "no records"


def folded(data: bytes) -> str:
    """Unfold bytes with the codec that the first of them names."""
    output = decompress(data[0] % 8 if data else 0, data[1:], decompressed_bytes_max=UNFOLDED_BYTES_MAX)
    assert len(output) <= max(UNFOLDED_BYTES_MAX, len(data))
    return "bytes"


def columns(data: bytes) -> str:
    """Read fetched bytes as columns, by the kernel and record by record: the same comes out, or both refuse."""
    raw = bytearray(data)
    for position, header in list(headers(raw)):
        batch = raw[position : position + header.size]
        raw[position + CRC_POSITION : position + CRC_POSITION + 4] = checksum(batch).to_bytes(4)
        unfolded(batch, header, decompressed_bytes_max=UNFOLDED_BYTES_MAX)
    outcomes = []
    for record_batch in (plain_decoder.record_batch, compiled_decoder.record_batch):
        try:
            chunk = Chunk(bytes(raw), [], read_committed=True)
            outcomes.append(list(record_batches(record_batch, chunk, HERE, ALL_COLUMNS, WHOLE)))
        except CorruptRecords as refusal:
            outcomes.append(refusal)
    expected, found = outcomes
    if isinstance(expected, CorruptRecords) or isinstance(found, CorruptRecords):
        assert type(expected) is type(found)
        raise expected
    for batch in found:
        batch.validate(full=True)
    assert found == expected
    return "records" if found else "no records"


def layouts_of(data: bytes) -> str:
    """Encode rows in layouts that bytes choose, by the kernel and row by row: the same as from the plainest layout."""
    choices = iter(data)

    def choose(below: int) -> int:
        return next(choices, 0) % below

    made = layouts.rows(choose, choose(12))
    plainest, wild = layouts.canonical(made), layouts.wild(choose, made)
    wild.validate(full=True)
    outcomes = []
    for kind, frame in ((PlainEncoder, plainest), (PlainEncoder, wild), (CompiledEncoder, wild)):
        topics = TopicIndex(layouts.PARTITIONS.__getitem__)
        encoder = kind(_RULES, topics)
        encoder.add(rows_of(frame, _RULES, topics, now_ms=0))
        outcomes.append([(batch.partition, batch.count, bytes(batch.content)) for batch in encoder.batches()])
    assert outcomes[0] == outcomes[1] == outcomes[2]
    return "records" if outcomes[0] else "no records"


TARGETS: Final[dict[str, Callable[[bytes], str]]] = {
    "request": request,
    "stream": stream,
    "batch": batch,
    "folded": folded,
    "columns": columns,
    "layouts": layouts_of,
}
