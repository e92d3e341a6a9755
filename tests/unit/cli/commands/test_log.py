"""`log dump` over real files: what is there, and what is wrong with it."""

import json
from pathlib import Path
from struct import pack
from uuid import UUID

import pytest

from riverlog.cli.commands.log import files_at
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.controller.snapshot_files import encode_snapshot
from riverlog.log.log import Log
from riverlog.log.segments.flaws import Flaw
from riverlog.log.segments.quarantine import Quarantine
from riverlog.metadata.encoding import encode_record
from riverlog.metadata.records import TopicRecord
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.raft.control_records import LeaderChangeRecord, VoterId, encode_batch
from riverlog.raft.voters import VoterSet
from riverlog.records.batch import Compression, read_header
from riverlog.records.control import Marker, build_marker
from riverlog.records.record import BatchBuilder
from riverlog.world.disk import FileSystem

NAME = "00000000000000000000"
TOPIC_ID = TopicId(UUID(int=7))


def batch(base_offset: int, *values: bytes | None, compression: Compression = Compression.NONE) -> bytes:
    builder = BatchBuilder(compression)
    for value in values:
        builder.append(b"k", value, {"h": b"v"}, timestamp_ms=1_700_000_000_000 + base_offset)
    return bytes(builder.build(Offset(base_offset)))


def transactional(sequence: int) -> bytearray:
    builder = BatchBuilder(
        producer_id=ProducerId(7), producer_epoch=ProducerEpoch(0), base_sequence=sequence, transactional=True
    )
    builder.append(None, b"gone", timestamp_ms=0)
    return builder.build()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition's folder: two batches, and indexes that point at the second."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first, second = batch(0, b"anvil", b"\xff"), batch(2, None, compression=Compression.ZSTD)
    (folder / f"{NAME}.log").write_bytes(first + second)
    (folder / f"{NAME}.index").write_bytes(pack(">ii", 2, len(first)))
    (folder / f"{NAME}.timeindex").write_bytes(pack(">qi", 1_700_000_000_002, 2))
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    return folder


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_folder_is_its_segments_and_indexes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(folder), "-o", "json"]) == ExitCode.DONE
    found = rows(capsys)
    assert [row["kind"] for row in found] == ["batch", "batch", "index", "timeindex"]
    assert [row["problem"] for row in found] == [None] * 4
    assert (found[0]["base_offset"], found[0]["last_offset"], found[0]["codec"]) == (0, 1, "none")
    assert (found[1]["base_offset"], found[1]["records"], found[1]["codec"]) == (2, 1, "zstd")


def test_records_are_printed_where_they_are_wanted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(folder / f"{NAME}.log"), "--records", "-o", "json"]) == ExitCode.DONE
    records = [row for row in rows(capsys) if row["kind"] == "record"]
    assert [row["value"] for row in records] == ["anvil", {"base64": "/w=="}, None]
    assert records[0]["headers"] == [{"key": "h", "value": "v"}]


def test_the_text_is_a_line_for_each_entry(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(folder), "--records"]) == ExitCode.DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{folder}/{NAME}.log"
    assert lines[1].startswith("  batch 0..1 position=0 size=")
    assert lines[2] == '    0 2023-11-14T22:13:20.000Z key="k" value="anvil" headers "h":"v"'
    assert lines[5] == '    2 2023-11-14T22:13:20.002Z key="k" value=null headers "h":"v"'
    assert lines[6] == f"{folder}/{NAME}.index"
    assert lines[9] == "  time=2023-11-14T22:13:20.002Z offset=2"
    assert lines[10].startswith("3 files: 2 batches, 3 records, ")
    assert lines[10].endswith(" B, 2 index entries; nothing is wrong")


def test_a_flipped_bit_is_found_and_the_rest_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / f"{NAME}.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    assert main(["log", "dump", str(path), "--records", "--quiet"]) == ExitCode.FOUND
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(path)
    assert lines[1].startswith("  batch 0..1 ")
    assert lines[1].endswith("  WRONG: the checksum does not match")
    assert lines[2].startswith("1 file: 2 batches, 3 records, ")
    assert lines[2].endswith("; 1 problem found")


def test_an_index_that_points_nowhere_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"{NAME}.index").write_bytes(pack(">ii", 2, 7))
    (folder / f"{NAME}.timeindex").write_bytes(pack(">qi", 5, 2))
    assert main(["log", "dump", str(folder), "-q", "-o", "json"]) == ExitCode.FOUND
    assert [row["kind"] for row in rows(capsys)] == ["index", "timeindex"]


@pytest.mark.parametrize(("tail", "code"), [(bytes(100), ExitCode.DONE), (b"\x00" * 11 + b"torn", ExitCode.FOUND)])
def test_a_torn_tail_is_wrong_and_allocated_space_is_not(
    folder: Path, tail: bytes, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    with (folder / f"{NAME}.log").open("ab") as file:
        file.write(tail)
    assert main(["log", "dump", str(folder / f"{NAME}.log"), "-o", "json"]) == code
    last = rows(capsys)[-1]
    assert (last["kind"], last["size"]) == ("tail", len(tail))


def test_a_log_directory_is_all_its_partitions(folder: Path) -> None:
    assert files_at(folder.parent) == files_at(folder)
    assert [Path(file.path).name for file in files_at(folder)] == [
        f"{NAME}.log",
        f"{NAME}.index",
        f"{NAME}.timeindex",
    ]


def test_what_cannot_be_looked_into_is_one_sentence(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files_at(folder / "none")
    with pytest.raises(CommandError, match="is not named as a segment, index or snapshot"):
        files_at(folder / "leader-epoch-checkpoint")
    (folder / "empty").mkdir()
    with pytest.raises(CommandError, match="holds no segments"):
        files_at(folder / "empty")


def test_quarantined_ranges_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quarantine = Quarantine()
    quarantine.add(Offset(0), Flaw(7, 90, Offset(0), Offset(2), "the checksum does not match"))
    (folder / "quarantine").write_bytes(quarantine.encode())
    assert main(["log", "dump", str(folder), "-q"]) == ExitCode.FOUND
    out = capsys.readouterr().out
    assert f"offsets 0..1 in {folder}/{NAME}.log position=7 size=83  WRONG: the checksum does not match" in out
    assert "1 problem found" in out
    (folder / "quarantine").write_bytes(b"nonsense")
    assert main(["log", "dump", str(folder / "quarantine"), "-o", "json"]) == ExitCode.FOUND
    assert rows(capsys)[0]["problem"] == f"{folder}/quarantine is damaged"


def test_aborted_transactions_producers_and_markers_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log.open(FileSystem(), str(tmp_path), DEFAULT_TOPIC_CONFIG, recovery_point=Offset(0), clean=False, now_ms=0)
    abort = Marker(committed=False, coordinator_epoch=4)
    end = build_marker(abort, ProducerId(7), ProducerEpoch(0), timestamp_ms=0)
    for content, marker in ((transactional(0), None), (end, abort), (transactional(1), None)):
        each = memoryview(content)
        log.append(each, read_header(each), leader_epoch=LeaderEpoch(0), now_ms=0, marker=marker)
    log.close()
    assert main(["log", "dump", str(tmp_path), "--records"]) == ExitCode.DONE
    out = capsys.readouterr().out
    assert "    1 1970-01-01T00:00:00.000Z abort coordinator_epoch=4\n" in out
    assert "  producer=7 offsets 0..1 last_stable_offset=2\n" in out
    producer = "producer=7/0 coordinator_epoch=4 heard=1970-01-01T00:00:00.000Z"
    assert f"  {producer} open transaction from 2 sequences 0..0@0..0 1..1@2..2\n" in out
    (tmp_path / f"{NAME}.txnindex").write_bytes(b"torn")
    snapshot = tmp_path / "00000000000000000003.snapshot"
    snapshot.write_bytes(b"torn")
    for path in (tmp_path / f"{NAME}.txnindex", snapshot):
        assert main(["log", "dump", str(path)]) == ExitCode.FOUND
        assert "  nothing can be learnt from it  WRONG: " in capsys.readouterr().out


def test_metadata_are_shown_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    frame = {"epoch": LeaderEpoch(3), "timestamp_ms": 0}
    topic = TopicRecord(name="orders", topic_id=TOPIC_ID)
    begins = [LeaderChangeRecord(leader_id=1, voters=(VoterId(1),), granting_voters=(VoterId(1),))]
    facts = BatchBuilder()
    facts.append(None, encode_record(topic), timestamp_ms=0)
    facts.append(None, b"nonsense", timestamp_ms=0)
    log = encode_batch(begins, base_offset=Offset(5), **frame) + facts.build(Offset(6), LeaderEpoch(3))
    (folder / f"{5:020}.log").write_bytes(log)
    snapshot = encode_snapshot([topic], LeaderEpoch(3), 0, voters=VoterSet(), kraft_version=1)
    (folder / f"{5:020}-{3:010}.checkpoint").write_bytes(snapshot)
    assert main(["log", "dump", str(folder), "--records", "-o", "json"]) == ExitCode.FOUND
    records = [row for row in rows(capsys) if row["kind"] == "record"]
    assert [row["type"] for row in records] == [
        "SnapshotHeader",
        "KRaftVersion",
        "Voters",
        "Topic",
        "SnapshotFooter",
        "LeaderChange",
        "Topic",
        "unknown",
    ]
    assert records[3]["fields"] == records[6]["fields"] == {"name": "orders", "topic_id": str(TOPIC_ID)}
    assert [row["problem"] is None for row in records] == [True] * 7 + [False]
    main(["log", "dump", str(folder / f"{5:020}-{3:010}.checkpoint"), "--records"])
    assert f'3 1970-01-01T00:00:00.000Z Topic name="orders" topic_id="{TOPIC_ID}"\n' in capsys.readouterr().out
