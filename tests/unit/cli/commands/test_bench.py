"""`bench`: what is refused beforehand, how work is divided, and how results add up. Measuring is tried end to end."""

from dataclasses import replace

import pytest

from riverlog.cli.commands.bench import NUMBERS, Plan, cut, limit_sentence, row_of, shares_of, show
from riverlog.cli.load.client import ClientLoad, ClientOutcome
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode

SHARE = ClientLoad(part="", bootstrap="b", topic="t")
PLAN = Plan(("produce",), record_bytes=10, records=None, seconds=5.0, rate=None, producers=1, consumers=1)


def plan(**changes: object) -> Plan:
    return replace(PLAN, **changes)  # type: ignore[arg-type]  # as the fields are


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--records", "5", "--seconds", "5"], "--records and --seconds exclude each other; give one of them"),
        (
            ["--topic", "orders", "--partitions", "2"],
            "--partitions and --replication-factor are for a topic that is made; 'orders' has its own",
        ),
        (["-X", "linger.ms=soon"], "linger.ms takes a number, not 'soon'"),
        (
            ["--acks", "1", "-X", "enable.idempotence=true"],
            "enable.idempotence=true needs acks=\"all\"; with acks='1' a lost",
        ),
        (["-b", "127.0.0.1:x"], "'127.0.0.1:x' "),
    ],
)
def test_mistakes_are_one_sentence(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *options]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"riverlog: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--record-size", "7"],
        ["--records", "0"],
        ["--seconds", "0"],
        ["--rate", "0"],
        ["--producers", "0"],
        ["--producers", "257"],
        ["--consumers", "0"],
        ["--partitions", "0"],
        ["--linger", "-1"],
        ["--acks", "2"],
        ["--compression", "brotli"],
        ["--part", "both"],
    ],
)
def test_values_out_of_range_name_the_option(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *options]) == ExitCode.USAGE
    assert options[0] in capsys.readouterr().err


def test_producers_divide_records_and_rate() -> None:
    shares = shares_of("produce", plan(records=10, seconds=None, rate=30.0, producers=3), SHARE, [])
    assert [share.records for share in shares] == [4, 3, 3]
    assert {share.rate for share in shares} == {10.0}
    assert {(share.part, share.record_bytes, share.seconds) for share in shares} == {("produce", 10, None)}
    assert [share.records for share in shares_of("produce", plan(producers=2), SHARE, [])] == [None, None]


def test_a_producer_without_records_is_not_started() -> None:
    assert len(shares_of("produce", plan(records=2, producers=5), SHARE, [])) == 2


def test_consumers_divide_the_partitions_that_hold_something() -> None:
    shares = shares_of("consume", plan(consumers=2), SHARE, [(0, 0, 5), (1, 3, 3), (2, 1, 2), (3, 0, 9)])
    assert [share.ranges for share in shares] == [[(0, 0, 5), (3, 0, 9)], [(2, 1, 2)]]
    assert len(shares_of("consume", plan(consumers=9), SHARE, [(0, 0, 5)])) == 1


def test_no_more_is_read_than_was_asked_for() -> None:
    ranges = [(0, 10, 15), (1, 0, 5), (2, 0, 5)]
    assert cut(ranges, 7) == [(0, 10, 15), (1, 0, 2)]
    assert cut(ranges, 99) == cut(ranges, None) == ranges


def test_end_to_end_starts_behind_what_is_there() -> None:
    (share,) = shares_of("end-to-end", plan(producers=4), SHARE, [(0, 2, 7)])
    assert (share.ranges, share.rate) == ([(0, 7, 7)], 1_000.0)
    (share,) = shares_of("end-to-end", plan(rate=5.0), SHARE, [(0, 2, 7)])
    assert share.rate == 5.0


def test_results_add_up_over_processes() -> None:
    row = row_of(
        "produce",
        "t",
        [ClientOutcome(100, 1_000_000, 2.0, 0.5, [(8, 99)], 8), ClientOutcome(300, 3_000_000, 4.0, 1, [(9, 1)], 9)],
    )
    assert (row["records"], row["bytes"], row["seconds"], row["clients"]) == (400, 4_000_000, 4.0, 2)
    assert (row["records_per_second"], row["mb_per_second"]) == (100.0, 1.0)
    assert row["latency_ms"] == {"p50": 0.008, "p95": 0.008, "p99": 0.008, "p99.9": 0.009, "max": 0.009}
    assert (row["client_cpu_seconds"], row["client_bound"]) == (1.5, False)


def test_a_client_that_never_rests_is_named_as_the_limit() -> None:
    row = row_of("consume", "t", [ClientOutcome(1, 1, 10.0, 0.1, [], 0), ClientOutcome(1, 1, 10.0, 9.9, [], 0)])
    assert row["latency_ms"] is None
    assert row["client_bound"] is True
    assert limit_sentence(row) == (
        "consume: a client process was computing all the time, so this is the client's limit; "
        "more --consumers (and --partitions) may get more out of the broker."
    )
    assert "more --" not in limit_sentence({**row, "part": "end-to-end"})


def test_the_table_fits_a_narrow_terminal_whatever_the_numbers_are(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = ClientOutcome(10**12, 10**15, 1.0, 9_999.0, [(10_000, 1)], 10**9)
    show([row_of(part, "t", [outcome]) for part in ("produce", "consume", "end-to-end")])
    heading, _, *lines = (line for line in capsys.readouterr().out.splitlines() if line and "limit" not in line)
    assert heading.split() == ["produce", "consume", "end-to-end"]
    assert len(lines) == len(NUMBERS)
    assert max(map(len, [heading, *lines])) <= 80
