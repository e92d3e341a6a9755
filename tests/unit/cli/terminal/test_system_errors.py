"""What the operating system refuses, as sentences."""

import errno
import os

import pytest

from riverlog.cli.terminal.system_errors import system_sentence


@pytest.mark.parametrize(
    ("number", "file", "sentence"),
    [
        (errno.ENOENT, "a.txt", "there is no file or folder a.txt; check the path"),
        (errno.EACCES, "a.txt", "a.txt: this user may not open it; change its permissions, or choose another place"),
        (errno.EMFILE, None, "too many files are open; raise the limit with `ulimit -n`"),
        (errno.ENOSPC, None, "the disk is full; make room"),
        (errno.ENOENT, None, "No such file or directory"),
        (errno.EIO, "a.txt", "a.txt: Input/output error"),
    ],
)
def test_an_error_is_a_sentence(number: int, file: str | None, sentence: str) -> None:
    assert system_sentence(OSError(number, os.strerror(number), file)) == sentence


def test_an_error_without_a_number() -> None:
    assert system_sentence(OSError("the connection was lost")) == "the connection was lost"
