"""Profiles: what is kept, by whom it can be read, and which one counts."""

import stat
from pathlib import Path

import pytest

from riverlog.cli import profiles
from riverlog.cli.cluster_options import DEFAULT_BOOTSTRAP, chosen_settings
from riverlog.cli.terminal.exits import CommandError, ExitCode


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("RIVERLOG_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.delenv("RIVERLOG_PROFILE", raising=False)
    return tmp_path


def test_a_profile_comes_back_as_it_was_and_is_for_its_owner_alone() -> None:
    contents = {"bootstrap.servers": "a:1", "sasl.password": " p\\q=r\nü", "client.id": "=x"}
    path = profiles.create("prod", contents)
    assert profiles.settings("prod") == contents
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert profiles.names() == ["prod"]
    with pytest.raises(CommandError, match="profile prod exists already"):
        profiles.create("prod", contents)


def test_the_profile_in_use_counts_where_nothing_else_names_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_settings(None, None, None, ())[1] == DEFAULT_BOOTSTRAP
    profiles.create("prod", {"bootstrap.servers": "prod:1", "client.id": "me"})
    profiles.create("test", {"bootstrap.servers": "test:1"})
    profiles.use("prod")
    settings, address = chosen_settings(None, None, None, ())
    assert (address, settings.all) == ("prod:1", {"bootstrap.servers": "prod:1", "client.id": "me"})
    settings, address = chosen_settings("other:1", None, None, ())
    assert (address, settings.all) == ("other:1", {}), "what a profile holds is not for other brokers"
    assert chosen_settings(None, "test", None, ())[1] == "test:1"
    monkeypatch.setenv("RIVERLOG_PROFILE", "test")
    assert chosen_settings(None, None, None, ())[1] == "test:1"
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", "variable:1")
    assert chosen_settings(None, None, None, ())[1] == "variable:1"
    assert chosen_settings(None, "prod", None, ())[1] == "prod:1"
    assert chosen_settings(None, "prod", None, ("bootstrap.servers=typed:1",))[1] == "typed:1"


def test_a_file_wins_over_a_profile_and_typing_over_both(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("linger.ms=2\nclient.id=file\n")
    profiles.create("prod", {"bootstrap.servers": "prod:1", "linger.ms": "1", "acks": "1"})
    settings, address = chosen_settings(None, "prod", str(file), ("client.id=typed",))
    assert address == "prod:1"
    assert settings.all == {
        "bootstrap.servers": "prod:1", "linger.ms": "2", "acks": "1", "client.id": "typed",
    }  # fmt: skip


def test_a_deleted_profile_is_not_in_use() -> None:
    profiles.create("prod", {"bootstrap.servers": "a:1"})
    profiles.use("prod")
    profiles.delete("prod")
    assert (profiles.in_use(), profiles.names()) == (None, [])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("prdo", "there is no profile prdo; did you mean 'prod'?"),
        ("xyz", "there is no profile xyz; `riverlog profile list` shows what there is"),
        ("../x", "'../x' cannot be the name of a profile; use letters, digits, '.', '_' and '-'"),
    ],
)
def test_a_profile_that_is_not_there_is_one_sentence(name: str, sentence: str) -> None:
    profiles.create("prod", {"bootstrap.servers": "a:1"})
    with pytest.raises(CommandError) as trouble:
        profiles.settings(name)
    assert (str(trouble.value), trouble.value.exit_code) == (sentence, ExitCode.USAGE)
