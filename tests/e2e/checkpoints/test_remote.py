"""A store from outside, and the commands that look after it, on a real node."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.remote import RemoteStore
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from tests.support.node import Node

LARGE = Random(7).randbytes(1_300_000)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Node(tmp_path_factory.mktemp("remote"), settings={"metrics.port": "-1"}) as node:
        yield node.addresses["checkpoints"]


def test_files_are_written_read_and_listed(address: str) -> None:
    with RemoteStore(address) as store:
        store.make_folder("/r/empty")
        store.write("/r/a b", [b"one", b"two"])
        store.write("/r/state/x.sst", [LARGE])
        assert [each.path for each in store.walk("/r")] == ["/r/a b", "/r/empty", "/r/state", "/r/state/x.sst"]
        assert b"".join(store.read("/r/state/x.sst")) == LARGE
        assert b"".join(store.read("/r/a b")) == b"onetwo"
        with pytest.raises(RequestRefused, match="already exists"):
            store.write("/r/a b", [b"three"])
        with pytest.raises(RequestRefused, match="does not exist"):
            list(store.walk("/x"))


def run(capsys: pytest.CaptureFixture[str], address: str, *arguments: str) -> list[dict[str, object]]:
    code = main(["pipelines", "checkpoints", *arguments, "--store", address.removeprefix("webhdfs://"), "-o", "json"])
    out, err = capsys.readouterr()
    assert (code, err) == (ExitCode.DONE, "")
    return [json.loads(line) for line in out.splitlines()]


def test_a_checkpoint_moves_from_folder_to_store_and_back(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "metadata": b"{}",
        "offsets/0": b"v1",
        "offsets/1": b"v1",
        "commits/0": b"v1",
        "state/0/1/2.zip": LARGE,
    }
    first, second = tmp_path / "first", tmp_path / "second"
    for name, content in {**files, "offsets/.0.crc": b"a checksum of Spark's own"}.items():
        (first / name).parent.mkdir(parents=True, exist_ok=True)
        (first / name).write_bytes(content)
    imported = run(capsys, address, "import", str(first), "/pipelines/orders")
    size = sum(map(len, files.values()))
    assert imported == [{"path": "/pipelines/orders", "folder": str(first), "files": 5, "bytes": size}]
    listed = {"checkpoint": "/pipelines/orders", "planned": 1, "committed": 0, "files": 5, "bytes": size}
    assert listed in run(capsys, address, "list")
    paths = [row["path"] for row in run(capsys, address, "list", "/pipelines/orders")]
    assert paths == sorted(f"/pipelines/orders/{name}" for name in files)
    assert run(capsys, address, "export", "/pipelines/orders", str(second))[0]["bytes"] == size
    assert {str(path.relative_to(second)): path.read_bytes() for path in second.rglob("*") if path.is_file()} == files
    for arguments, code in (
        (["import", str(first), "/pipelines/orders"], ExitCode.REFUSED),
        (["export", "/pipelines/orders", str(second)], ExitCode.USAGE),
        (["list", "/nothing"], ExitCode.REFUSED),
    ):
        assert main(["pipelines", "checkpoints", *arguments, "--store", address]) == code
        said = capsys.readouterr().err
        assert said.count("\n") == 1
