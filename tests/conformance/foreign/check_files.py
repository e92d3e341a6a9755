"""Apache Kafka's DumpLogSegments reads the files that a node leaves behind, and finds nothing to complain about."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from riverlog.model.internal_topics import OFFSETS_TOPIC
from tests.conformance.adapters import CODECS, Deadline, Message, Protocol
from tests.conformance.adapters.foreign import JavaClient
from tests.conformance.behaviours import LONG_AGO_MS
from tests.conformance.foreign.kafka_tools import dump
from tests.support.node import Node

STATES: Final = ("stopped", "killed", "recovered")
SEGMENT_BYTES: Final = 50_000
RECORDS_PER_CODEC: Final = 300
DELETED_BELOW: Final = 280

PROTOCOLS: Final[tuple[Protocol, ...]] = ("classic", "consumer")
OFFSET_COMMIT: Final = "1"
KINDS_OF_RECORDS: Final = {OFFSET_COMMIT, "2", "3", "5"}
"""Offsets, classic groups, consumer groups and their members, by the numbers of their keys."""

RECORD: Final = re.compile(r"^\| offset: (\d+) .* payload: (.*)$")
METADATA: Final = re.compile(r"^\| payload: (\{.*\})$")
COMPLAINTS: Final = re.compile(
    r"mismatch|out of order|isvalid: false|corrupt|exception|could not|^  (?!-1 )\d+ is followed by", re.IGNORECASE
)
"""How the tool reports a difference between files or inside one. That the first offset of a segment follows -1, it
says of every segment but the first, Kafka's own too."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a node left in its folder, and the values it had acknowledged."""

    data: Path
    values: list[str]

    @property
    def partition(self) -> Path:
        return self.data / "orders-0"

    @property
    def metadata(self) -> Path:
        return self.data / "__cluster_metadata-0"


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Left]]:
    """Yield the folder of one node at three moments of its life."""
    home = tmp_path_factory.mktemp("files")
    states: dict[str, Left] = {}
    values: list[str] = []
    node = Node(home, settings={"log.index.interval.bytes": "1024", "log.retention.check.interval.ms": "200"})

    def keep(state: str) -> None:
        shutil.copytree(node.data, home / state)
        states[state] = Left(home / state, list(values))

    with node:
        client = JavaClient(node.bootstrap)
        configs = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1", "file.delete.delay.ms": "0"}
        client.create_topic("orders", configs=configs)
        for codec in CODECS:
            values += _write(client, codec, start=len(values))
        assert client.delete_records("orders", 0, DELETED_BELOW) == DELETED_BELOW
        for protocol in PROTOCOLS:
            member = client.join("orders", f"{protocol}-readers", protocol)
            deadline = Deadline()
            while not member.poll():
                assert deadline.left()
            member.commit()
            member.leave()
        client.create_topic("gone")
        client.delete_topic("gone")
        client.close()
        assert node.stop() == 0
        keep("stopped")

        client = JavaClient(node.start().bootstrap)
        values += _write(client, "zstd", start=len(values))
        client.close()
        node.kill()
        keep("killed")

        active = max((node.data / "orders-0").glob("*.log"))
        active.write_bytes(active.read_bytes() + active.read_bytes()[:100])  # as if killed in the middle of a write
        client = JavaClient(node.start().bootstrap)
        values += _write(client, "none", start=len(values))
        client.close()
        assert node.stop() == 0
        keep("recovered")
        yield states


@pytest.fixture(params=STATES)
def folder(request: pytest.FixtureRequest, left: dict[str, Left]) -> Left:
    return left[request.param]


def test_every_record_is_read_and_every_batch_is_valid(folder: Left) -> None:
    segments = _files(folder.partition, "log")
    assert len(segments) > 3
    ran = dump(segments, "--deep-iteration", "--print-data-log")
    assert complaints(ran.text) == []
    records = _records(ran.lines)
    first = min(records)
    assert first <= DELETED_BELOW
    assert list(records) == list(range(first, len(folder.values)))
    assert list(records.values()) == folder.values[first:]
    codecs = {value.partition(" ")[0] for value in records.values()}
    assert codecs == set(CODECS)
    assert set(re.findall(r" compresscodec: (\w+)", ran.text)) == codecs


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("check", ["", "--verify-index-only", "--index-sanity-check"])
def test_indexes_agree_with_the_log(folder: Left, kind: str, check: str) -> None:
    indexes = _files(folder.partition, kind)
    assert len(indexes) >= 3
    ran = dump(indexes, *filter(None, [check]))
    assert ran.code == 0, ran.text
    assert complaints(ran.text) == []
    if check == "":
        assert len(re.findall(r"^(?:offset|timestamp): ", ran.text, re.MULTILINE)) > 2 * len(indexes)
    if check == "--index-sanity-check":
        assert ran.text.count("passed sanity check") + ran.text.count("is empty") == len(indexes)


def test_groups_and_their_offsets_are_read(folder: Left) -> None:
    segments = [each for each in sorted(folder.data.glob("__consumer_offsets-*/*.log")) if each.stat().st_size]
    ran = dump(segments, "--offsets-decoder")
    assert complaints(ran.text) == []
    keys = [json.loads(each) for each in re.findall(r" key: (\{.*?\}) payload: ", ran.text)]
    commits = {key["data"]["group"] for key in keys if key["type"] == OFFSET_COMMIT}
    assert commits == {f"{protocol}-readers" for protocol in PROTOCOLS}
    assert {key["type"] for key in keys} >= KINDS_OF_RECORDS


def test_producer_states_are_read(folder: Left) -> None:
    snapshots = _files(folder.partition, "snapshot")
    ran = dump(snapshots)
    assert complaints(ran.text) == []
    last_offsets = [int(offset) for offset in re.findall(r" lastOffset: (\d+) ", ran.text)]
    assert max(last_offsets) < int(snapshots[-1].stem)


def test_the_metadata_log_is_read(folder: Left) -> None:
    logs = _files(folder.metadata, "log")
    ran = dump(logs, "--cluster-metadata-decoder", "--skip-record-metadata")
    assert complaints(ran.text) == []
    records = [json.loads(found[1]) for line in ran.lines if (found := METADATA.match(line))]
    kinds = {record["type"] for record in records}
    assert kinds >= {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "PARTITION_RECORD", "REMOVE_TOPIC_RECORD"}
    topics = [record["data"]["name"] for record in records if record["type"] == "TOPIC_RECORD"]
    assert topics == ["orders", OFFSETS_TOPIC, "gone"]
    configs = {
        record["data"]["name"]: record["data"]["value"]
        for record in records
        if record["type"] == "CONFIG_RECORD" and record["data"]["resourceName"] == "orders"
    }
    assert configs["segment.bytes"] == str(SEGMENT_BYTES)


@pytest.mark.parametrize("kind", ["log", "index", "timeindex"])
def test_damage_is_noticed(left: dict[str, Left], tmp_path: Path, kind: str) -> None:
    """The checks above can fail: one wrong byte and the tool complains."""
    copy = shutil.copytree(left["stopped"].partition, tmp_path / "orders-0")
    damaged = _files(copy, kind)[-2]
    content = bytearray(damaged.read_bytes())
    content[100 if kind == "log" else 7] ^= 1
    damaged.write_bytes(content)
    assert complaints(dump([damaged], "--deep-iteration").text) != []


def complaints(text: str) -> list[str]:
    """Return the lines in which the tool says that something is wrong; what records hold does not count."""
    return [line for line in text.splitlines() if not line.startswith("| ") and COMPLAINTS.search(line)]


def _write(client: JavaClient, codec: str, *, start: int) -> list[str]:
    """Write records that no codec makes much smaller, in many small batches, and give their values."""
    values = [f"{codec} {start + index} {_noise(start + index)}" for index in range(RECORDS_PER_CODEC)]
    messages = [
        Message(value.encode(), key=b"%d" % index, headers=(("h", b"v"),), timestamp_ms=LONG_AGO_MS + start + index)
        for index, value in enumerate(values)
    ]
    for position in range(0, len(messages), 10):
        client.produce("orders", messages[position : position + 10], compression=codec, idempotent=True)
    return values


def _noise(seed: int) -> str:
    return "".join(f"{(seed + 1) * 2654435761 * (step + 1) % 2**32:08x}" for step in range(20))


def _records(lines: list[str]) -> dict[int, str]:
    return {int(found[1]): found[2] for line in lines if (found := RECORD.match(line))}


def _files(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"*.{kind}"))
