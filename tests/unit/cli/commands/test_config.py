"""`config explain`: every setting has an explanation, every wrong name a hint."""

import json

import pytest

from riverlog.cli.commands.config import facts_of
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS


@pytest.mark.parametrize("name", sorted({*TOPIC_SETTINGS, *NODE_SETTINGS}))
def test_every_setting_is_explained(name: str) -> None:
    facts = facts_of(name)
    assert facts["name"] == name
    assert all(facts[field] for field in ("meaning", "type", "values"))
    assert "topic" in facts or "set_by" in facts


def test_an_explanation_is_prose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "retention.ms"]) == ExitCode.DONE
    assert capsys.readouterr().out == (
        "retention.ms\n"
        "  How long records are kept; segments whose newest record is older are removed. -1 keeps them for\n"
        "  ever.\n"
        "\n"
        "  type      long, in ms\n"
        "  values    a whole number of at least -1\n"
        "  default   604800000\n"
        "  changes   while the node runs\n"
        "  topic     topics create|alter NAME --config retention.ms=…\n"
        "  node      log.retention.ms=… in the configuration file\n"
        "            RIVERLOG_LOG_RETENTION_MS=…\n"
        "            --set log.retention.ms=…\n"
        "            strongest first: log.retention.ms, log.retention.minutes, log.retention.hours\n"
    )


def test_a_name_in_another_unit_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "log.retention.hours", "-o", "json"]) == ExitCode.DONE
    facts = json.loads(capsys.readouterr().out)
    assert facts["meaning"].startswith("retention.ms in hours. ")
    assert facts["default"] == "168"
    assert facts["changes_at_run_time"] is False


def test_defaults_that_differ_in_dev_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "durability"]) == ExitCode.DONE
    assert "  default   fsync\n            os in `riverlog dev`\n" in capsys.readouterr().out


def test_a_setting_without_meaning_here_is_explained_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "num.io.threads"]) == ExitCode.DONE
    assert "without meaning here" in capsys.readouterr().out


def test_an_unknown_name_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "retension.ms"]) == ExitCode.USAGE
    assert capsys.readouterr().err == (
        "riverlog: there is no setting retension.ms; did you mean retention.ms? "
        "`riverlog config explain` lists them all\n"
    )


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain"]) == ExitCode.DONE
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["name"] for row in listed} == {*TOPIC_SETTINGS, *NODE_SETTINGS}
    assert {"name": "retention.ms", "scope": "topic", "default": "604800000"} in listed
