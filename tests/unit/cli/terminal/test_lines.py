"""Input cut into lines, from pipes and files."""

import asyncio
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from riverlog.cli.terminal import lines as module
from riverlog.cli.terminal.exits import CommandError
from riverlog.cli.terminal.lines import lines, reader_gone, write_all


async def collect(descriptor: int) -> list[bytes]:
    return [line async for block in lines(descriptor, "input") for line in block]


def from_file(path: Path, content: bytes) -> list[bytes]:
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return asyncio.run(collect(descriptor))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\n\n", [b"", b""]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"\xff\x00\n\xc3", [b"\xff\x00", b"\xc3"]),
    ],
)
def test_a_file_is_cut_into_lines(tmp_path: Path, content: bytes, expected: list[bytes]) -> None:
    assert from_file(tmp_path / "input", content) == expected


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7])
def test_lines_may_lie_across_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    assert from_file(tmp_path / "input", b"one\r\ntwo\n\nthree") == [b"one", b"two", b"", b"three"]


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 10)
    monkeypatch.setattr(module, "BLOCK_BYTES", 4)
    with pytest.raises(CommandError, match="line 1 of input has more than 10 bytes"):
        from_file(tmp_path / "input", b"x" * 20)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def test_a_line_is_given_as_soon_as_it_arrives(pipe: tuple[int, int]) -> None:
    reading, writing = pipe

    async def converse() -> list[list[bytes]]:
        source = lines(reading, "input")
        os.write(writing, b"first\nsec")
        given = [await anext(source)]
        os.write(writing, b"ond\nlast")
        given.append(await anext(source))
        os.close(writing)
        given.append(await anext(source))
        return given

    assert asyncio.run(converse()) == [[b"first"], [b"second"], [b"last"]]


def test_waiting_for_input_can_be_interrupted(pipe: tuple[int, int]) -> None:
    reading, writing = pipe

    async def interrupt() -> None:
        waiting = asyncio.create_task(collect(reading))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(interrupt())
    os.close(writing)


def test_a_pipe_that_nobody_reads_any_more_is_noticed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    assert not reader_gone(writing)
    os.close(reading)
    assert reader_gone(writing)
    os.close(writing)
    with (tmp_path / "file").open("wb") as file:
        assert not reader_gone(file.fileno())


class Sipping(BytesIO):
    """Takes three bytes at a time, as an unbuffered stream may."""

    def write(self, content: Any) -> int:
        return super().write(content[:3])


def test_what_a_stream_takes_in_parts_is_written_whole() -> None:
    out = Sipping()
    write_all(out, b"one\ntwo\nthree\n")
    assert out.getvalue() == b"one\ntwo\nthree\n"
