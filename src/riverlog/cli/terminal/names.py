"""The name of what a command is about: as the argument `NAME` or with an option such as `--group NAME`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.options import Argument


@dataclass(frozen=True)
class Naming:
    """A kind of thing that has a name, and the option for it beside the argument."""

    noun: str
    option: str

    def one(self, command: Callable[..., Any], *, required: bool = True) -> Callable[..., Any]:
        """Add the argument and the option to a command, which takes them as `name`; None if it may be missing."""

        @wraps(command)
        def call(*, name: str | None, name_option: str | None, **rest: Any) -> Any:
            if name is not None and name_option is not None and name != name_option:
                raise usage_error(f"two {self.noun}s were named, {name} and {name_option}; name one")
            named = name_option if name is None else name
            return command(name=self._checked(named) if required or named is not None else None, **rest)

        argument = click.argument("name", cls=Argument, required=False, metavar="NAME", help=self._help())
        return argument(click.option(self.option, "name_option", metavar="NAME", help=f"The {self.noun}.")(call))

    def many(self, command: Callable[..., Any], *, required: bool = True) -> Callable[..., Any]:
        """Add the argument and the option to a command, which takes each name once in `names`; none means all."""

        @wraps(command)
        def call(*, names: tuple[str, ...], names_option: tuple[str, ...], **rest: Any) -> Any:
            named = names + names_option or ([""] if required else [])
            return command(names=[self._checked(name) for name in dict.fromkeys(named)], **rest)

        option = click.option(self.option, "names_option", multiple=True, metavar="NAME", help=f"A {self.noun}.")
        return click.argument("names", cls=Argument, nargs=-1, metavar="NAME", help=self._help("s", required))(
            option(call)
        )

    def _checked(self, name: str | None) -> str:
        if not name:
            raise usage_error(f"name a {self.noun}, as NAME or with {self.option} NAME")
        return name

    def _help(self, ending: str = "", required: bool = True) -> str:
        return f"The {self.noun}{ending}; {self.option} does the same.{'' if required else ' Without it: all.'}"
