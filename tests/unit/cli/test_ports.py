"""Busy and free ports, found by listening on them for a moment."""

import socket
from collections.abc import Iterator

import pytest

from riverlog.cli.ports import ListenPort, is_free, listen_ports, next_free, with_free_ports
from riverlog.cli.terminal.exits import CommandError
from riverlog.model.resolution import configure
from riverlog.model.settings import NodeSettings

HOST = "127.0.0.1"


@pytest.fixture
def busy_port() -> Iterator[int]:
    """A port in use."""
    with socket.create_server((HOST, 0)) as listening:
        yield listening.getsockname()[1]


def settings_of(**flags: str) -> NodeSettings:
    return configure(profile="dev", flags={name.replace("_", "."): value for name, value in flags.items()}).settings


def test_doors_are_the_listeners_and_what_is_served_beside_them() -> None:
    settings = settings_of(
        listeners="PLAINTEXT://127.0.0.1:9092,INSIDE://[::1]:9095",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    )
    assert listen_ports(settings) == [
        ListenPort("127.0.0.1", 9092, "--set listeners=PLAINTEXT://127.0.0.1:PORT", "-b"),
        ListenPort("::1", 9095, "--set listeners=INSIDE://[::1]:PORT", "-b"),
        ListenPort("127.0.0.1", 9644, "--set metrics.port=PORT"),
        ListenPort("127.0.0.1", 9870, "--set checkpoints.port=PORT", "--store"),
    ]
    assert len(listen_ports(settings_of(metrics_port="-1"))) == 2
    assert len(listen_ports(settings_of(metrics_port="-1", checkpoints_port="-1"))) == 1


def test_a_port_in_use_is_not_free(busy_port: int) -> None:
    assert not is_free(ListenPort(HOST, busy_port, ""))
    assert is_free(ListenPort(HOST, 0, ""))


def test_what_is_not_about_the_port_is_left_to_the_node() -> None:
    assert is_free(ListenPort("host.invalid", 9092, "", "-b"))


def test_the_next_free_port_is_taken(busy_port: int) -> None:
    free = next_free(ListenPort(HOST, busy_port, ""), [])
    assert free > busy_port
    assert next_free(ListenPort(HOST, busy_port, ""), [free]) > free
    assert next_free(ListenPort(HOST, 0, ""), [0]) == 0


def test_the_search_for_a_port_ends(busy_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.cli.ports.PORTS_TRIED_MAX", 1)
    with pytest.raises(CommandError, match=r"none of 1 ports from \d+ on is free; choose one with --port"):
        next_free(ListenPort(HOST, busy_port, "--port PORT"), [])


def test_busy_doors_move_and_the_person_is_told(busy_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    busy = str(busy_port)
    settings = settings_of(listeners=f"PLAINTEXT://{HOST}:{busy}", metrics_port="-1", checkpoints_port=busy)
    changes = with_free_ports(settings)
    kafka, checkpoints = int(changes["listeners"].rpartition(":")[2]), int(changes["checkpoints.port"])
    assert busy_port < kafka < checkpoints
    assert capsys.readouterr().err == (
        f"riverlog: port {busy_port} is in use; taking {kafka} instead: other commands find it with -b {HOST}:{kafka}\n"
        f"riverlog: port {busy_port} is in use; taking {checkpoints} instead: "
        f"other commands find it with --store {HOST}:{checkpoints}\n"
    )


def test_free_doors_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert with_free_ports(settings_of(listeners=f"PLAINTEXT://{HOST}:0", metrics_port="0", checkpoints_port="0")) == {}
    assert (
        with_free_ports(settings_of(listeners=f"PLAINTEXT://{HOST}:0", metrics_port="-1", checkpoints_port="-1")) == {}
    )
    assert capsys.readouterr().err == ""
