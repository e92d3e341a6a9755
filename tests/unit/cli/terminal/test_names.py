"""What a command is about, named in one way or the other."""

from functools import partial

import click
import pytest

from riverlog.cli.terminal.exits import CommandError
from riverlog.cli.terminal.names import Naming

PARCEL = Naming("parcel", "--parcel")


def the(*arguments: str) -> str:
    @click.command
    @PARCEL.one
    def command(name: str) -> str:
        return name

    seen: str = command(arguments, standalone_mode=False)
    return seen


def those(*arguments: str) -> list[str]:
    @click.command
    @PARCEL.many
    def command(names: list[str]) -> list[str]:
        return names

    seen: list[str] = command(arguments, standalone_mode=False)
    return seen


def test_one_is_named_either_way() -> None:
    assert the("a") == the("--parcel", "a") == the("a", "--parcel", "a") == "a"


def test_two_are_one_too_many() -> None:
    with pytest.raises(CommandError, match="two parcels were named, a and b; name one"):
        the("a", "--parcel", "b")


def test_several_count_once_each() -> None:
    assert those("a", "b", "--parcel", "a", "--parcel", "c") == ["a", "b", "c"]


@pytest.mark.parametrize("arguments", [[], [""], ["--parcel", ""]])
def test_none_is_too_few(arguments: list[str]) -> None:
    for asked in (the, those):
        with pytest.raises(CommandError, match="name a parcel, as NAME or with --parcel NAME"):
            asked(*arguments)


def test_a_name_may_be_left_out_where_another_option_can_take_its_place() -> None:
    @click.command
    @partial(PARCEL.one, required=False)
    def command(name: str | None) -> str | None:
        return name

    assert command([], standalone_mode=False) is None
    assert command(["a"], standalone_mode=False) == "a"
