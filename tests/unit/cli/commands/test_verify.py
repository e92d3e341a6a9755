"""`verify`: what is refused beforehand, and how a verdict is told. The load is tried in the tests of its room."""

import pytest

from riverlog.cli.commands.verify import EXAMPLES_MAX, row_of, show
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.verify.checker import judge
from riverlog.verify.history import History
from riverlog.verify.load.run import Report


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-X", "acks=1"], "verify holds a cluster to what acks=all and idempotence promise"),
        (["-X", "enable.idempotence=false"], "verify holds a cluster to what acks=all and idempotence promise"),
        (["-X", "isolation.level=read_committed"], "verify chooses groups, commits and isolation by itself"),
        (["-X", "linger.ms=soon"], "linger.ms takes a number, not 'soon'"),
        (["-b", "127.0.0.1:x"], "'127.0.0.1:x' "),
    ],
)
def test_mistakes_are_one_sentence(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *options]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"riverlog: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--seconds", "0"],
        ["--topics", "0"],
        ["--partitions", "0"],
        ["--replication-factor", "0"],
        ["--producers", "0"],
        ["--consumers", "-1"],
        ["--group", "none"],
        ["--rate", "0"],
        ["--seed", "-1"],
    ],
)
def test_values_out_of_range_name_the_option(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *options]) == ExitCode.USAGE
    assert options[0] in capsys.readouterr().err


def report(lost: int, *unfinished: str) -> Report:
    """Report of records that were acknowledged, of which some are lost."""
    history = History()
    partition = TopicPartition("orders", 0)
    for offset in range(1_200):
        history.acknowledged(history.write("p", partition, f"v{offset}"), Offset(offset))
    reading = history.read_from("r", partition, Offset(0))
    history.saw(reading, [(Offset(offset), f"v{offset}") for offset in range(lost, 1_200)])
    return Report(judge(history), {"NETWORK_EXCEPTION": 3}, unfinished)


def test_a_clean_verdict_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    row = row_of(report(0), seed=7)
    assert (row["clean"], row["seed"], row["written"], row["acknowledged"]) == (True, 7, 1_200, 1_200)
    assert (row["anomalies"], row["examples"], row["errors"]) == ({}, {}, {"NETWORK_EXCEPTION": 3})
    show(row)
    lines = capsys.readouterr().out.splitlines()
    assert "acknowledged   1,200   must be there" in [line.rstrip() for line in lines]
    assert "errors             3   NETWORK_EXCEPTION 3" in [line.rstrip() for line in lines]
    assert lines[-1] == "No anomaly: all that was promised is there, once and in order, and for everybody."


def test_anomalies_are_counted_with_a_few_examples(capsys: pytest.CaptureFixture[str]) -> None:
    row = row_of(report(20), seed=7)
    assert row["clean"] is False
    assert row["anomalies"] == {"lost": 20}
    assert len(row["examples"]["lost"]) == EXAMPLES_MAX
    show(row)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-EXAMPLES_MAX - 2 : -EXAMPLES_MAX] == [
        "lost: 20",
        "  v0 was acknowledged at orders-0@0; r did not find it there",
    ]
    assert lines[-1] == "20 anomalies found; the load had --seed 7."


def test_what_could_not_be_looked_at_is_not_clean(capsys: pytest.CaptureFixture[str]) -> None:
    row = row_of(report(0, "orders-0 could not be read to its end at read_committed"), seed=7)
    assert row["clean"] is False
    show(row)
    assert "unfinished: orders-0 could not be read to its end" in capsys.readouterr().out
