"""The command line against a real node, as a person and as a script use it."""

import asyncio
import json
import logging
import os
import pty
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import confluent_kafka
import pytest

import riverlog
from tests.support.node import Node
from tests.support.shell import PROGRAM, SECONDS_MAX, Shell, environment, on_terminal, read_all
from tests.support.waiting import until

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("cli"), settings={"auto.create.topics.enable": "false"}) as node:
        yield node


@pytest.fixture
def shell(node: Node, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
    return Shell(capfdbinary)


@pytest.fixture
def topic(shell: Shell, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of two partitions for one test."""
    name = request.node.name.partition("[")[0].removeprefix("test_")
    shell.done("topics", "create", name, "--partitions", "2")
    yield name
    shell.done("topics", "delete", name)


def test_a_topic_lives_and_dies(shell: Shell) -> None:
    created = json.loads(
        shell.done("topics", "create", "--name", "life", "--partitions", "3", "--replication-factor", "1")
    )
    assert (created["topic"], created["partitions"], created["replication_factor"]) == ("life", 3, 1)
    assert "already exists" in shell.refused("topics", "create", "life", code=4)
    assert json.loads(shell.done("topics", "create", "life", "--if-not-exists"))["created"] is False
    assert {"name": "life", "partitions": 3, "replication_factor": 1, "internal": False} in [
        json.loads(line) for line in shell.done("topics", "list").splitlines()
    ]
    assert shell.done("topics", "describe", "--name", "life").decode() == (
        "Topic life: Partitions=3, ReplicationFactor=1\n"
        "Partition 0: Leader=1, ISR=[1], Start=0, End=0, Records=0, Size=0 B\n"
        "Partition 1: Leader=1, ISR=[1], Start=0, End=0, Records=0, Size=0 B\n"
        "Partition 2: Leader=1, ISR=[1], Start=0, End=0, Records=0, Size=0 B\n"
    )
    shell.done("topics", "alter", "--name", "life", "--partitions", "4", "--config", "retention.ms=3600000")
    described = shell.done("topics", "describe", "life").decode()
    assert described.startswith("Topic life: Partitions=4, ReplicationFactor=1\n")
    assert described.endswith("Start=0, End=0, Records=0, Size=0 B\nConfig retention.ms=3600000\n")
    shell.done("topics", "alter", "life", "--delete-config", "retention.ms")
    assert "Config" not in shell.done("topics", "describe", "life").decode()
    changes = ("--delete-config", "retentoin.ms", "--config", "retention.ms=1")
    sentence = shell.refused("topics", "alter", "life", *changes, code=4)
    assert "nothing was changed: topics have no setting retentoin.ms; did you mean 'retention.ms'?" in sentence
    assert "Config" not in shell.done("topics", "describe", "life").decode()
    assert "cannot have fewer" in shell.refused("topics", "alter", "life", "--partitions", "2", code=4)
    shell.done("topics", "delete", "--name", "life")
    assert "there is no topic life" in shell.refused("topics", "describe", "life", code=4)


def test_several_topics_are_made_and_those_that_cannot_be_are_named(shell: Shell) -> None:
    shell.done("topics", "create", "one")
    code, out, err = shell.run("topics", "create", "one", "two", "thr/ee", "-o", "table")
    assert (code, out.decode()) == (4, "Created topic two: Partitions=1, ReplicationFactor=1\n")
    assert err.decode().startswith("riverlog: 2 of 3 failed: the topic 'one' already exists, the topic's name 'thr/ee'")
    assert shell.done("topics", "create", "one", "two", "--if-not-exists", "-o", "table").decode() == (
        "Topic one exists already.\nTopic two exists already.\n"
    )
    shell.done("topics", "delete", "one", "two")


def test_offsets_are_found_and_old_records_deleted(shell: Shell, topic: str) -> None:
    shell.done("produce", topic, "-p", "0", given=b"0\n1\n2\n3\n")
    shell.done("produce", topic, "-p", "1", given=b"0\n")
    assert "Start=0, End=4, Records=4, Size=" in shell.done("topics", "describe", topic).decode()
    rows = [json.loads(line) for line in shell.done("topics", "offsets", topic).splitlines()]
    assert [(row["start"], row["end"]) for row in rows] == [(0, 4), (0, 1)]
    (row,) = [
        json.loads(line) for line in shell.done("topics", "offsets", topic, "--at", "-1h", "-p", "0").splitlines()
    ]
    assert (row["offset"], abs(row["timestamp_ms"] - time.time() * 1000) < 60_000) == (0, True)
    (row,) = [
        json.loads(line) for line in shell.done("topics", "offsets", topic, "--at", "now", "-p", "0").splitlines()
    ]
    assert (row["offset"], row["time"]) == (None, None)
    assert shell.done("topics", "trim", topic, "--before-offset", "3", "-o", "table").decode() == (
        f"Deleted 4 records of {topic}\n"
    )
    assert shell.done("consume", topic, "--from-beginning", "-e") == b"3\n"
    assert (
        "no records before that" in shell.done("topics", "trim", topic, "--before-time", "-1h", "-o", "table").decode()
    )
    assert [json.loads(line) for line in shell.done("topics", "trim", topic, "--all").splitlines()] == [
        {"topic": topic, "partition": 0, "start": 4, "deleted": 1}
    ]
    assert "partitions 0 to 1, not 5" in shell.refused("topics", "trim", topic, "--all", "-p", "5", code=4)


def test_settings_of_brokers_change_while_they_run(shell: Shell) -> None:
    changed = shell.done("cluster", "config", "set", "log.retention.ms=86400000", "-o", "table").decode()
    assert changed == "Changed all brokers: log.retention.ms=86400000\n"
    (row,) = [json.loads(line) for line in shell.done("cluster", "config", "get", "log.retention.ms").splitlines()]
    assert (row["value"], row["source"]) == ("86400000", "set for all brokers")
    shell.done("cluster", "config", "set", "log.retention.ms=1000", "--broker", "1")
    assert "set for this broker" in shell.done("cluster", "config", "get").decode()
    shell.done("cluster", "config", "set", "--delete", "log.retention.ms", "--broker", "1")
    shell.done("cluster", "config", "set", "--delete", "log.retention.ms")
    assert "log.retention.ms" not in shell.done("cluster", "config", "get").decode()
    assert "log.retention.ms" in shell.done("cluster", "config", "get", "--all").decode()
    assert "did you mean 'log.retention.ms'?" in shell.refused("cluster", "config", "get", "log.retenton.ms", code=4)
    assert "cannot change while a node runs" in shell.refused("cluster", "config", "set", "node.id=7", code=4)
    assert "there is no broker 9; the cluster has 1" in shell.refused(
        "cluster", "config", "get", "--broker", "9", code=4
    )


def test_a_shell_is_told_the_names_of_topics_and_groups(shell: Shell, topic: str) -> None:
    assert f"{topic}\t" in shell.done("__complete", "topics", "describe", topic[:9]).decode().splitlines()
    assert f"{topic}\t" in shell.done("__complete", "consume", topic).decode().splitlines()
    shell.done("groups", "reset-offsets", "completed", "--topic", topic, "--to-latest", "--execute")
    assert "completed\t" in shell.done("__complete", "lag", "--group", "").decode().splitlines()
    assert shell.done("__complete", "lag", "-b", "127.0.0.1:1", "--group", "") == b"", (
        "who does not answer has no names"
    )
    shell.done("groups", "delete", "completed")


def test_the_demo_tells_a_story() -> None:
    ran = subprocess.run([PROGRAM, "demo", "invoices"], capture_output=True, text=True, timeout=60, check=True)
    assert "read_committed finds 1000 invoices, one per order and in order" in ran.stdout


def test_a_bad_name_or_setting_is_refused_by_the_cluster(shell: Shell) -> None:
    assert "may hold only ASCII letters" in shell.refused("topics", "create", "a b", code=4)
    assert "retention.ms" in shell.refused("topics", "create", "x", "--config", "retension.ms=1", code=4)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back_as_they_went(shell: Shell, topic: str, codec: str) -> None:
    lines = b"".join(b"line %d \xff\x00\xc3\xa4\n" % number for number in range(1000))
    sent = json.loads(shell.done("produce", topic, "-p", "1", "-z", codec, given=lines))
    assert (sent["records"], sent["bytes"]) == (1000, len(lines) - 1000)
    assert shell.done("consume", topic, "--from-beginning", "-e") == lines


def test_keys_headers_and_nulls(shell: Shell, topic: str) -> None:
    shell.done("produce", topic, "-K", r"\t", "-H", "a=1", "-H", "b=", "-Z", "-p", "0", given=b"k\tv\nk\t\n\tv\n")
    assert shell.done("consume", topic, "--from-beginning", "-e", "-f", r"%p@%o %k=%s %K/%S %h\n") == (
        b"0@0 k=v 1/1 a=1,b=\n0@1 k= 1/-1 a=1,b=\n0@2 =v -1/1 a=1,b=\n"
    )
    records = [
        json.loads(line) for line in shell.done("consume", topic, "--from-beginning", "-e", "-o", "json").splitlines()
    ]
    assert [(record["key"], record["value"]) for record in records] == [("k", "v"), ("k", None), (None, "v")]
    assert records[0]["headers"] == [{"key": "a", "value": "1"}, {"key": "b", "value": ""}]


def test_records_are_copied_whole(shell: Shell, topic: str) -> None:
    shell.done("produce", topic, "-K", ":", "-H", "a=1", "-Z", "-p", "1", given=b"k:v\n\xff:\n:w\n")
    printed = shell.done("consume", topic, "--from-beginning", "-e", "-o", "json")
    shell.done("topics", "create", "copied")
    assert json.loads(shell.done("produce", "copied", "--json", given=printed))["records"] == 3
    copied = [
        json.loads(line)
        for line in shell.done("consume", "copied", "--from-beginning", "-e", "-o", "json").splitlines()
    ]
    expected = [json.loads(line) | {"topic": "copied", "partition": 0} for line in printed.splitlines()]
    assert copied == expected, "with their times, too"
    sentence = shell.refused("produce", "copied", "--json", given=b'{"value": 7}\n', code=1)
    assert 'line 1 of standard input is no record in JSON: value is text, null or {"base64": "…"}' in sentence
    shell.done("topics", "delete", "copied")


def test_the_same_key_goes_to_the_same_partition(shell: Shell, topic: str) -> None:
    for _ in range(3):
        shell.done("produce", topic, "-k", "same", given=b"x\n")
    partitions = shell.done("consume", topic, "--from-beginning", "-e", "-f", "%p")
    assert len(partitions) == 3
    assert len(set(partitions)) == 1


def test_files_as_lines_and_whole(shell: Shell, topic: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"1\n2\n")
    second.write_bytes(b"3\n4")
    files = ["--file", str(first), "--file", str(second)]
    assert json.loads(shell.done("produce", topic, "-p", "0", *files))["records"] == 4
    assert json.loads(shell.done("produce", topic, "-p", "0", "--whole", *files))["records"] == 2
    assert shell.done("consume", topic, "--from-beginning", "-e", "-f", "[%s]") == b"[1][2][3][4][1\n2\n][3\n4]"


def test_reading_starts_anywhere(shell: Shell, topic: str) -> None:
    shell.done("produce", topic, "-p", "0", given=b"0\n1\n2\n")
    between = str(int(time.time() * 1000) + 1)
    while int(time.time() * 1000) <= int(between):
        pass
    shell.done("produce", topic, "-p", "0", given=b"3\n4\n")
    for start, expected in (
        (("--offset", "3"), b"3\n4\n"),
        (("--offset", "-1"), b"4\n"),
        (("--offset", "beginning", "-c", "2"), b"0\n1\n"),
        (("--offset", "end"), b""),
        (("--from-time", between), b"3\n4\n"),
        (("--from-time", "-1h"), b"0\n1\n2\n3\n4\n"),
        (("--from-time", "now"), b""),
    ):
        assert shell.done("consume", topic, "-p", "0", "-e", *start) == expected, start
    assert "begins at 0 and ends before 5" in shell.refused("consume", topic, "-p", "0", "--offset", "6", code=4)
    assert "partitions 0 to 1, not 2" in shell.refused("consume", topic, "-p", "2", code=4)


def test_several_topics_and_those_that_match_a_pattern(shell: Shell) -> None:
    for name in ("pets-cats", "pets-dogs", "pets"):
        shell.done("topics", "create", name)
        shell.done("produce", name, given=f"{name}\n".encode())
    lines = shell.done("consume", "pets", "pets-dogs", "--from-beginning", "-e", "-f", r"%t=%s\n").splitlines()
    assert sorted(lines) == [b"pets-dogs=pets-dogs", b"pets=pets"]
    lines = shell.done("consume", "--pattern", "pets-.*", "--from-beginning", "-e").splitlines()
    assert sorted(lines) == [b"pets-cats", b"pets-dogs"]
    both = shell.done("consume", "--pattern", "pets-.*", "-g", "vets", "--from-beginning", "-e").splitlines()
    assert sorted(both) == [b"pets-cats", b"pets-dogs"]
    assert "no topic matches 'pet' as a whole" in shell.refused("consume", "--pattern", "pet", "-e", code=4)
    assert "there is no topic pats; did you mean 'pets'?" in shell.refused("consume", "pets", "pats", "-e", code=4)
    shell.done("topics", "delete", "pets-cats", "pets-dogs", "pets")


def test_reading_stops_before_an_offset_or_a_time(shell: Shell, topic: str) -> None:
    shell.done("produce", topic, "-p", "0", given=b"0\n1\n2\n")
    between = str(int(time.time() * 1000) + 1)
    while int(time.time() * 1000) <= int(between):
        pass
    shell.done("produce", topic, "-p", "0", given=b"3\n4\n")
    for stop, expected in (
        (("--to-offset", "2"), b"0\n1\n"),
        (("--to-offset", "99"), b"0\n1\n2\n3\n4\n"),
        (("--to-offset", "0"), b""),
        (("--to-time", between), b"0\n1\n2\n"),
        (("--to-time", "now"), b"0\n1\n2\n3\n4\n"),
        (("--offset", "3", "-p", "0", "--to-offset", "4"), b"3\n"),
    ):
        start = () if "--offset" in stop else ("--from-beginning",)
        assert shell.done("consume", topic, *start, *stop) == expected, stop


def test_a_member_that_stops_at_the_end_commits_what_it_has_printed(shell: Shell, topic: str) -> None:
    shell.done("produce", topic, "-p", "0", given=b"0\n1\n2\n")
    assert shell.done("consume", topic, "-g", "ending", "--from-beginning", "-c", "2") == b"0\n1\n"
    assert shell.done("consume", topic, "-g", "ending", "-e") == b"2\n"
    assert shell.done("consume", topic, "-g", "ending", "-e") == b""
    rows = [json.loads(line) for line in shell.done("lag", "ending").splitlines()]
    assert [(row["committed"], row["lag"]) for row in rows if row["partition"] == 0] == [(3, 0)]


def test_what_is_taken_back_is_left_out_unless_it_is_asked_for(shell: Shell, node: Node, topic: str) -> None:
    async def write() -> None:
        async with riverlog.Producer(node.bootstrap, transactional_id="t") as producer:
            async with producer.transaction():
                producer.send_soon(topic, b"kept", partition=0)
            with suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send(topic, b"taken back", partition=0)
                    raise ZeroDivisionError

    asyncio.run(write())
    assert shell.done("consume", topic, "--from-beginning", "-e") == b"kept\n"
    everything = shell.done("consume", topic, "--from-beginning", "-e", "--isolation", "read_uncommitted")
    assert everything == b"kept\ntaken back\n"
    assert shell.done("consume", topic, "--from-beginning", "-e", "-g", "careful") == b"kept\n"


def test_new_records_are_printed_as_they_come_until_interrupted(shell: Shell, node: Node, topic: str) -> None:
    reader = subprocess.Popen(
        [PROGRAM, "consume", topic, "--offset", "0", "-p", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(node),
    )
    assert reader.stdout is not None
    shell.done("produce", topic, "-p", "0", given=b"first\n")
    assert reader.stdout.readline() == b"first\n"
    shell.done("produce", topic, "-p", "0", given=b"second\n")
    assert reader.stdout.readline() == b"second\n"
    reader.send_signal(signal.SIGINT)
    assert reader.communicate(timeout=SECONDS_MAX) == (b"", b"")
    assert reader.returncode == 130


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_member_that_is_stopped_leaves_its_group(
    shell: Shell, node: Node, topic: str, signal_number: signal.Signals
) -> None:
    group = f"readers-{signal_number.name}"
    shell.done("produce", topic, "-p", "0", given=b"one\n")
    reader = subprocess.Popen(
        [PROGRAM, "consume", topic, "--group", group, "--from-beginning"], stdout=subprocess.PIPE, env=environment(node)
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"one\n"
    reader.send_signal(signal_number)
    assert reader.communicate(timeout=SECONDS_MAX) == (b"", None)
    assert reader.returncode == 130
    (found,) = json.loads(f"[{shell.done('groups', 'describe', group, '-o', 'json').decode()}]")
    assert (found["state"], found["members"]) == ("Empty", [])
    (row,) = [each for each in found["partitions"] if each["partition"] == 0]
    assert row["committed"] == 1


def test_a_reader_that_has_seen_enough_is_no_failure(shell: Shell, node: Node, topic: str) -> None:
    shell.done("produce", topic, given=(b"x" * 99 + b"\n") * 5_000)  # more than fits into a pipe
    pipeline = f"{PROGRAM} consume {topic} --from-beginning -e | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", pipeline], capture_output=True, env=environment(node), timeout=SECONDS_MAX, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"x" * 99 + b"\n", b"")


def test_a_rate_is_kept(shell: Shell, topic: str) -> None:
    sent = json.loads(shell.done("produce", topic, "--rate", "50", given=b"x\n" * 26))
    assert 0.5 <= sent["seconds"] < 5


def test_what_cannot_be_sent_is_said_and_counts_as_failure(shell: Shell, topic: str) -> None:
    code, _, err = shell.run("produce", topic, "-K", ":", "-p", "0", given=b"a:1\nb\n")
    summary, sentence = err.decode().splitlines()
    assert (code, summary) == (1, f"riverlog: 1 record sent to {topic}: 1 acknowledged")
    assert sentence.endswith(
        "line 2 of standard input has no ':' between key and value; the 1 record before it was sent"
    )
    assert "needs 3000" in shell.refused("produce", topic, given=b"x" * 3_000_000, code=4)
    assert "partitions 0 to 1, not 7" in shell.refused("produce", topic, "-p", "7", given=b"x\n", code=4)
    assert "there is no topic none" in shell.refused("consume", "none", code=4)


def test_a_benchmark_measures_all_parts_and_leaves_nothing_behind(shell: Shell) -> None:
    before = shell.done("topics", "list")
    options = ["--records", "3000", "--producers", "2", "--consumers", "2", "--partitions", "3", "--rate", "3000"]
    rows = [json.loads(line) for line in shell.done("bench", *options, "-z", "lz4").splitlines()]
    assert [(row["part"], row["records"], row["bytes"]) for row in rows] == [
        ("produce", 3_000, 300_000),
        ("consume", 3_000, 300_000),
        ("end-to-end", 3_000, 300_000),
    ]
    assert all(row["client_cpu_seconds"] > 0 for row in rows)
    for row in (rows[0], rows[2]):
        assert row["seconds"] >= 0.99, "the rate is kept"
        latencies = list(row["latency_ms"].values())
        assert latencies == sorted(latencies)
        assert latencies[0] > 0
    assert shell.done("topics", "list") == before


def test_a_benchmark_uses_a_topic_that_is_there_and_keeps_it(shell: Shell, topic: str) -> None:
    shell.done("produce", topic, given=b"x\n" * 40)
    (row,) = [json.loads(line) for line in shell.done("bench", "--topic", topic, "--part", "consume").splitlines()]
    assert (row["topic"], row["records"], row["bytes"]) == (topic, 40, 40)
    table = shell.done("bench", "--topic", topic, "--part", "produce", "--seconds", "0.2", "-o", "table").decode()
    assert [line.split()[0] for line in table.splitlines()[2:6]] == ["records", "records/s", "MB/s", "p50"]
    assert topic in shell.done("topics", "list").decode()


def test_a_benchmark_that_cannot_go_on_says_why_and_leaves_nothing_behind(shell: Shell) -> None:
    before = shell.done("topics", "list")
    assert "there is no topic none" in shell.refused("bench", "--topic", "none", code=4)
    assert "need as many brokers" in shell.refused("bench", "--replication-factor", "3", code=4)
    assert "needs 3000" in shell.refused("bench", "--record-size", "3000000", code=4)
    assert "has no records to consume" in shell.refused("bench", "--part", "consume", code=4)
    assert shell.done("topics", "list") == before


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_benchmark_that_is_interrupted_leaves_nothing_behind(
    shell: Shell, node: Node, signal_number: signal.Signals
) -> None:
    before = shell.done("topics", "list")
    running = subprocess.Popen([PROGRAM, "bench", "--seconds", "60"], stdout=subprocess.PIPE, env=environment(node))
    until(
        lambda: any(path.stat().st_size for path in node.data.glob("riverlog-bench-????????-0/*.log")),
        lambda: "nothing is written",
    )
    running.send_signal(signal_number)
    assert running.communicate(timeout=SECONDS_MAX) == (b"", None)
    assert running.returncode == 130
    assert shell.done("topics", "list") == before


def test_a_cluster_that_is_not_there(shell: Shell) -> None:
    for arguments in (["topics", "list"], ["produce", "t"], ["consume", "t"], ["bench"], ["cluster", "status"]):
        sentence = shell.refused(*arguments, "-b", "127.0.0.1:1", code=3)
        assert "127.0.0.1:1" in sentence
        assert "riverlog doctor" in sentence


def test_cluster_status(shell: Shell, node: Node, topic: str) -> None:
    shell.done("produce", topic, given=b"x\n")
    status = json.loads(shell.done("cluster", "status"))
    assert status["controller"] == 1
    assert status["brokers"] == [{"id": 1, "address": node.bootstrap, "rack": None, "fenced": False}]
    assert status["partitions"] >= 2
    assert (status["offline_partitions"], status["under_replicated_partitions"]) == (0, 0)
    (directory,) = status["log_dirs"]
    assert directory["path"] == str(node.data)
    assert directory["bytes"] > 0
    text = shell.done("cluster", "status", "-o", "table").decode()
    assert text.startswith(f"Cluster {status['cluster_id']}; controller is broker 1\n")
    assert node.bootstrap in text
    assert shell.done("cluster", "under-replicated") == b""
    assert shell.done("cluster", "under-replicated", "-o", "table").startswith(b"Every partition has a leader")


def test_cluster_metadata(shell: Shell, node: Node, topic: str) -> None:
    shell.done("topics", "alter", "--name", topic, "--config", "retention.ms=86400000")
    document = json.loads(shell.done("cluster", "metadata", "-o", "json"))
    assert document["brokers"] == [{"id": 1, "address": node.bootstrap, "rack": None}]
    (mine,) = (each for each in document["topics"] if each["topic"] == topic)
    assert mine["settings"]["retention.ms"] == "86400000"
    assert mine["partitions"][0] == {"partition": 0, "leader": 1, "leader_epoch": 0, "replicas": [1], "isr": [1]}
    text = shell.done("cluster", "metadata", "-o", "table").decode()
    assert text.startswith(f"Cluster {document['cluster_id']}: ")
    assert mine["topic_id"] in text


def test_the_doctor_finds_nothing_wrong_with_a_good_node(shell: Shell) -> None:
    report = shell.done("doctor").decode()
    assert "WRONG" not in report
    assert report.endswith("\nNothing is wrong.\n")


def test_the_doctor_finds_what_is_wrong(shell: Shell) -> None:
    code, out, _ = shell.run("doctor", "-b", "127.0.0.1:1,nowhere.invalid:9092", "-o", "json")
    assert code == 5
    wrong = [step for step in map(json.loads, out.splitlines()) if not step["ok"]]
    assert [(step["subject"], step["step"]) for step in wrong] == [
        ("bootstrap 127.0.0.1:1", "connect"),
        ("bootstrap nowhere.invalid:9092", "resolve"),
    ]
    assert all(step["advice"] for step in wrong)


def test_the_doctor_finds_an_advertised_address_that_nobody_knows(shell: Shell, tmp_path: Path) -> None:
    hidden = Node(tmp_path, settings={"advertised.listeners": "PLAINTEXT://broker.invalid:9092"})
    with socket.create_server(("127.0.0.1", 0)) as free:
        hidden.port = free.getsockname()[1]
    bootstrap = f"127.0.0.1:{hidden.port}"
    with hidden:
        code, out, _ = shell.run("doctor", "-b", bootstrap)
    assert code == 5
    report = out.decode()
    assert "broker 1 at broker.invalid:9092\n  WRONG  resolve" in report
    assert f"The broker at {bootstrap} tells clients to connect to 'broker.invalid'" in report
    assert "set advertised.listeners" in report


def test_the_files_of_a_running_node_are_sound(shell: Shell, node: Node, topic: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(5_000))
    shell.done("produce", topic, "-p", "0", "-X", "batch.size=1000", given=lines)
    rows = [
        json.loads(line) for line in shell.done("log", "dump", str(node.data / f"{topic}-0"), "-o", "json").splitlines()
    ]
    assert sum(row["records"] for row in rows if row["kind"] == "batch") == 5_000


def test_on_a_terminal_rows_are_a_table(node: Node, topic: str) -> None:
    code, screen = on_terminal(node, "topics", "list")
    assert code == 0
    styles = set(re.findall(r"\x1b\[([0-9;]*)m", screen))
    assert styles <= {"0", "1"}, "NO_COLOR forbids all but bold"
    screen = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert screen.splitlines()[0].split() == ["topic", "partitions", "replication"]
    assert any(line.split() == [topic, "2", "1"] for line in screen.splitlines())


def test_on_a_terminal_deleting_asks(shell: Shell, node: Node, topic: str) -> None:
    code, screen = on_terminal(node, "topics", "delete", topic, typed=b"n\n")
    assert code == 1
    assert f"Delete {topic} with all records? [y/N]" in screen
    assert "riverlog: nothing was deleted" in screen
    assert topic in shell.done("topics", "list").decode()
    shell.done("topics", "create", "doomed")
    code, screen = on_terminal(node, "topics", "delete", "doomed", typed=b"y\n")
    assert code == 0
    assert "Deleted 1 topic: doomed" in screen


def test_on_a_terminal_control_characters_are_shown(shell: Shell, node: Node, topic: str) -> None:
    shell.done("produce", topic, given=b"\x1b]0;title\x07\n")
    assert on_terminal(node, "consume", topic, "--from-beginning", "-e") == (0, "\\x1b]0;title\\x07\n")


def test_on_a_terminal_producing_shows_progress_and_a_summary(node: Node, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes((b"x" * 99 + b"\n") * 20_000)
    code, screen = on_terminal(node, "produce", topic, "--file", str(path))
    assert code == 0
    assert "━" in screen
    assert re.search(r"20,000 records \(\S+ [KM]iB\) sent to .* in \S+ s, [\d,]+/s\n", screen)


def test_on_a_terminal_a_benchmark_shows_progress_and_a_table(node: Node, topic: str) -> None:
    options = ["--part", "produce", "--records", "300", "--rate", "500", "-o", "table"]
    code, screen = on_terminal(node, "bench", "--topic", topic, *options)
    assert code == 0
    assert "produce: 300 records of 300, 29.3 KiB" in screen
    assert re.search(r"^records +300 *$", screen, re.MULTILINE)


def session_output(node: Node, line: str) -> str:
    """Run a line of a shell that stands on a terminal of no talents; give what was printed, errors at the end."""
    ours, theirs = pty.openpty()
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**environment(node), "TERM": "dumb", "PATH": path},
        cwd=node.folder,
    )
    os.close(theirs)
    screen = read_all(ours)
    assert process.stderr is not None
    said = screen + process.stderr.read().decode()
    process.stderr.close()
    process.wait(SECONDS_MAX)
    return "".join(f"{line.rstrip()}\n" for line in said.splitlines())


VARYING = (
    (r"(?:ok |\?  )    clock .*", "CLOCK"),
    (r"committed up to offset \d+", "COMMITTED"),
    (r"\d+ APIs", "APIS"),
    (r"Connect call failed \(.*\)|Connection refused", "REFUSED"),
    (r"127\.0\.0\.1:\d{4,5}", "ADDRESS"),
    (r"(?:/[\w.-]+)+/(?:riverlog-)?data\b", "FOLDER"),
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID"),
    (r"\b[\w-]{22}\b", "ID"),
    (r"\b1[0-9]{12}\b", "TIMESTAMP"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"producer=\S+ sequence=\d+ crc=[0-9a-f]+", "PRODUCER AND CRC"),
    (r"[\d.]+ (?:ms|[KMGT]?i?B)\b", "AMOUNT"),
    (r"in [\d.]+ s, [\d,]+/s", "IN TIME"),
    (r"riverlog \d.*", "VERSION"),
    (r"─+", "──"),
    (r"  +", "  "),
    (r"AMOUNT  AMOUNT of AMOUNT", "AMOUNT"),
)
"""What differs from one run to the next, and from one machine to the next."""


def plain(text: str) -> str:
    """Put names in place of what varies."""
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return text


def test_the_sessions_of_the_document_are_true() -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    # A short folder, because a terminal of no talents is narrow and would break a long one in a table.
    with tempfile.TemporaryDirectory() as folder, Node(Path(folder)) as fresh:
        for line, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), re.MULTILINE):
            assert plain(session_output(fresh, line)) == plain(expected), f"{line}\n{fresh.log_tail()}"


def test_a_group_goes_on_where_it_has_committed(node: Node, shell: Shell) -> None:
    shell.done("topics", "create", "shared", "--partitions", "2")
    shell.done("produce", "shared", "--partition", "0", given=b"a\nb\nc\n")
    read = ("consume", "shared", "--group", "readers", "--from-beginning", "-X", "session.timeout.ms=6000")
    assert shell.done(*read, "--max-messages", "2") == b"a\nb\n"
    assert shell.done(*read, "--max-messages", "1") == b"c\n"
    described = shell.done("groups", "describe", "readers").decode()
    assert described.startswith("Group readers: State=Empty, Type=classic")
    code, _, said = shell.run("consume", "shared", "--group", "readers", "--offset", "1")
    assert (code, b"a group decides" in said) == (2, True)


def undecided(bootstrap: str, value: bytes) -> confluent_kafka.Producer:
    """Leave a transaction open."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": "bookkeeper"}
    producer = confluent_kafka.Producer(settings, logger=logging.getLogger("bookkeeper"))
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("ledger", value, partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    return producer


def test_transactions_are_looked_at_and_aborted(node: Node, shell: Shell) -> None:
    shell.done("topics", "create", "ledger", "--partitions", "1")
    producer = undecided(node.bootstrap, b"undecided")
    listed = [json.loads(line) for line in shell.done("transactions", "list", "--state", "Ongoing").splitlines()]
    assert [row["transactional_id"] for row in listed] == ["bookkeeper"]
    described = shell.done("transactions", "describe", "bookkeeper").decode()
    assert described.startswith("Transactional id bookkeeper: State=Ongoing")
    assert described.rstrip().endswith("in ledger-0")
    assert shell.done("transactions", "list", "--hung", "--older-than", "0s") == b""
    committed = ("consume", "ledger", "--from-beginning", "--exit", "-X", "isolation.level=read_committed")
    assert shell.done(*committed) == b""
    aborted_text = shell.done("transactions", "abort", "bookkeeper", "-o", "table")
    assert aborted_text == b"Aborted what bookkeeper had open in ledger-0\n"
    sentence = shell.refused("transactions", "abort", "bookkeeper", "--yes", code=4)
    assert "no transaction that could be aborted: its state is Empty; nothing was done" in sentence
    assert json.loads(shell.done("transactions", "describe", "bookkeeper", "-o", "json"))["partitions"] == []
    with pytest.raises(confluent_kafka.KafkaException, match="FENCED"):
        producer.commit_transaction(SECONDS_MAX)

    undecided(node.bootstrap, b"undecided too")
    (row,) = [json.loads(line) for line in shell.done("transactions", "list", "--pattern", "book.*").splitlines()]
    place = ("--topic", "ledger", "--partition", "0", "--producer-id", str(row["producer_id"]))
    aborted = json.loads(shell.done("transactions", "abort", *place))
    assert (aborted["topic"], aborted["aborted"]) == ("ledger", True)
    assert "has no transaction open in ledger-0" in shell.refused("transactions", "abort", *place, code=4)
    assert shell.done(*committed) == b""
