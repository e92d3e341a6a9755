"""How a command ends: the exit codes, and the exception that carries a sentence to the person who typed it."""

from enum import IntEnum, unique
from typing import Final


@unique
class ExitCode(IntEnum):
    """What a script may rely on; `MEANINGS` explains each."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
    FOUND = 5
    INTERRUPTED = 130


MEANINGS: Final = {
    ExitCode.DONE: "done; also when the output was closed early, as by `head`",
    ExitCode.FAILED: "failed on this machine: a file, a line of input, a port, memory, a missing package",
    ExitCode.USAGE: "the command line or a setting is wrong; nothing was done",
    ExitCode.UNREACHABLE: "no broker could be reached, or none answered in time",
    ExitCode.REFUSED: "the cluster answered and said no",
    ExitCode.FOUND: "a check (doctor, verify, log dump, storage info) found a problem",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C or SIGTERM (dev and serve stop cleanly and give 0)",
}


class CommandError(Exception):
    """A command cannot go on. The message is one sentence: what, why, and what to do about it."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class BadInput(CommandError):
    """A line of input, or all of it, cannot be a record; what came before it may have been sent."""


def usage_error(message: str) -> CommandError:
    """Create the error for something typed wrongly."""
    return CommandError(message, ExitCode.USAGE)
