"""The options of commands that talk to a cluster, as one argument."""

import click
import pytest

from riverlog.cli.client_settings import ClientSettings
from riverlog.cli.cluster_options import ClusterOptions, cluster_options, cluster_text_options
from riverlog.cli.terminal.render import OutputFormat


def given(*arguments: str) -> ClusterOptions:
    @click.command
    @cluster_options
    def command(cluster: ClusterOptions) -> ClusterOptions:
        return cluster

    seen: ClusterOptions = command(arguments, standalone_mode=False)
    return seen


def test_the_options_are_one_argument() -> None:
    settings = ClientSettings({"linger.ms": "2"})
    assert given("-b", "a:1", "-X", "linger.ms=2", "-o", "json") == ClusterOptions("a:1", settings, OutputFormat.JSON)
    assert given("-b", "a:1").output is None


def test_a_flag_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", "variable:1")
    assert given().bootstrap == "variable:1"
    assert given("--bootstrap-server", "flag:2").bootstrap == "flag:2"


def test_text_stays_text_in_a_pipe_where_programs_can_read_it() -> None:
    @click.command
    @cluster_text_options
    def command(cluster: ClusterOptions) -> ClusterOptions:
        return cluster

    assert command([], standalone_mode=False).output is OutputFormat.TABLE
    assert command(["-o", "yaml"], standalone_mode=False).output is OutputFormat.YAML


def test_rows_become_a_table_of_their_first_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    given("-o", "table").emit_table([{"a": 1, "b": 2}], ["first"])
    assert capsys.readouterr().out.split() == ["first", "─────", "1"]
