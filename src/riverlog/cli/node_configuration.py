"""A node's configuration as the commands read it that start a node, or prepare its folders: file, variables, flags."""

import os
from collections.abc import Sequence
from typing import Final

import click

from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.cli.terminal.text_files import text_of
from riverlog.model.properties import line_numbers, read_properties
from riverlog.model.resolution import Configuration, configure
from riverlog.model.setting import BadSetting

set_option: Final = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any setting; `config explain` lists them."
)


def configuration_from(config: str | None, settings: Sequence[str]) -> Configuration:
    """Read a file of settings, if one is named, then RIVERLOG_* variables, then what --set gives."""
    try:
        text = text_of(config) if config is not None else ""
        file = read_properties(text)
    except BadSetting as error:
        raise usage_error(f"{config}: {error}") from error
    lines = {name: f"line {number} of {config}" for name, number in line_numbers(text).items()}
    return configured("serve", file=file, flags=pairs(settings, option="--set"), lines=lines)


def configured(
    profile: str, *, flags: dict[str, str], file: dict[str, str] | None = None, lines: dict[str, str] | None = None
) -> Configuration:
    """Resolve the settings; what is wrong with them is one sentence."""
    try:
        return configure(profile=profile, file=file, variables=os.environ, flags=flags, lines=lines)
    except BadSetting as error:
        raise usage_error(
            f"{str(error)[:1].lower()}{str(error)[1:]} `riverlog config explain` lists every setting"
        ) from error
