"""`profile`: what is saved, shown and chosen."""

import json
from pathlib import Path

import pytest

from riverlog.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("RIVERLOG_PROFILE", raising=False)


def said(capsys: pytest.CaptureFixture[str], line: str, code: int = 0) -> str:
    assert main(line.split()) == code
    out, err = capsys.readouterr()
    return out + err


def test_a_profile_lives_and_dies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\nsasl.password=secret\n")
    created = said(capsys, f"profile create prod -b a:1 --command-config {file} -X client.id=me -o table")
    assert created == "Created profile prod; it is in use now, and commands that name no brokers talk to a:1\n"
    assert (
        said(capsys, "profile create test -b b:1 -o table")
        == "Created profile test; `riverlog profile use test` makes commands use it\n"
    )
    shown = said(capsys, "profile describe prod")
    assert shown == (
        "Profile prod: in use\nConfig bootstrap.servers=a:1\nConfig security.protocol=SASL_PLAINTEXT\n"
        "Config sasl.password=********\nConfig client.id=me\n"
    )
    assert said(capsys, "profile use test") == "Commands use profile test from now on\n"
    rows = [json.loads(line) for line in said(capsys, "profile list").splitlines()]
    assert rows == [
        {"profile": "prod", "brokers": "a:1", "in_use": False},
        {"profile": "test", "brokers": "b:1", "in_use": True},
    ]
    assert said(capsys, "profile delete test") == "Deleted profile test\n"
    assert "did you mean" not in said(capsys, "profile use other", code=2)


def test_nothing_is_no_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing to save" in said(capsys, "profile create empty", code=2)
    assert "is no bootstrap address" in said(capsys, "profile create wrong -b a:b", code=2)
