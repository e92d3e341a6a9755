"""`profile`: settings for a cluster under a name, so that nobody has to type them again."""

import click

from riverlog.cli import profiles
from riverlog.cli.client_settings import addresses, settings_in_file, typed_settings
from riverlog.cli.cluster_options import DEFAULT_BOOTSTRAP
from riverlog.cli.kafka_clients import BOOTSTRAP
from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.names import Naming
from riverlog.cli.terminal.options import (
    bootstrap_option,
    client_settings_option,
    command_config_option,
    output_option,
    text_output_option,
)
from riverlog.cli.terminal.render import OutputFormat, Row, emit, emit_table

PROFILE = Naming("profile", "--name")
_SECRETS = ("password", "jaas", "keystore.key", "key.pem", "secret")

_NO_PROFILES = "There are no profiles; `riverlog profile create NAME -b HOST:PORT` creates one"


@click.command
@PROFILE.one
@bootstrap_option
@command_config_option
@client_settings_option
@output_option
def create(
    name: str,
    bootstrap: str | None,
    command_config: str | None,
    settings: tuple[str, ...],
    output: OutputFormat | None,
) -> None:
    """Save brokers and settings of the client as a profile.

    The file of --command-config is copied into it. Nobody but you can read it. If no profile is in use, as before the
    first one, this one is from then on: commands that name no brokers talk to its brokers. `profile use` chooses
    another.
    """
    contents = {**(settings_in_file(command_config) if command_config else {}), **typed_settings(settings)}
    if bootstrap is not None:
        contents = {BOOTSTRAP[0]: bootstrap, **contents}
    if not contents:
        raise usage_error("nothing to save: give -b HOST:PORT, -X NAME=VALUE or --command-config FILE")
    if BOOTSTRAP[0] in contents:
        addresses(contents[BOOTSTRAP[0]])
    path = profiles.create(name, contents)
    if profiles.in_use() is None:
        profiles.use(name)
    used = profiles.in_use() == name
    row: Row = {"profile": name, "file": str(path), "in_use": used}
    brokers = next((contents[each] for each in BOOTSTRAP if contents.get(each)), DEFAULT_BOOTSTRAP)
    then = (
        f"; it is in use now, and commands that name no brokers talk to {brokers}"
        if used
        else f"; `riverlog profile use {name}` makes commands use it"
    )
    emit([row], output, lambda: print(f"Created profile {name}{then}"))


@click.command
@output_option
def list_profiles(output: OutputFormat | None) -> None:
    """List the profiles."""
    used = profiles.in_use()
    rows = [
        {"profile": name, "brokers": profiles.settings(name).get(BOOTSTRAP[0]), "in_use": name == used}
        for name in profiles.names()
    ]
    shown = [{**row, "in_use": "yes" if row["in_use"] else ""} for row in rows]
    emit(rows, output, lambda: emit_table(shown, OutputFormat.TABLE, ["profile", "brokers", "in use"], _NO_PROFILES))


@click.command
@PROFILE.one
def use(name: str) -> None:
    """Choose the profile for commands that name no brokers.

    -b, RIVERLOG_BOOTSTRAP_SERVERS and --profile come before it.
    """
    profiles.use(name)
    print(f"Commands use profile {name} from now on")


@click.command
@PROFILE.one
@text_output_option
def describe(name: str, output: OutputFormat | None) -> None:
    """Show the settings of a profile; passwords are hidden."""
    shown = {
        each: "********" if any(secret in each for secret in _SECRETS) else value
        for each, value in profiles.settings(name).items()
    }
    lines = [f"Profile {name}{': in use' if profiles.in_use() == name else ''}"]
    lines += [f"Config {each}={value}" for each, value in shown.items()]
    emit([{"profile": name, "configs": shown}], output or OutputFormat.TABLE, lambda: print("\n".join(lines)))


@click.command
@PROFILE.one
def delete(name: str) -> None:
    """Delete a profile."""
    profiles.delete(name)
    print(f"Deleted profile {name}")
