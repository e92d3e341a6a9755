"""Requests that any client could send, with values at the edge of what their fields can hold.

A mutated frame is mostly refused by the codec. These are whole messages of every API and version: most fields name what
the node really has, so that a handler goes all its way, and some are the largest, the smallest, the longest, the same
again. Produced batches have right checksums, whatever they hold.
"""

from collections.abc import Callable
from random import Random
from struct import Struct as Packer
from typing import Any, Final
from uuid import UUID

from riverlog.records.batch import (
    CRC_POSITION,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    Compression,
    checksum,
    read_header,
)
from riverlog.records.compression import compress
from riverlog.records.record import BatchBuilder
from riverlog.records.varint import VARINTS
from riverlog.wire.apis import Api
from riverlog.wire.types import BOOLEAN, FLOAT64, NO_UUID, RECORDS, STRING, UUID_, Array, Field, Fixed, Struct, Variable
from riverlog.wire.types import fields_of as declared

TOPICS: Final = ("plain", "compacted", "checked", "stamped", "many")
"""Kinds of topics; the last has a hundred partitions."""
_INTERNAL: Final = ("__consumer_offsets", "__transaction_state", "__checkpoints", "__cluster_metadata")
_SPICED: Final = 0.06
"""How often a field has a value at the edge."""
_CRC: Final = Packer(">I")

_NAMES: Final = {
    "group_id": ("g", "h"),
    "group_ids": ("g", "h"),
    "groups": ("g", "h"),
    "groups_names": ("g", "h"),
    "transactional_id": ("t", "u"),
    "transactional_ids": ("t", "u"),
    "v3_and_below_transactional_id": ("t", "u"),
    "key": ("g", "t"),
    "coordinator_keys": ("g", "t"),
    "member_id": ("", "m"),
    "group_instance_id": ("i",),
    "protocol_type": ("consumer",),
    "protocol_name": ("range",),
    "mechanism": ("PLAIN", "SCRAM-SHA-256"),
    "resource_name": (*TOPICS, "1", "g", ""),
    "configuration_keys": ("retention.ms", "cleanup.policy", "no.such"),
    "value": ("delete", "compact", "1", "-1", ""),
    "incarnation": ("first",),
    "match": ("x",),
    "subscribed_topic_regex": (".*", "p(l|L)ain"),
    "path": ("/data",),
}
_NUMBERS: Final = {
    "partition": (0, 1),
    "partition_index": (0, 1),
    "partition_indexes": (0, 1),
    "partitions": (0, 1),
    "index": (0, 1),
    "acks": (-1, -1, 1, 0),
    "timeout_ms": (0, 100),
    "max_wait_ms": (0, 50),
    "session_timeout_ms": (10_000,),
    "rebalance_timeout_ms": (10_000,),
    "transaction_timeout_ms": (10_000,),
    "num_partitions": (1, 3, -1),
    "count": (2, 5),
    "replication_factor": (1, -1),
    "partition_max_bytes": (1 << 20,),
    "max_bytes": (1 << 20,),
    "resource_type": (2, 4, 8, 32, 16),
    "key_type": (0, 1),
    "producer_id": (0, 1, -1),
    "producer_epoch": (0, 1, -1),
    "fetch_offset": (0, 1),
    "offset": (0, 1, -1),
    "timestamp": (-1, -2, -3, 0),
    "leader_epoch": (0, -1),
    "current_leader_epoch": (-1, 0),
    "session_epoch": (-1, 0),
    "replica_id": (-1,),
    "member_epoch": (0, 1, -1),
    "generation_id": (-1, 1),
    "replicas": (1,),
    "broker_ids": (1,),
}
_LONG: Final = (
    "x" * 32_767,
    "9" * 5_000,
    "é" * 16_383,
    "\x00",
    "\n",
    "..",
    "/",
    "*",
    "💧" * 8_000,
    "a" * 249,
    "a" * 250,
)


class BoundaryRequests:
    """Makes requests about what a node has: its topics with their ids, and names that clients share."""

    def __init__(self, random: Random, topic_ids: dict[str, UUID]) -> None:
        self._random = random
        self._topic_ids = topic_ids
        self._counts: tuple[int, ...] = (0, 300, 3_000)

    def request_of(self, api: Api, version: int) -> Any:
        """Make one request of an API in a version."""
        return self._struct(api.request, version)

    def _struct(self, declaration: type[Any], version: int) -> Any:
        return declaration(
            **{
                field.name: self._field(declaration, field, version)
                for field in declared(declaration)
                if field.wire.is_in(version)
            }
        )

    def _field(self, owner: type[Any], field: Field, version: int) -> Any:
        random = self._random
        spiced = random.random() < _SPICED
        if field.wire.is_nullable_in(version) and random.random() < (0.5 if spiced else 0.1):
            return None
        if isinstance(field.type, Array):
            return self._array(owner, field, field.type, version, spiced=spiced)
        return self._value(owner, field.name, field.type, version, spiced=spiced)

    def _array(self, owner: type[Any], field: Field, array: Array, version: int, *, spiced: bool) -> list[Any]:
        count = self._random.choice(self._counts) if spiced else self._random.choice((1, 1, 2))
        if count <= 2:
            return [self._value(owner, field.name, array.element, version, spiced=False) for _ in range(count)]
        counts, self._counts = self._counts, (0, 1, 2)  # what stands in a long array has none itself
        distinct = self._random.choice((1, 20))  # often the same again
        few = [self._value(owner, field.name, array.element, version, spiced=False) for _ in range(distinct)]
        self._counts = counts
        return self._random.choices(few, k=count)

    def _value(self, owner: type[Any], name: str, type_: Any, version: int, *, spiced: bool) -> Any:
        random = self._random
        match type_:
            case Struct(declaration):
                return self._struct(declaration, version)
            case Variable() if type_ is STRING:
                return random.choice(_LONG) if spiced else self._text(owner, name)
            case Variable() if type_ is RECORDS:
                return memoryview(a_batch(random))
            case Variable():
                return random.randbytes(random.choice((0, 1, 70_000) if spiced else (0, 8)))
            case Fixed(code, size):
                if type_ is UUID_:
                    known = list(self._topic_ids.values())
                    return NO_UUID if spiced or not known else random.choice(known)
                if type_ is BOOLEAN:
                    return random.random() < 0.3
                if type_ is FLOAT64:
                    return random.choice((0.0, -1.0, 1e308, float("inf"), float("nan")))
                if not spiced:
                    return random.choice(_NUMBERS.get(name, (0, 1)))
                return _edge(8 * size, random, signed=code.islower())
        raise AssertionError(type_)

    def _text(self, owner: type[Any], name: str) -> str:
        random = self._random
        if name == "name" and "Config" in owner.__name__:
            return random.choice(("cleanup.policy", "retention.ms", "delete.retention.ms", "segment.bytes", "no.such"))
        if name in ("name", "topic", "topic_name", "topic_names", "subscribed_topic_names"):
            return random.choice(_INTERNAL if random.random() < 0.05 else (*TOPICS, "absent"))
        return random.choice(_NAMES.get(name, ("a", "b")))


def _edge(bits: int, random: Random, *, signed: bool) -> int:
    if not signed:
        return random.choice((0, 1, (1 << bits) - 1))
    top = 1 << bits - 1
    return random.choice((-top, -top + 1, -3, -2, -1, 0, 1, top - 2, top - 1))


def a_batch(random: Random) -> bytes:
    """Make a record batch whose checksum is right, and most else too; fields, records or codec may be at their edge."""
    make: Callable[[Random], bytearray] = random.choice(
        (_sound, _sound, _edged_header, _edged_records, _garbage, _bomb)
    )
    batch = make(random)
    _CRC.pack_into(batch, CRC_POSITION, checksum(batch))
    return bytes(batch)


def _sound(random: Random) -> bytearray:
    builder = BatchBuilder(random.choice(list(Compression)))
    for number in range(random.choice((1, 1, 3, 50))):
        key = None if random.random() < 0.2 else b"k%d" % random.randrange(5)
        value = None if random.random() < 0.2 else random.randbytes(random.choice((0, 10, 200)))
        builder.append(key, value, timestamp_ms=random.choice((0, 1_700_000_000_000)) + number)
    return builder.build()


def _edged_header(random: Random) -> bytearray:
    """Change a field or two behind the checksum to the edge of what it can hold."""
    batch = _sound(random)
    header = read_header(batch)
    bits = {
        "attributes": 16,
        "last_offset_delta": 32,
        "first_timestamp": 64,
        "max_timestamp": 64,
        "producer_id": 64,
        "producer_epoch": 16,
        "base_sequence": 32,
        "record_count": 32,
    }
    for name in random.sample(sorted(bits), random.choice((1, 1, 2))):
        header = header._replace(**{name: _edge(bits[name], random, signed=True)})
        if name == "record_count":
            header = header._replace(last_offset_delta=max(header.record_count - 1, -(2**31)))
    HEADER.pack_into(batch, 0, *header)
    return batch


def _edged_records(random: Random) -> bytearray:
    """Write records by hand, each number of which may be at its edge."""

    def number(usual: int) -> bytes:
        return VARINTS[_edge(64, random, signed=True) if random.random() < 0.2 else usual]

    records = bytearray()
    count = random.choice((1, 2, 5))
    for each in range(count):
        key, value = b"k%d" % each, b"value"
        body = b"\0" + number(each) + number(each) + number(len(key)) + key + number(len(value)) + value + number(0)
        records += number(len(body)) + body
    return _with_records(random, bytes(records), count)


def _garbage(random: Random) -> bytearray:
    return _with_records(random, random.randbytes(random.choice((10, 100, 2_000))), random.choice((1, 2)))


def _bomb(random: Random) -> bytearray:
    """Unfold to thousands of times what was sent."""
    codec = random.choice((Compression.GZIP, Compression.LZ4, Compression.ZSTD))
    plain = bytes(random.choice((100_000, 10_000_000)))
    return _with_records(random, bytes(compress(codec, plain)), random.choice((1, 1_000)), codec=codec)


def _with_records(random: Random, records: bytes, count: int, *, codec: Compression = Compression.NONE) -> bytearray:
    batch = BatchBuilder()
    batch.append(b"k", b"v", timestamp_ms=random.choice((0, 1_700_000_000_000, 2**63 - 1, -(2**63))))
    made = batch.build()
    del made[HEADER_BYTES:]
    made += records
    fields = read_header(made)._replace(
        length=len(made) - LOG_OVERHEAD, attributes=int(codec), record_count=count, last_offset_delta=count - 1
    )
    HEADER.pack_into(made, 0, *fields)
    return made
