"""Files of text that people name on the command line."""

from riverlog.cli.terminal.exits import usage_error


def text_of(path: str) -> str:
    """Read a file of text; refuse one that is none, such as a keystore or a file of another encoding."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise usage_error(f"{path} is no text in UTF-8 (byte {error.start + 1}); save it as UTF-8") from error
