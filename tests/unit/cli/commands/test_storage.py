"""Folders that are prepared for a cluster from the command line."""

import json
from pathlib import Path

import pytest

from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from riverlog.controller.bootstrap_file import read_bootstrap
from riverlog.model.uuids import decode_uuid, encode_uuid
from riverlog.world.disk import FileSystem

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
A, B = "3Db5QLSqSZieL3rJBUUegA", "L3zxNDcHSwaJ6VHqzyYdXw"
BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093,127.0.0.1:9193",
}
STATIC = {**BOTH, "controller.quorum.voters": "1@127.0.0.1:9093", "controller.quorum.bootstrap.servers": ""}
BROKER = {**BOTH, "process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092"}
ALONE = {"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092"}


def configured(folder: Path, settings: dict[str, str]) -> list[str]:
    file = folder / "server.properties"
    lines = [f"{name}={value}\n" for name, value in settings.items()]
    file.write_text("".join([*lines, f"log.dirs={folder}/a,{folder}/b\n"]))
    return ["-c", str(file)]


def info(
    folder: Path, settings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[dict[str, str]]]:
    capsys.readouterr()
    code = main(["storage", "info", *configured(folder, settings)])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_id_is_new_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["storage", "random-uuid"]) == ExitCode.DONE
    first, second = capsys.readouterr().out.splitlines()
    assert encode_uuid(decode_uuid(first)) == first != second


def test_a_controller_that_begins_alone_is_its_own_voter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configured(tmp_path, BOTH)
    command = ["storage", "format", "-t", CLUSTER, *config, "--standalone", "-f", "eligible.leader.replicas.version=0"]
    assert main(command) == ExitCode.DONE
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in said[:2]] == [f"Formatted {tmp_path}/a", f"Formatted {tmp_path}/b"]
    assert said[2] == f"Node 1 belongs to the cluster {CLUSTER}, and begins it alone"
    assert "eligible.leader.replicas.version=0" in said[3]
    code, [first, second] = info(tmp_path, BOTH, capsys)
    assert code == ExitCode.DONE
    assert (first["cluster_id"], first["node_id"], first["problem"]) == (CLUSTER, 1, None)
    assert first["voters"] == f"1@127.0.0.1:9093:{first['directory_id']}"
    assert (second["cluster_id"], second["voters"]) == (CLUSTER, None)
    assert read_bootstrap(FileSystem(), f"{tmp_path}/b") == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert main(command) == ExitCode.FAILED
    assert "--ignore-formatted prepares the others" in capsys.readouterr().err
    assert main([*command, "-g"]) == ExitCode.DONE
    assert capsys.readouterr().out.count("was formatted already, and is left as it is") == 2


def test_the_first_controllers_are_the_voters_of_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = f"1@127.0.0.1:9093:{A},2@127.0.0.1:9193:{B}"
    assert main(["storage", "format", "-t", CLUSTER, *configured(tmp_path, BOTH), "-I", named]) == ExitCode.DONE
    _, [first, _] = info(tmp_path, BOTH, capsys)
    assert first["directory_id"] == A
    assert first["voters"] == f"1@127.0.0.1:9093:{A}, 2@127.0.0.1:9193:{B}"


@pytest.mark.parametrize(("settings", "options"), [(BROKER, []), (STATIC, []), (BOTH, ["-N"]), (ALONE, ["-s"])])
def test_who_names_no_voters_has_none(
    settings: dict[str, str], options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["storage", "format", "-t", CLUSTER, *configured(tmp_path, settings), *options]) == ExitCode.DONE
    code, [first, _] = info(tmp_path, settings, capsys)
    assert (code, first["cluster_id"]) == (ExitCode.DONE, CLUSTER)
    assert (first["voters"] is None) is (options != ["-s"])


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        (BOTH, [], "a controller needs one of --standalone"),
        (BOTH, ["-s", "-N"], "--standalone and --no-initial-controllers cannot both hold"),
        (STATIC, ["-s"], "--standalone is for voters that are in the metadata"),
        (STATIC, ["-N"], "--no-initial-controllers is for voters that are in the metadata"),
        (BROKER, ["-s"], "--standalone is for controllers, and process.roles says that this node is none"),
        (
            {**BOTH, "controller.quorum.bootstrap.servers": ""},
            ["-N"],
            "name some in controller.quorum.bootstrap.servers",
        ),
        (ALONE, ["-s", "-f", "group.version=1"], "a node without a listener for controllers is a cluster of its own"),
        ({**BOTH, "cluster.id": "other"}, ["-s"], "cluster.id in the settings is other"),
        (BOTH, ["-s", "-t", "a b"], "'a b' cannot be the id of a cluster"),
        (BOTH, ["-s", "-f", "share.version=1"], "share.version cannot be at level 1"),
    ],
)
def test_what_does_not_go_together_is_one_sentence_and_nothing_is_made(
    settings: dict[str, str], options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["storage", "format", "-t", CLUSTER, *configured(tmp_path, settings), *options]) == ExitCode.USAGE
    said = capsys.readouterr()
    assert sentence in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["server.properties"]
