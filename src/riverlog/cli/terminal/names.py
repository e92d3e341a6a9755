"""What a command is about can be named in two ways, `NAME` or `--group NAME`: each described and judged once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from riverlog.cli.terminal.exits import usage
from riverlog.cli.terminal.options import Argument


@dataclass(frozen=True)
class Naming:
    """A kind of thing that has a name, and the option for it beside the argument."""

    noun: str
    option: str

    def one(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """Let a command take `name` and `name_option`; `the` says which is meant."""
        argument = click.argument("name", cls=Argument, required=False, metavar="NAME", help=self._help("The", ""))
        option = click.option(self.option, "name_option", metavar="NAME", help=f"The {self.noun}.")
        return argument(option(command))

    def many(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """Let a command take `names` and `names_option`; `all` says which are meant."""
        argument = click.argument("names", cls=Argument, nargs=-1, metavar="NAME", help=self._help("The", "s"))
        option = click.option(self.option, "names_option", multiple=True, metavar="NAME", help=f"A {self.noun}.")
        return argument(option(command))

    def the(self, name: str | None, name_option: str | None) -> str:
        """Give the one that is named, in either way or in both."""
        if name is not None and name_option is not None and name != name_option:
            raise usage(f"two {self.noun}s were named, {name} and {name_option}; name one")
        return self._given(name or name_option)

    def all(self, names: tuple[str, ...], names_option: tuple[str, ...]) -> list[str]:
        """Give those that are named, each once; at least one must be."""
        return [self._given(name) for name in dict.fromkeys(names + names_option or [""])]

    def _given(self, name: str | None) -> str:
        if not name:
            raise usage(f"name a {self.noun}, as NAME or with {self.option} NAME")
        return name

    def _help(self, article: str, ending: str) -> str:
        return f"{article} {self.noun}{ending}; {self.option} does the same."
