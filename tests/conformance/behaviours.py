"""What every client must be able to do with the broker, written once.

A client's test module inherits `ReadsAndWrites` and, if the client can change topics, `Administers`, and names its
adapter. The tests know Kafka's error codes and nothing of any client.
"""

import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from tests.conformance import raw
from tests.conformance.adapters import (
    CODECS,
    Acks,
    Administrator,
    Client,
    Deadline,
    Joins,
    Member,
    Message,
    Placed,
    Protocol,
    Refused,
    Stored,
)
from tests.conformance.partitioning import java_partition, librdkafka_partition

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40

LONG_AGO_MS = 1_700_000_000_000

NewTopic = Callable[..., str]

ODD_RECORDS = (
    Message(b"plain"),
    Message(b"keyed", key=b"key"),
    Message(None, key=b"tombstone"),
    Message(b"", key=b"an empty value"),
    Message("größer".encode(), key="schlüssel".encode()),
    Message(b"with headers", key=b"h", headers=(("trace", b"1234"), ("empty", b""))),
    Message(b"repeated header", headers=(("again", b"1"), ("again", b"2"))),
)
"""Every kind of record that all clients can write."""


class JoinsGroups:
    """Members of a classic group share a topic, and take over from one another."""

    def test_members_of_a_classic_group_share_and_take_over(
        self, client: Client, new_topic: NewTopic, fresh_name: Callable[[], str]
    ) -> None:
        check_group(client, new_topic(partitions=4), fresh_name(), "classic")


class JoinsConsumerGroups(JoinsGroups):
    """The same of a group whose coordinator assigns (KIP-848)."""

    def test_members_of_a_consumer_group_share_and_take_over(
        self, client: Client, new_topic: NewTopic, fresh_name: Callable[[], str]
    ) -> None:
        check_group(client, new_topic(partitions=4), fresh_name(), "consumer")


def check_group(client: Client, topic: str, group: str, protocol: Protocol) -> None:
    """Make a second member come and go: nothing is left out, and nothing read twice while nobody comes or goes."""
    assert isinstance(client, Joins)
    written = 0
    read: set[Placed] = set()

    def shares_of(*members: Member) -> list[list[Placed]]:
        """Write ten more records to each partition, let the members read all that is left, and commit."""
        nonlocal written
        client.produce(topic, [Message(b"%d" % index, partition=index % 4) for index in range(40)])
        written += 40
        shares: list[list[Placed]] = [[] for _ in members]
        deadline = Deadline()
        while len(read) < written and deadline.left():
            for member, share in zip(members, shares, strict=True):
                share += member.poll()
                read.update(share)
        for member, share in zip(members, shares, strict=True):
            if share:
                member.commit()
        return shares

    first = client.join(topic, group, protocol)
    shares_of(first)
    second = client.join(topic, group, protocol)
    deadline = Deadline()
    while deadline.left():
        shares = shares_of(first, second)
        if [len(share) for share in shares] == [20, 20]:  # before that, the one may repeat what the other has read
            break
    assert sorted(len({place.partition for place in share}) for share in shares) == [2, 2]
    second.leave()
    shares_of(first)
    first.leave()
    third = client.join(topic, group, protocol)
    (all_of_it,) = shares_of(third)
    third.leave()
    assert len(all_of_it) == 40
    assert read == {Placed(partition, offset) for partition in range(4) for offset in range(written // 4)}


class ReadsAndWrites:
    adapter: ClassVar[type[Client]]

    @pytest.fixture(scope="class")
    @classmethod
    def client(cls, bootstrap: str) -> Iterator[Client]:
        client = cls.adapter(bootstrap)
        yield client
        client.close()

    @pytest.mark.parametrize("codec", CODECS)
    def test_records_come_back_as_written(
        self, client: Client, new_topic: NewTopic, codec: str, bootstrap: str
    ) -> None:
        topic = new_topic()
        messages = [*odd_records(client), *(Message(b"value %d " % index * 20) for index in range(200))]
        client.produce(topic, [_at(message, partition=0) for message in messages], compression=codec)
        records = client.consume(topic, 0, count=len(messages))
        assert [record.content for record in records] == [(m.key, m.value, m.headers) for m in messages]
        assert [record.offset for record in records] == list(range(len(messages)))
        assert codec in stored_codecs(bootstrap, topic)

    @pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
    def test_each_partition_keeps_the_order_of_writing(
        self, client: Client, new_topic: NewTopic, idempotent: bool
    ) -> None:
        topic = new_topic(partitions=3)
        messages = [Message(b"%d" % index, partition=index // 25 % 3) for index in range(300)]
        client.produce(topic, messages, idempotent=idempotent)
        for partition in range(3):
            records = client.consume(topic, partition, count=100)
            assert [record.value for record in records] == [m.value for m in messages if m.partition == partition]

    @pytest.mark.parametrize("acks", [0, 1, "all"])
    def test_acknowledged_offsets_are_true(self, client: Client, new_topic: NewTopic, acks: Acks) -> None:
        topic = new_topic()
        messages = [Message(b"first", partition=0), Message(b"second", partition=0)]
        placed = client.produce(topic, messages, acks=acks)
        records = client.consume(topic, 0, count=2)
        assert [record.value for record in records] == [b"first", b"second"]
        assert [place.offset for place in placed] == ([-1, -1] if acks == 0 else [0, 1])

    def test_unkeyed_records_are_stored_once(self, client: Client, new_topic: NewTopic) -> None:
        topic = new_topic(partitions=4)
        written = {b"%d" % index for index in range(100)}
        client.produce(topic, [Message(value) for value in sorted(written)])
        read = [record.value for partition in range(4) for record in read_all(client, topic, partition)]
        assert len(read) == 100
        assert set(read) == written

    def test_keys_are_placed_by_the_client_s_own_hash(self, client: Client, new_topic: NewTopic) -> None:
        expected = java_partition if client.hashes_like_java else librdkafka_partition
        self._check_placement(client, new_topic(partitions=7), expected, like_java=False)

    def test_keys_are_placed_as_java_places_them(self, client: Client, new_topic: NewTopic) -> None:
        self._check_placement(client, new_topic(partitions=7), java_partition, like_java=True)

    def _check_placement(
        self, client: Client, topic: str, expected: Callable[[bytes, int], int], *, like_java: bool
    ) -> None:
        keys = [b"k", b"key", b"user-%d" % 4711, "schlüssel".encode(), b"12345678", b"a longer key that spans words"]
        client.produce(topic, [Message(b"v", key=key) for key in keys], like_java=like_java)
        placed = {record.key: record.partition for index in range(7) for record in read_all(client, topic, index)}
        assert placed == {key: expected(key, 7) for key in keys}

    def test_reading_can_start_anywhere(self, client: Client, new_topic: NewTopic) -> None:
        topic = new_topic()
        client.produce(topic, [Message(b"%d" % index, partition=0) for index in range(50)])
        (record,) = client.consume(topic, 0, offset=37, count=1)
        assert (record.offset, record.value) == (37, b"37")

    def test_reading_beyond_the_end_is_refused(self, client: Client, new_topic: NewTopic) -> None:
        topic = new_topic()
        client.produce(topic, [Message(b"only", partition=0)])
        with pytest.raises(Refused) as refused:
            client.consume(topic, 0, offset=99, count=1)
        assert refused.value.code == OFFSET_OUT_OF_RANGE

    def test_records_are_found_by_time(self, client: Client, new_topic: NewTopic, bootstrap: str) -> None:
        topic = new_topic()
        with raw.Connection(bootstrap) as connection:
            for index in range(10):
                records = raw.batch(b"%d" % index, timestamp_ms=LONG_AGO_MS + 1000 * index)
                answer = connection.request(raw.PRODUCE, raw.PRODUCE_VERSION, raw.produce_body(topic, records))
                assert raw.produced(answer).error == 0
        assert client.offset_for_time(topic, 0, LONG_AGO_MS + 5000) == 5
        assert client.offset_for_time(topic, 0, LONG_AGO_MS + 5001) == 6
        assert client.offset_for_time(topic, 0, 1) == 0
        assert client.offset_for_time(topic, 0, LONG_AGO_MS + 9001) is None

    def test_times_are_kept(self, client: Client, new_topic: NewTopic) -> None:
        topic = new_topic()
        before_ms = int(time.time() * 1000)
        chosen_ms = LONG_AGO_MS if client.stamps else None
        client.produce(topic, [Message(b"v", partition=0, timestamp_ms=chosen_ms)])
        (record,) = client.consume(topic, 0, count=1)
        if chosen_ms is not None:
            assert record.timestamp_ms == chosen_ms
        else:
            assert before_ms <= record.timestamp_ms <= int(time.time() * 1000)

    def test_the_broker_s_clock_stamps_where_the_topic_says_so(self, client: Client, new_topic: NewTopic) -> None:
        topic = new_topic(message_timestamp_type="LogAppendTime")
        before_ms = int(time.time() * 1000)
        chosen_ms = LONG_AGO_MS if client.stamps else None
        client.produce(topic, [Message(b"v", partition=0, timestamp_ms=chosen_ms)])
        (record,) = client.consume(topic, 0, count=1)
        assert before_ms <= record.timestamp_ms <= int(time.time() * 1000)

    def test_bounds_follow_what_was_written(self, client: Client, new_topic: NewTopic) -> None:
        topic = new_topic()
        assert client.bounds(topic, 0) == (0, 0)
        client.produce(topic, [Message(b"v", partition=0)] * 3)
        assert client.bounds(topic, 0) == (0, 3)

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    def test_large_records_pass_up_to_the_limit(self, client: Client, new_topic: NewTopic, codec: str) -> None:
        topic = new_topic(max_message_bytes=str(2_000_000))
        value = bytes(range(32, 127)) * (1_999_000 // 95)
        client.produce(topic, [Message(value, partition=0)], compression=codec)
        (record,) = client.consume(topic, 0, count=1)
        assert record.value == value

    def test_records_above_the_limit_are_refused(self, client: Client, new_topic: NewTopic) -> None:
        topic = new_topic(max_message_bytes=str(100_000))
        with pytest.raises(Refused) as refused:
            client.produce(topic, [Message(b"x" * 100_001, partition=0)])
        assert refused.value.code == MESSAGE_TOO_LARGE
        client.produce(topic, [Message(b"small", partition=0)])
        assert client.bounds(topic, 0) == (0, 1)

    def test_partitions_are_counted(self, client: Client, new_topic: NewTopic) -> None:
        assert client.partition_count(new_topic(partitions=5)) == 5

    def test_writing_creates_a_missing_topic(self, client: Client, fresh_name: Callable[[], str]) -> None:
        topic = fresh_name()
        client.produce(topic, [Message(b"v", partition=0)])
        (record,) = client.consume(topic, 0, count=1)
        assert record.value == b"v"


class Administers(ReadsAndWrites):
    adapter: ClassVar[type[Administrator]]

    def test_topics_are_created_listed_and_deleted(self, client: Administrator, fresh_name: Callable[[], str]) -> None:
        topic = fresh_name()
        client.create_topic(topic, partitions=3, configs={"retention.ms": "3600000"})
        assert topic in client.topics()
        assert client.partition_count(topic) == 3
        assert client.configs(topic)["retention.ms"] == "3600000"
        client.delete_topic(topic)
        assert topic not in client.topics()

    def test_a_deleted_topic_comes_back_empty(self, client: Administrator, fresh_name: Callable[[], str]) -> None:
        topic = fresh_name()
        client.create_topic(topic)
        client.produce(topic, [Message(b"old", partition=0)])
        client.delete_topic(topic)
        client.create_topic(topic)
        client.produce(topic, [Message(b"new", partition=0)])
        assert [record.value for record in client.consume(topic, 0, count=1)] == [b"new"]
        assert client.bounds(topic, 0) == (0, 1)

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"partitions": 0}, INVALID_PARTITIONS),
            ({"replicas": 3}, INVALID_REPLICATION_FACTOR),
            ({"configs": {"retention.ms": "soon"}}, INVALID_CONFIG),
            ({"configs": {"no.such.setting": "1"}}, INVALID_CONFIG),
        ],
        ids=["no partitions", "more replicas than nodes", "bad value", "unknown setting"],
    )
    def test_impossible_topics_are_refused(
        self, client: Administrator, fresh_name: Callable[[], str], options: dict[str, object], code: int
    ) -> None:
        topic = fresh_name()
        with pytest.raises(Refused) as refused:
            client.create_topic(topic, **options)  # type: ignore[arg-type]
        assert refused.value.code == code
        assert topic not in client.topics()

    @pytest.mark.parametrize(
        "name", ["", ".", "..", "white space", "slash/ed", "x" * 250], ids=lambda name: repr(name[:12])
    )
    def test_invalid_names_are_refused(self, client: Administrator, name: str) -> None:
        with pytest.raises(Refused) as refused:
            client.create_topic(name)
        assert refused.value.code == INVALID_TOPIC

    def test_a_topic_is_created_once(self, client: Administrator, new_topic: NewTopic) -> None:
        with pytest.raises(Refused) as refused:
            client.create_topic(new_topic())
        assert refused.value.code == TOPIC_ALREADY_EXISTS

    @pytest.mark.parametrize(
        "change",
        [
            lambda client, topic: client.delete_topic(topic),
            lambda client, topic: client.create_partitions(topic, 2),
            lambda client, topic: client.alter_config(topic, "retention.ms", "1000"),
        ],
        ids=["delete", "add partitions", "change settings"],
    )
    def test_an_unknown_topic_is_named_as_such(
        self, client: Administrator, fresh_name: Callable[[], str], change: Callable[[Administrator, str], object]
    ) -> None:
        with pytest.raises(Refused) as refused:
            change(client, fresh_name())
        assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION

    def test_partitions_can_be_added_and_not_removed(self, client: Administrator, new_topic: NewTopic) -> None:
        topic = new_topic(partitions=2)
        client.create_partitions(topic, 4)
        assert client.partition_count(topic) == 4
        client.produce(topic, [Message(b"v", partition=3)])
        assert client.bounds(topic, 3) == (0, 1)
        with pytest.raises(Refused) as refused:
            client.create_partitions(topic, 3)
        assert refused.value.code == INVALID_PARTITIONS

    def test_records_below_an_offset_can_be_deleted(self, client: Administrator, new_topic: NewTopic) -> None:
        topic = new_topic()
        client.produce(topic, [Message(b"%d" % index, partition=0) for index in range(10)])
        assert client.delete_records(topic, 0, 4) == 4
        assert client.bounds(topic, 0) == (4, 10)
        with pytest.raises(Refused) as refused:
            client.consume(topic, 0, offset=0, count=1)
        assert refused.value.code == OFFSET_OUT_OF_RANGE
        (record,) = client.consume(topic, 0, offset=4, count=1)
        assert record.value == b"4"
        with pytest.raises(Refused) as refused:
            client.delete_records(topic, 0, 11)
        assert refused.value.code == OFFSET_OUT_OF_RANGE

    def test_settings_can_be_read_and_changed(self, client: Administrator, new_topic: NewTopic) -> None:
        topic = new_topic(retention_ms="1000000")
        settings = client.configs(topic)
        assert settings["retention.ms"] == "1000000"
        assert settings["cleanup.policy"] == "delete"
        assert settings["max.message.bytes"] == "1048588"
        client.alter_config(topic, "max.message.bytes", "5000")
        assert client.configs(topic)["max.message.bytes"] == "5000"
        with pytest.raises(Refused) as refused:
            client.produce(topic, [Message(b"x" * 6000, partition=0)])
        assert refused.value.code == MESSAGE_TOO_LARGE

    @pytest.mark.parametrize(("name", "value"), [("retention.ms", "soon"), ("no.such.setting", "1")])
    def test_impossible_settings_are_refused(
        self, client: Administrator, new_topic: NewTopic, name: str, value: str
    ) -> None:
        topic = new_topic()
        with pytest.raises(Refused) as refused:
            client.alter_config(topic, name, value)
        assert refused.value.code == INVALID_CONFIG


def stored_codecs(bootstrap: str, topic: str) -> set[str]:
    """Name the codecs of the batches as they lie in partition 0, which shows that a client did compress."""
    with raw.Connection(bootstrap) as connection:
        answer = connection.request(raw.FETCH, raw.FETCH_VERSION, raw.fetch_body(topic, 0))
        return {CODECS[codec] for _, codec in raw.fetched(answer).batches}


def odd_records(writer: Client) -> tuple[Message, ...]:
    """Return every kind of record that this client can write."""
    return (*ODD_RECORDS, Message(b"v", headers=(("null", None),))) if writer.writes_null_headers else ODD_RECORDS


def read_all(client: Client, topic: str, partition: int) -> list[Stored]:
    """Read a partition from its start to its end."""
    start, end = client.bounds(topic, partition)
    return client.consume(topic, partition, offset=start, count=end - start) if end > start else []


def _at(message: Message, *, partition: int) -> Message:
    return Message(message.value, message.key, message.headers, message.timestamp_ms, partition)
