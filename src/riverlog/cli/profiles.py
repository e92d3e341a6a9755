"""Profiles: named settings of clients, each a file of Kafka's settings, readable by their owner alone.

They lie in `$XDG_CONFIG_HOME/riverlog/profiles` (`~/.config`), beside a file that names the one in use.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from riverlog.cli.client_settings import settings_in_file
from riverlog.cli.terminal.exits import CommandError, usage_error
from riverlog.cli.terminal.suggestions import did_you_mean

SUFFIX: Final = ".properties"
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def folder() -> Path:
    """Return where profiles lie."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "riverlog")


def names() -> list[str]:
    """List the profiles."""
    return sorted(path.name.removesuffix(SUFFIX) for path in (folder() / "profiles").glob(f"*{SUFFIX}"))


def in_use() -> str | None:
    """Return the profile that counts where no brokers are named: that of RIVERLOG_PROFILE, or the one chosen last."""
    if name := os.environ.get("RIVERLOG_PROFILE"):
        return name
    try:
        return (folder() / "profile").read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def use(name: str | None) -> None:
    """Choose the profile in use, or none."""
    if name is None:
        (folder() / "profile").unlink(missing_ok=True)
        return
    settings(name)
    (folder() / "profile").write_text(f"{name}\n", encoding="utf-8")


def settings(name: str) -> dict[str, str]:
    """Read a profile."""
    path = _path(name)
    if not path.is_file():
        hint = did_you_mean(name, names()) or "; `riverlog profile list` shows what there is"
        raise usage_error(f"there is no profile {name}{hint}")
    return settings_in_file(str(path))


def create(name: str, contents: Mapping[str, str]) -> Path:
    """Write a new profile."""
    path = _path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{each}={_escaped(value)}\n" for each, value in contents.items()]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # it may hold a password
    except FileExistsError:
        sentence = f"profile {name} exists already; delete it first, or edit {path}"
        raise CommandError(sentence) from None
    with open(descriptor, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def delete(name: str) -> None:
    """Delete a profile; where it was in use, none is."""
    settings(name)
    if in_use() == name:
        use(None)
    _path(name).unlink()


def _path(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise usage_error(f"'{name}' cannot be the name of a profile; use letters, digits, '.', '_' and '-'")
    return folder() / "profiles" / f"{name}{SUFFIX}"


def _escaped(value: str) -> str:
    """Write a value so that a file of settings gives it back as it is."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{text}" if text[:1] in (" ", "=", ":") else text
