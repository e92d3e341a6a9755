"""Lines as records: keys, headers, nulls, pace, and where lines come from."""

import asyncio
import os
from pathlib import Path
from typing import cast

import pytest

from riverlog.cli import line_sender
from riverlog.cli.line_sender import LineFormat, LineSource, Sent, Tally, pause_seconds
from riverlog.cli.terminal.exits import BadInput, CommandError
from riverlog.client.errors import KafkaError, TimedOut, Unreachable
from riverlog.client.producer.deliveries import Delivery
from riverlog.model.errors import ErrorCode


@pytest.mark.parametrize(
    ("shape", "line", "expected"),
    [
        (LineFormat("t"), b"a:b", (None, b"a:b")),
        (LineFormat("t"), b"", (None, b"")),
        (LineFormat("t", key=b"k"), b"a:b", (b"k", b"a:b")),
        (LineFormat("t", key_separator=b":"), b"a:b:c", (b"a", b"b:c")),
        (LineFormat("t", key_separator=b":"), b":", (b"", b"")),
        (LineFormat("t", key_separator=b"--"), b"a--", (b"a", b"")),
        (LineFormat("t", null=True), b"", (None, None)),
        (LineFormat("t", key_separator=b":", null=True), b"a:", (b"a", None)),
        (LineFormat("t", key_separator=b":", null=True), b":b", (None, b"b")),
    ],
)
def test_a_line_becomes_key_and_value(
    shape: LineFormat, line: bytes, expected: tuple[bytes | None, bytes | None]
) -> None:
    assert shape.split(line, 1, "standard input") == expected


def test_a_line_without_the_separator_is_named() -> None:
    with pytest.raises(BadInput, match=r"line 7 of a\.txt has no '\\t' between key and value"):
        LineFormat("t", key_separator=b"\t").split(b"no tab", 7, "a.txt")


@pytest.mark.parametrize(
    ("count", "elapsed", "expected"), [(0, 0.0, 0.0), (1, 0.0, 0.1), (10, 0.25, 0.75), (10, 1.0, 0.0), (10, 9.0, 0.0)]
)
def test_a_pace_of_ten_a_second(count: int, elapsed: float, expected: float) -> None:
    assert pause_seconds(count, 10.0, elapsed) == pytest.approx(expected)


async def collect(source: LineSource, *, whole: bool) -> list[bytes]:
    return [line async for some in source.records(whole=whole) for line in some]


def test_a_file_is_lines_or_one_record(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_bytes(b"one\ntwo\n")
    for whole, expected in ((False, [b"one", b"two"]), (True, [b"one\ntwo\n"])):
        source = LineSource.of_file(path)
        assert (source.name, source.size, source.is_terminal) == (str(path), 8, False)
        assert asyncio.run(collect(source, whole=whole)) == expected
        os.close(source.descriptor)


def test_a_whole_file_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * 11)
    monkeypatch.setattr(line_sender, "LINE_BYTES_MAX", 10)
    source = LineSource.of_file(path)
    with pytest.raises(CommandError, match="too large for one record"):
        asyncio.run(collect(source, whole=True))
    os.close(source.descriptor)


def test_the_summary_is_a_sentence() -> None:
    assert str(Sent("orders", 2_000, 4_096, 0.5)) == "2,000 records (4.0 KiB) sent to orders in 0.50 s, 4,000/s"
    assert str(Sent("orders", 0, 0, 0.0)) == "0 records (0 B) sent to orders in 0.00 s, 0/s"


class Outcome:
    """A delivery as far as it is known."""

    def __init__(self, *, done: bool = True, error: KafkaError | None = None) -> None:
        self.done = done
        self.error = error

    def result(self) -> None:
        assert self.error is not None
        raise self.error


def tally_of(*outcomes: Outcome) -> Tally:
    tally = Tally("orders")
    for outcome in outcomes:
        tally.note(cast(Delivery, outcome), 1, 10)
    return tally


REFUSED = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")


def test_what_is_acknowledged_is_counted_in_order() -> None:
    late = Outcome(done=False)
    tally = tally_of(Outcome(), late, Outcome())
    assert tally.count() == (1, 10)
    late.done = True
    assert tally.count() == (3, 30)
    assert (tally.sent, tally.bytes) == (3, 3)


def test_the_first_refusal_is_raised() -> None:
    tally = tally_of(Outcome(), Outcome(error=REFUSED))
    with pytest.raises(KafkaError, match="too large"):
        tally.check()
    assert tally.count() == (1, 10)


def test_an_early_end_tells_what_is_known_about_each_record() -> None:
    timed_out, away = Outcome(error=TimedOut("no answer")), Outcome(error=Unreachable("gone"))
    tally = tally_of(Outcome(), Outcome(done=False), Outcome(error=REFUSED), Outcome(), timed_out, away)
    assert tally.summary() == ("6 records sent to orders: 2 acknowledged, 1 refused, 3 unknown (in the topic or not)")
    assert tally_of(Outcome()).summary() == "1 record sent to orders: 1 acknowledged"
    assert tally_of().summary() is None
    assert tally_of(Outcome(error=REFUSED)).summary() is None, "the error says it all"
