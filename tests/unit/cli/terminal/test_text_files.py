"""Files of text that people name."""

from pathlib import Path

import pytest

from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.text_files import text_of


def test_text_is_read_and_what_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("größe=1\n", encoding="utf-8")
    assert text_of(str(path)) == "größe=1\n"
    path.write_bytes(b"a=\xfc\n")
    with pytest.raises(CommandError, match=r"client\.properties is no text in UTF-8 \(byte 3\); save") as refused:
        text_of(str(path))
    assert refused.value.exit_code == ExitCode.USAGE
