"""docs/clusters.md, walked as printed: from one node to five, a new disk, and back to three; only the ports differ."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from riverlog.cli.main import main
from riverlog.model.settings import NODE_SETTINGS

GUIDE: Final = (Path(__file__).resolve().parents[2] / "docs" / "clusters.md").read_text()
NODES: Final = range(1, 6)
SECONDS_MAX: Final = 240
EXPECTED: Final = (
    (),
    (r"begins it alone", r'"topic": ?"orders"'),
    (r'"voter": 2, .*"added": true', r'"voter": 3, .*"added": true', r"3 voters", r"\b3 +voter "),
    (r'"voter": 5, .*"added": true', r"paid", r'(.*"RegisterBroker", "broker_id": \d,.*\n){5}'),
    (r'"voter": 3, .*"removed": true', r'"voter": 3, .*"added": true'),
    (r'"broker": 5, "unregistered": true', r'"broker": 4, "unregistered": true', r"3 voters.*(\n.*)+Features: "),
)
"""What each block prints, as regular expressions."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return an empty folder; the nodes that were started from it are gone in the end."""
    yield tmp_path
    for file in tmp_path.glob("*.pid"):
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def free_prefix() -> str:
    """Find what to put in front of all ports of the guide so that they are free."""
    for prefix in ("2", "1", "3", "4", "5"):
        with ExitStack() as held, suppress(OSError):
            for port in (f"{prefix}9{node}9{last}" for node in NODES for last in (2, 3)):
                probe = held.enter_context(socket.socket())
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", int(port)))
                probe.listen(1)
            return prefix
    raise AssertionError("no ports are free")


def walk(folder: Path, script: str) -> str:
    """Run a script as printed but for its ports; return what it prints."""
    script = "set -eo pipefail\n" + script.replace("127.0.0.1:9", f"127.0.0.1:{free_prefix()}9")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    logs = "\n".join(file.read_text()[-2000:] for file in sorted(folder.glob("n*.log")))
    assert ran.returncode == 0, ran.stdout + ran.stderr + logs
    return ran.stdout


def test_the_way_from_one_node_to_five_and_back_to_three(folder: Path) -> None:
    found = blocks("sh")
    assert len(found) == len(EXPECTED)
    mark = "--- the next block"
    script = f"\necho '{mark}'\n".join(found)
    printed = walk(folder, script)
    for lines, expected in zip(printed.split(mark), EXPECTED, strict=True):
        for pattern in expected:
            assert re.search(pattern, lines), f"{pattern}\n{lines}"


ALONE: Final = """
riverlog serve --config n1.properties --set listeners=PLAINTEXT://127.0.0.1:9192 --set controller.listener.names= \\
  --set controller.quorum.bootstrap.servers= > n1.out 2>> n1.log & echo $! > n1.pid
until grep -qs "riverlog ready" n1.out; do kill -0 $(cat n1.pid); sleep 0.1; done
riverlog topics create orders
echo kept | riverlog produce orders
stop 1
start 1
ID=$(riverlog cluster status -o yaml | sed -n 's/.*cluster_id: //p' | tr -d '"')
riverlog storage format --cluster-id $ID --config n2.properties --no-initial-controllers
start 2
riverlog cluster quorum add 2@127.0.0.1:9293 --bootstrap-controller 127.0.0.1:9193
riverlog consume orders --from-beginning --exit --bootstrap-server 127.0.0.1:9292
"""
"""A node alone, and then with another one."""


def test_a_node_alone_becomes_one_of_several(folder: Path) -> None:
    printed = walk(folder, blocks("sh")[0] + ALONE)
    assert '"voter": 2' in printed
    assert "kept" in printed


def test_three_machines_are_formatted_as_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [settings] = blocks("properties")
    [commands] = blocks("text")
    file = tmp_path / "server.properties"
    file.write_text(settings.replace("/var/lib/riverlog", f"{tmp_path}/data"))
    words = commands.partition("riverlog serve")[0].replace("\\\n", " ").split()[1:]
    assert main([str(file) if word == "server.properties" else word for word in words]) == 0
    assert "begins it with the voters 1, 2, 3" in capsys.readouterr().out


def test_the_time_outs_have_their_defaults() -> None:
    rows = re.findall(r"^\| `([a-z.]+)` \| (\d+) \|", GUIDE, re.MULTILINE)
    assert len(rows) == 6
    for name, default in rows:
        assert NODE_SETTINGS[name][0].default == default
