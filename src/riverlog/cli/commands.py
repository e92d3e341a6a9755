"""Every command, once: its words, where its function lives, its summary. Listing them loads none of them."""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One command; the function is imported when it is called."""

    words: str
    module: str
    function: str
    summary: str
    examples: tuple[str, ...]


GROUPS: Final = {
    "config": "Explain settings",
}

COMMANDS: Final = (
    Command(
        "config explain",
        "riverlog.cli.config",
        "explain",
        "Explain a setting: meaning, type, default, where it is set",
        ("config explain retention.ms", "config explain"),
    ),
    Command("version", "riverlog.cli.version", "version", "Print the version", ("version",)),
)

COMMAND_BY_WORDS: Final = {command.words: command for command in COMMANDS}
