"""`--watch`: the same again and again; a terminal is drawn anew in its place, a pipe gets one after another."""

import io
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import count
from typing import Any, Final

import click

_HOME: Final = "\x1b[H"
_CLEAR: Final = "\x1b[2J"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"


def watch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --watch and --interval to a command."""
    interval = click.option(
        "--interval",
        type=click.FloatRange(0.1, 3600),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help="How often to look.",
    )
    return click.option("--watch", is_flag=True, help="Look again and again, until Ctrl-C.")(interval(command))


def show_again(show: Callable[[], None], *, watch: bool, interval: float) -> None:
    """Show something, with --watch again and again."""
    if not watch:
        show()
        return
    for number in count():
        with redrawn(first=number == 0):
            show()
        time.sleep(interval)


@contextmanager
def redrawn(*, first: bool) -> Iterator[None]:
    """Draw what is printed meanwhile over what was drawn before, where that is a terminal."""
    if not sys.stdout.isatty():
        yield
        sys.stdout.flush()
        return
    page = _Page()
    with redirect_stdout(page):
        yield
    height = shutil.get_terminal_size().lines - 1
    lines = page.getvalue().splitlines()
    if len(lines) > height:
        lines = [*lines[: height - 1], f"… {len(lines) - height + 1} more lines; a pipe gets all of them"]
    drawn = "".join(f"{line}{_CLEAR_LINE}\n" for line in lines)
    sys.stdout.write(f"{_CLEAR if first else ''}{_HOME}{drawn}{_CLEAR_BELOW}")
    sys.stdout.flush()


class _Page(io.StringIO):
    """What is printed, for a terminal."""

    def isatty(self) -> bool:
        return True
