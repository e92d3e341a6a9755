"""Commands and replies are plain facts: nothing in them can be changed once they are sent."""

from dataclasses import FrozenInstanceError, is_dataclass
from types import UnionType
from typing import get_args

import pytest

from riverlog.groups.commands import CodesReply, GroupsCommand


def test_every_command_is_frozen_and_slotted() -> None:
    assert isinstance(GroupsCommand, UnionType)
    for command in get_args(GroupsCommand):
        assert is_dataclass(command)
        assert command.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert "__slots__" in vars(command)


def test_replies_are_too() -> None:
    reply = CodesReply(())
    with pytest.raises(FrozenInstanceError):
        reply.codes = ()  # type: ignore[misc]
