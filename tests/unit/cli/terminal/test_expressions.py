"""What people type inside options."""

from datetime import datetime, timedelta, timezone

import pytest

from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.expressions import LogEdge, moment_ms, pair, pairs, start, unescape

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 1, 31, 16, 30, 5, 250_000, tzinfo=ZONE)
NOW_MS = 1_769_869_805_250


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a=b", ("a", "b")), ("a=", ("a", "")), ("a=b=c", ("a", "b=c")), (" a = b", ("a", " b"))],
)
def test_a_pair_splits_at_the_first_equals_sign(text: str, expected: tuple[str, str]) -> None:
    assert pair(text, option="--config") == expected


@pytest.mark.parametrize("text", ["a", "", "=b", " =b"])
def test_what_is_no_pair_is_refused_with_the_option_named(text: str) -> None:
    with pytest.raises(CommandError, match=r"--config needs name=value") as trouble:
        pair(text, option="--config")
    assert trouble.value.exit_code == ExitCode.USAGE


def test_pairs_keep_their_order_and_refuse_a_name_given_twice() -> None:
    assert list(pairs(["b=1", "a=2"], option="-X").items()) == [("b", "1"), ("a", "2")]
    assert pairs((), option="-X") == {}
    with pytest.raises(CommandError, match="-X names 'a' twice"):
        pairs(["a=1", "a=2"], option="-X")


def test_what_is_no_moment_is_a_mistake_of_usage() -> None:
    assert moment_ms("-15m", now=NOW) == NOW_MS - 900_000
    with pytest.raises(CommandError, match="'yesterday' is not a time; give one as -15m") as trouble:
        moment_ms("yesterday", now=NOW)
    assert trouble.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("42", 42),
        ("-10", -10),
        ("beginning", LogEdge.BEGINNING),
        ("END", LogEdge.END),
        ("latest", LogEdge.END),
    ],
)
def test_starting_offsets(text: str, expected: object) -> None:
    assert start(text) == expected


@pytest.mark.parametrize("text", ["", "middle", "1.5", "--1", "99999999999999999999"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not an offset"):
        start(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", b"plain"),
        (r"\t", b"\t"),
        (r"a\nb\r\0\\n", b"a\nb\r\0\\n"),
        (r"\x1f\xFF", b"\x1f\xff"),
        (r"\x1g", b"\x01g"),
        ("grün", "grün".encode()),
    ],
)
def test_escapes(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


@pytest.mark.parametrize("text", [r"\q", r"\x", r"a\ü"])
def test_an_unknown_escape_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not an escape"):
        unescape(text)
