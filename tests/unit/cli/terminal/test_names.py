"""What a command is about, named in one way or the other."""

import click
import pytest

from riverlog.cli.terminal.exits import Trouble
from riverlog.cli.terminal.names import Naming

PARCEL = Naming("parcel", "--parcel")


def the(*arguments: str) -> str:
    @click.command
    @PARCEL.one
    def command(name: str | None, name_option: str | None) -> str:
        return PARCEL.the(name, name_option)

    seen: str = command(arguments, standalone_mode=False)
    return seen


def those(*arguments: str) -> list[str]:
    @click.command
    @PARCEL.many
    def command(names: tuple[str, ...], names_option: tuple[str, ...]) -> list[str]:
        return PARCEL.all(names, names_option)

    seen: list[str] = command(arguments, standalone_mode=False)
    return seen


def test_one_is_named_either_way() -> None:
    assert the("a") == the("--parcel", "a") == the("a", "--parcel", "a") == "a"


def test_two_are_one_too_many() -> None:
    with pytest.raises(Trouble, match="two parcels were named, a and b; name one"):
        the("a", "--parcel", "b")


def test_several_count_once_each() -> None:
    assert those("a", "b", "--parcel", "a", "--parcel", "c") == ["a", "b", "c"]


@pytest.mark.parametrize("arguments", [[], [""], ["--parcel", ""]])
def test_none_is_too_few(arguments: list[str]) -> None:
    for asked in (the, those):
        with pytest.raises(Trouble, match="name a parcel, as NAME or with --parcel NAME"):
            asked(*arguments)
