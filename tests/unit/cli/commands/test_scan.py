"""The command that shows a topic as a table, against a broker in the same process."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from riverlog import Producer
from riverlog.cli.commands.scan import where_to_start
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.testing import RunningBroker


@pytest.fixture
def broker(riverlog_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> RunningBroker:
    """Return a broker with three records in a topic."""

    async def send() -> None:
        async with Producer(riverlog_broker.bootstrap_servers) as producer:
            await producer.send("orders", value=b"one", key=b"\xff", headers={"h": b"\x1b[1m"}, timestamp_ms=1_500)
            await producer.send("orders", value=None, timestamp_ms=2_000)
            await producer.send("orders", value=b"\x1b[2J", timestamp_ms=3_000)

    riverlog_broker.create_topic("orders")
    asyncio.run(send())
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", riverlog_broker.bootstrap_servers)
    return riverlog_broker


@pytest.mark.usefixtures("broker")
def test_rows_are_lines_of_json_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "orders", "--columns", "offset, key,value,timestamp,headers"]) == ExitCode.DONE
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {
            "offset": 0,
            "key": {"base64": "/w=="},
            "value": "one",
            "timestamp": "1970-01-01T00:00:01.500Z",
            "headers": [{"key": "h", "value": "\x1b[1m"}],
        },
        {"offset": 1, "key": None, "value": None, "timestamp": "1970-01-01T00:00:02.000Z", "headers": None},
        {"offset": 2, "key": None, "value": "\x1b[2J", "timestamp": "1970-01-01T00:00:03.000Z", "headers": None},
    ]


@pytest.mark.usefixtures("broker")
def test_a_table_shows_escapes_and_does_not_obey_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "orders", "--columns", "offset,value,headers", "-o", "table"]) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert "\\x1b[2J" in shown
    assert "\x1b" not in shown
    assert shown.endswith("3 rows\n")


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        (["--offset", "-1"], [2]),
        (["--offset", "1"], [1, 2]),
        (["--offset", "beginning", "--limit", "1"], [0]),
        (["--since", "1970-01-01T00:00:02Z"], [1, 2]),
        (["--since", "1h"], []),
        (["--until", "1970-01-01T00:00:03Z"], [0, 1]),
        (["-p", "0", "-X", "request.timeout.ms=5000"], [0, 1, 2]),
    ],
)
def test_places(arguments: list[str], offsets: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "orders", "--columns", "offset", *arguments]) == ExitCode.DONE
    assert [json.loads(line)["offset"] for line in capsys.readouterr().out.splitlines()] == offsets


@pytest.mark.usefixtures("broker")
def test_files_are_whole_or_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("orders.parquet", "orders.arrow"):
        assert main(["scan", "orders", "--write", str(tmp_path / name)]) == ExitCode.DONE
        assert capsys.readouterr().out == f"3 rows written to {tmp_path / name}\n"
    table = parquet.read_table(tmp_path / "orders.parquet")
    assert table["offset"].to_pylist() == [0, 1, 2]
    assert pa.ipc.open_file(str(tmp_path / "orders.arrow")).read_all().equals(table)
    assert main(["scan", "nothing", "--write", str(tmp_path / "nothing.parquet")]) == ExitCode.REFUSED
    assert "topics list" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"orders.parquet", "orders.arrow"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--since", "yesterday"], "'yesterday' is not a time"),
        (["--since", "1h", "--offset", "5"], "--since and --offset exclude each other"),
        (["--write", "orders.csv"], "name it *.parquet or *.arrow"),
        (["--write", "orders.parquet", "-o", "json"], "--write and --output exclude each other"),
        (["--columns", "key,valeu"], "there is no column 'valeu'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", "orders", *arguments]) == ExitCode.USAGE
    assert sentence in capsys.readouterr().err


def test_nobody_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "orders", "-b", "127.0.0.1:1"]) == ExitCode.UNREACHABLE
    assert "riverlog doctor" in capsys.readouterr().err


def test_a_missing_library_is_named_with_the_command_that_installs_it() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\nfrom riverlog.cli.main import main\nsys.exit(main(['scan', 'x']))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == ExitCode.FAILED
    assert ended.stderr == "riverlog: pyarrow is not installed; run: pip install 'riverlog[scan]'\n"


def test_one_start_is_enough() -> None:
    assert where_to_start(None, None) == "earliest"
    assert where_to_start("1h", None) == "1h"
    assert where_to_start(None, "end") == "latest"
    assert where_to_start(None, "-3") == -3
    with pytest.raises(CommandError):
        where_to_start("1h", "3")
