"""Settings of a node, from a file and flags."""

from pathlib import Path

import pytest

from riverlog.cli.node_configuration import configuration_from
from riverlog.cli.terminal.exits import CommandError, ExitCode


def test_flags_override_variables_and_these_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=7\nnum.partitions=3\nlog.dirs=/d\n")
    monkeypatch.setenv("RIVERLOG_NODE_ID", "8")
    settings = configuration_from(str(file), ["num.partitions=5"]).settings
    assert (settings.node_id, settings.num_partitions, settings.log_dirs) == (8, 5, ("/d",))


def test_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=7\nnum.partitons=3\n")
    with pytest.raises(CommandError, match=f"there is no setting num.partitons.* See line 2 of {file}") as refused:
        configuration_from(str(file), [])
    assert refused.value.exit_code == ExitCode.USAGE
