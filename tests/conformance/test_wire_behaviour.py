"""The broker at the level of bytes: order of answers, limits of a fetch, and input that no client sends.

Where Kafka's behaviour is the reference, these tests pass against Apache Kafka too (CONFORMANCE_BOOTSTRAP).
"""

import os
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from tests.conformance import raw
from tests.conformance.raw import Connection

OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
INVALID_REQUIRED_ACKS = 21
UNSUPPORTED_VERSION = 35
OUT_OF_ORDER_SEQUENCE = 45
INVALID_PRODUCER_EPOCH = 47
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87

NewTopic = Callable[..., str]


@pytest.fixture
def connection(bootstrap: str) -> Iterator[Connection]:
    with Connection(bootstrap) as connection:
        yield connection


def produce(connection: Connection, topic: str, records: bytes | None, **options: int) -> raw.Produced:
    body = raw.produce_body(topic, records, **options)
    return raw.produced(connection.request(raw.PRODUCE, raw.PRODUCE_VERSION, body))


def fetch(connection: Connection, topic: str, offset: int = 0, **options: int) -> raw.Fetched:
    body = raw.fetch_body(topic, offset, **options)
    return raw.fetched(connection.request(raw.FETCH, raw.FETCH_VERSION, body))


class TestVersions:
    @pytest.mark.parametrize("version", range(5))
    def test_every_version_of_api_versions_is_answered(self, connection: Connection, version: int) -> None:
        ranges = self._ranges(connection, version)
        assert ranges[raw.API_VERSIONS][0] == 0
        assert ranges[raw.API_VERSIONS][1] >= 4
        assert ranges[raw.PRODUCE][0] == 0, "librdkafka compresses only if it sees Produce 0"
        assert ranges[raw.PRODUCE][1] >= 9
        assert ranges[raw.FETCH][0] <= 4 <= 12 <= ranges[raw.FETCH][1]

    def test_an_unknown_version_of_api_versions_is_told_which_are_known(self, connection: Connection) -> None:
        answer = connection.request(raw.API_VERSIONS, 99, b"\x04raw\x021\0", flexible=True)
        assert answer.int16() == UNSUPPORTED_VERSION
        ranges = answer.array(lambda: (answer.int16(), answer.int16(), answer.int16()))
        assert answer.done, "the answer must have the form of version 0"
        assert raw.API_VERSIONS in {api for api, _, _ in ranges}
        assert self._ranges(connection, 3), "the connection must go on"

    def test_unknown_tagged_fields_are_skipped(self, connection: Connection) -> None:
        tags = b"\x02" + b"\x63\x02hi" + b"\xff\x01\x00"  # tag 99 with two bytes, tag 255 with none
        header = raw.header(raw.API_VERSIONS, 3, 1) + tags
        connection.send_bytes(raw.frame(header + b"\x04raw\x021" + tags))
        correlation_id, answer = connection.receive()
        assert (correlation_id, answer.int16()) == (1, 0)

    def _ranges(self, connection: Connection, version: int) -> dict[int, tuple[int, int]]:
        flexible = version >= 3
        body = b"\x04raw\x021\0" if flexible else b""
        answer = connection.request(raw.API_VERSIONS, version, body, flexible=flexible)
        assert answer.int16() == 0
        count = answer.varint() - 1 if flexible else answer.int32()
        ranges = {}
        for _ in range(count):
            api, lowest, highest = answer.int16(), answer.int16(), answer.int16()
            ranges[api] = lowest, highest
            if flexible:
                assert answer.varint() == 0
        return ranges

    @pytest.mark.parametrize(
        ("api", "version"),
        [
            (raw.METADATA, 99),
            (raw.METADATA, -1),
            (raw.PRODUCE, 99),
            (raw.PRODUCE, 2),
            (raw.FETCH, 3),
            (9_999, 0),
            (-1, 0),
            (4, 0),
        ],
    )
    def test_an_unknown_api_or_version_ends_the_connection(
        self, connection: Connection, api: int, version: int
    ) -> None:
        connection.send(api, version, bytes(64))
        assert connection.is_closed()


class TestOrder:
    def test_answers_come_in_the_order_of_requests_behind_a_waiting_fetch(
        self, connection: Connection, new_topic: NewTopic, bootstrap: str
    ) -> None:
        topic = new_topic()
        waiting = raw.fetch_body(topic, 0, wait_ms=5_000)
        sent = [connection.send(raw.FETCH, raw.FETCH_VERSION, waiting)]
        sent += [connection.send(raw.METADATA, raw.METADATA_VERSION, raw.array([]) + b"\0") for _ in range(20)]
        with Connection(bootstrap) as other:
            assert produce(other, topic, raw.batch(b"wakes the fetch")).error == 0
        answers = [connection.receive() for _ in sent]
        assert [correlation_id for correlation_id, _ in answers] == sent
        assert raw.fetched(answers[0][1]).records

    def test_pipelined_writes_take_effect_in_order(self, connection: Connection, new_topic: NewTopic) -> None:
        topic = new_topic()
        bodies = [raw.produce_body(topic, raw.batch(b"%d" % index)) for index in range(100)]
        sent = [connection.send(raw.PRODUCE, raw.PRODUCE_VERSION, body) for body in bodies]
        answers = [connection.receive() for _ in sent]
        assert [correlation_id for correlation_id, _ in answers] == sent
        assert [raw.produced(answer).base_offset for _, answer in answers] == list(range(100))

    def test_a_request_may_arrive_byte_by_byte(self, connection: Connection) -> None:
        for byte in raw.frame(raw.header(raw.API_VERSIONS, 0, 7)):
            connection.send_bytes(bytes([byte]))
        assert connection.receive()[0] == 7

    def test_many_requests_may_arrive_at_once(self, connection: Connection) -> None:
        frames = b"".join(raw.frame(raw.header(raw.API_VERSIONS, 0, number)) for number in range(500))
        connection.send_bytes(frames)
        assert [connection.receive()[0] for _ in range(500)] == list(range(500))


class TestFrames:
    @pytest.mark.parametrize(
        "content",
        [
            struct.pack(">i", -1),
            struct.pack(">i", 0),
            struct.pack(">i", 0x7FFFFFFF) + bytes(100),
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
            raw.frame(b"\0"),
            raw.frame(struct.pack(">hhi", raw.METADATA, raw.METADATA_VERSION, 1)),
            raw.frame(struct.pack(">hhih", raw.METADATA, raw.METADATA_VERSION, 1, 30_000)),
            raw.frame(raw.header(raw.METADATA, raw.METADATA_VERSION, 1)),
            raw.frame(raw.header(raw.METADATA, raw.METADATA_VERSION, 1) + struct.pack(">i", 0x7FFFFFFF)),
            raw.frame(raw.header(raw.METADATA, raw.METADATA_VERSION, 1) + struct.pack(">ih", 1, 500) + b"short"),
            raw.frame(raw.header(raw.PRODUCE, raw.PRODUCE_VERSION, 1) + raw.produce_body("t", b"x" * 50)[:-20]),
            raw.frame(raw.header(raw.FETCH, raw.FETCH_VERSION, 1) + raw.fetch_body("t", 0)[:-5]),
        ],
        ids=[
            "negative length",
            "length zero",
            "2 GB announced",
            "HTTP",
            "TLS",
            "one byte",
            "header without client id",
            "client id longer than the frame",
            "no body",
            "2^31 topics",
            "string longer than the frame",
            "records longer than the frame",
            "fetch cut short",
        ],
    )
    def test_bad_frames_end_their_connection_and_no_other(
        self, connection: Connection, bootstrap: str, content: bytes, new_topic: NewTopic
    ) -> None:
        topic = new_topic()
        with Connection(bootstrap) as other:
            waiting = other.send(raw.FETCH, raw.FETCH_VERSION, raw.fetch_body(topic, 0, wait_ms=10_000))
            connection.send_bytes(content)
            assert connection.is_closed()
            with Connection(bootstrap) as third:
                assert produce(third, topic, raw.batch(b"still here")).error == 0
            correlation_id, answer = other.receive()
            assert correlation_id == waiting
            assert raw.fetched(answer).records

    def test_a_peer_that_leaves_in_the_middle_of_a_frame_harms_nobody(self, bootstrap: str) -> None:
        with Connection(bootstrap) as leaving:
            leaving.send_bytes(raw.frame(bytes(1000))[:500])
        with Connection(bootstrap) as other:
            assert other.request(raw.API_VERSIONS, 0, b"").int16() == 0

    def test_a_peer_that_stops_sending_still_gets_its_answers(self, connection: Connection) -> None:
        sent = connection.send(raw.API_VERSIONS, 0, b"")
        correlation_id, answer = connection.receive()
        connection.finish_sending()
        assert correlation_id == sent
        assert answer.int16() == 0
        assert connection.is_closed()


HONEST = raw.batch(b"one", b"two", b"three")


class TestProduce:
    @pytest.mark.parametrize(
        ("records", "code"),
        [
            (raw.batch(b"x", crc=0x12345678), CORRUPT_MESSAGE),
            (HONEST[:-1] + b"\xff", CORRUPT_MESSAGE),
            (HONEST[:-1], INVALID_RECORD),
            (HONEST[:40], INVALID_RECORD),
            (raw.batch(b"x", b"y", count=7), INVALID_RECORD),
            (raw.batch(b"x", b"y", last_offset_delta=40), INVALID_RECORD),
            (raw.batch(b"x", b"y", count=0, last_offset_delta=-1), INVALID_RECORD),
            (raw.batch(b"x", attributes=0x20), INVALID_RECORD),
            (HONEST + HONEST, INVALID_RECORD),
            (raw.old_message(b"x", 0), INVALID_RECORD),
            (raw.old_message(b"x", 1), INVALID_RECORD),
            (raw.batch(b"x", magic=9), CORRUPT_MESSAGE),
            (b"", INVALID_RECORD),
        ],
        ids=[
            "wrong checksum",
            "changed byte",
            "cut short",
            "cut within the header",
            "count too high",
            "last offset delta too high",
            "count zero",
            "control batch",
            "two batches",
            "format 0",
            "format 1",
            "format 9",
            "empty",
        ],
    )
    def test_dishonest_batches_are_refused(
        self, connection: Connection, new_topic: NewTopic, records: bytes | None, code: int
    ) -> None:
        topic = new_topic()
        assert produce(connection, topic, records).error == code
        assert fetch(connection, topic).high_watermark == 0
        assert produce(connection, topic, HONEST) == raw.Produced(0, 0)

    @pytest.mark.parametrize("acks", [1, -1])
    def test_offsets_count_records(self, connection: Connection, new_topic: NewTopic, acks: int) -> None:
        topic = new_topic()
        assert produce(connection, topic, HONEST, acks=acks) == raw.Produced(0, 0)
        assert produce(connection, topic, HONEST, acks=acks) == raw.Produced(0, 3)
        assert fetch(connection, topic).high_watermark == 6

    def test_acks_0_is_not_answered(self, connection: Connection, new_topic: NewTopic) -> None:
        topic = new_topic()
        connection.send(raw.PRODUCE, raw.PRODUCE_VERSION, raw.produce_body(topic, HONEST, acks=0))
        assert fetch(connection, topic, wait_ms=5_000).high_watermark == 3

    def test_a_failed_write_with_acks_0_ends_the_connection(
        self, connection: Connection, fresh_name: Callable[[], str]
    ) -> None:
        connection.send(raw.PRODUCE, raw.PRODUCE_VERSION, raw.produce_body(fresh_name(), HONEST, acks=0))
        assert connection.is_closed()

    def test_only_three_values_of_acks_exist(self, connection: Connection, new_topic: NewTopic) -> None:
        topic = new_topic()
        assert produce(connection, topic, HONEST, acks=5).error == INVALID_REQUIRED_ACKS
        assert fetch(connection, topic).high_watermark == 0

    def test_a_missing_partition_is_named_as_such(
        self, connection: Connection, new_topic: NewTopic, fresh_name: Callable[[], str]
    ) -> None:
        assert produce(connection, new_topic(), HONEST, partition=7).error == UNKNOWN_TOPIC_OR_PARTITION
        assert produce(connection, new_topic(), HONEST, partition=-1).error == UNKNOWN_TOPIC_OR_PARTITION
        assert produce(connection, fresh_name(), HONEST).error == UNKNOWN_TOPIC_OR_PARTITION

    def test_a_batch_above_the_limit_is_refused(self, connection: Connection, new_topic: NewTopic) -> None:
        topic = new_topic(max_message_bytes="1000")
        at_limit = raw.batch(b"x" * (1000 - len(raw.batch(b"x" * 900)) + 900))
        assert len(at_limit) == 1000
        assert produce(connection, topic, at_limit).error == 0
        assert produce(connection, topic, raw.batch(b"x" * 1000)).error == MESSAGE_TOO_LARGE


class TestIdempotence:
    @pytest.fixture
    def producer(self, connection: Connection) -> tuple[int, int]:
        return raw.new_producer(connection)

    def test_every_producer_has_an_id_of_its_own(self, connection: Connection) -> None:
        assert len({raw.new_producer(connection) for _ in range(50)}) == 50

    def test_a_repeated_batch_is_stored_once(
        self, connection: Connection, new_topic: NewTopic, producer: tuple[int, int]
    ) -> None:
        topic = new_topic()
        batches = [raw.batch(b"%d" % index, producer=(*producer, index)) for index in range(5)]
        for _ in range(2):
            assert [produce(connection, topic, batch) for batch in batches] == [
                raw.Produced(0, offset) for offset in range(5)
            ]
        assert fetch(connection, topic).high_watermark == 5

    def test_a_gap_in_the_sequence_is_refused(
        self, connection: Connection, new_topic: NewTopic, producer: tuple[int, int]
    ) -> None:
        topic = new_topic()
        assert produce(connection, topic, raw.batch(b"0", producer=(*producer, 0))).error == 0
        assert produce(connection, topic, raw.batch(b"7", producer=(*producer, 7))).error == OUT_OF_ORDER_SEQUENCE
        assert produce(connection, topic, raw.batch(b"1", producer=(*producer, 1))) == raw.Produced(0, 1)

    def test_an_older_epoch_is_refused(
        self, connection: Connection, new_topic: NewTopic, producer: tuple[int, int]
    ) -> None:
        topic, (producer_id, epoch) = new_topic(), producer
        assert produce(connection, topic, raw.batch(b"new", producer=(producer_id, epoch + 1, 0))).error == 0
        refused = produce(connection, topic, raw.batch(b"old", producer=(producer_id, epoch, 0)))
        assert refused.error == INVALID_PRODUCER_EPOCH

    def test_sequences_are_counted_per_partition(
        self, connection: Connection, new_topic: NewTopic, producer: tuple[int, int]
    ) -> None:
        topic = new_topic(partitions=3)
        for partition in range(3):
            batch = raw.batch(b"first", producer=(*producer, 0))
            assert produce(connection, topic, batch, partition=partition) == raw.Produced(0, 0)


class TestFetch:
    def test_a_fetch_waits_as_long_as_it_was_told(self, connection: Connection, new_topic: NewTopic) -> None:
        topic = new_topic()
        begun = time.monotonic()
        assert fetch(connection, topic, wait_ms=300).records == b""
        waited = time.monotonic() - begun
        assert 0.29 <= waited < 2

    def test_a_fetch_that_wants_nothing_is_answered_at_once(self, connection: Connection, new_topic: NewTopic) -> None:
        begun = time.monotonic()
        assert fetch(connection, new_topic(), wait_ms=8_000, bytes_min=0).records == b""
        assert time.monotonic() - begun < 4

    def test_a_fetch_waits_for_the_bytes_it_wants(
        self, connection: Connection, new_topic: NewTopic, bootstrap: str
    ) -> None:
        topic = new_topic()
        wanted = raw.fetch_body(topic, 0, wait_ms=9_000, bytes_min=3 * len(HONEST))
        begun = time.monotonic()
        connection.send(raw.FETCH, raw.FETCH_VERSION, wanted)
        with Connection(bootstrap) as writer:
            for _ in range(3):
                assert produce(writer, topic, HONEST).error == 0
        _, answer = connection.receive()
        assert len(raw.fetched(answer).records) == 3 * len(HONEST)
        assert time.monotonic() - begun < 5

    def test_the_first_batch_is_whole_and_the_limit_holds_for_the_rest(
        self, connection: Connection, new_topic: NewTopic
    ) -> None:
        topic = new_topic()
        for _ in range(4):
            assert produce(connection, topic, HONEST).error == 0
        for limit in ({"bytes_max": 1}, {"partition_bytes_max": 1}):
            assert fetch(connection, topic, **limit).batches == [(0, 0)]
        two = 2 * len(HONEST)
        for limit in ({"bytes_max": two}, {"partition_bytes_max": two}):
            read = fetch(connection, topic, **limit)
            assert len(read.records) <= two
            assert read.batches == [(0, 0), (3, 0)]

    def test_the_limit_holds_over_all_partitions(self, connection: Connection, new_topic: NewTopic) -> None:
        topic = new_topic(partitions=3)
        for partition in range(3):
            assert produce(connection, topic, HONEST, partition=partition).error == 0
        for bytes_max, expected in ((1, 1), (2 * len(HONEST), 2), (3 * len(HONEST), 3)):
            body = raw.fetch_body(topic, 0, partitions=range(3), bytes_max=bytes_max)
            read = raw.fetched_all(connection.request(raw.FETCH, raw.FETCH_VERSION, body))
            assert [partition.error for partition in read] == [0, 0, 0]
            assert len([partition for partition in read if partition.batches]) == expected

    def test_one_written_partition_wakes_a_fetch_of_many(
        self, connection: Connection, new_topic: NewTopic, bootstrap: str
    ) -> None:
        topic = new_topic(partitions=3)
        body = raw.fetch_body(topic, 0, partitions=range(3), wait_ms=9_000)
        connection.send(raw.FETCH, raw.FETCH_VERSION, body)
        with Connection(bootstrap) as writer:
            assert produce(writer, topic, HONEST, partition=2).error == 0
        read = raw.fetched_all(connection.receive()[1])
        assert [len(partition.records) for partition in read] == [0, 0, len(HONEST)]

    def test_a_reader_that_takes_no_answers_holds_up_nobody(
        self, connection: Connection, new_topic: NewTopic, bootstrap: str
    ) -> None:
        topic = new_topic()
        assert produce(connection, topic, raw.batch(bytes(1_000_000))).error == 0
        for _ in range(200):
            connection.send(raw.FETCH, raw.FETCH_VERSION, raw.fetch_body(topic, 0))
        with Connection(bootstrap) as other:
            for _ in range(20):
                assert produce(other, topic, HONEST).error == 0
                assert fetch(other, topic).batches[0] == (0, 0)
        for _ in range(200):
            assert raw.fetched(connection.receive()[1]).batches[0] == (0, 0)

    def test_a_fetch_from_within_a_batch_gives_the_whole_batch(
        self, connection: Connection, new_topic: NewTopic
    ) -> None:
        topic = new_topic()
        for _ in range(3):
            assert produce(connection, topic, HONEST).error == 0
        assert fetch(connection, topic, 4).batches == [(3, 0), (6, 0)]

    @pytest.mark.parametrize("offset", [-1, 4, 1 << 62])
    def test_an_offset_out_of_range_is_refused(self, connection: Connection, new_topic: NewTopic, offset: int) -> None:
        topic = new_topic()
        assert produce(connection, topic, HONEST).error == 0
        assert fetch(connection, topic, offset, wait_ms=8_000).error == OFFSET_OUT_OF_RANGE
        assert fetch(connection, topic, 3) == raw.Fetched(0, 3, b"")

    def test_a_missing_partition_is_named_as_such(
        self, connection: Connection, new_topic: NewTopic, fresh_name: Callable[[], str]
    ) -> None:
        assert fetch(connection, new_topic(), partition=9).error == UNKNOWN_TOPIC_OR_PARTITION
        assert fetch(connection, fresh_name()).error == UNKNOWN_TOPIC_OR_PARTITION

    def test_bytes_come_back_as_they_were_sent(self, connection: Connection, new_topic: NewTopic) -> None:
        """But for base offset and leader epoch, which the broker assigns."""
        topic = new_topic()
        assert produce(connection, topic, HONEST).error == 0
        stored = fetch(connection, topic).records
        assert stored[16:] == HONEST[16:]


class TestTopics:
    @pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "x" * 250], ids=lambda name: repr(name[:9]))
    def test_invalid_names_are_refused(self, connection: Connection, name: str) -> None:
        assert raw.create_topic(connection, name) == INVALID_TOPIC
        assert raw.metadata_errors(connection, name) == [INVALID_TOPIC]

    def test_asking_does_not_create(self, connection: Connection, fresh_name: Callable[[], str]) -> None:
        name = fresh_name()
        for _ in range(2):
            assert raw.metadata_errors(connection, name) == [UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.skipif("CONFORMANCE_BOOTSTRAP" in os.environ, reason="Kafka answers worse here, or not at all")
class TestBetterThanKafka:
    """Where Kafka 4.3 leaves the request unanswered, or answers UNKNOWN_SERVER_ERROR."""

    def test_null_records_are_refused(self, connection: Connection, new_topic: NewTopic) -> None:
        assert produce(connection, new_topic(), None).error == INVALID_RECORD

    def test_an_unknown_codec_is_refused(self, connection: Connection, new_topic: NewTopic) -> None:
        assert produce(connection, new_topic(), raw.batch(b"x", attributes=5)).error == UNSUPPORTED_COMPRESSION_TYPE
