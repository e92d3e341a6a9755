"""Every bound of every room is a number, stands once, and says what happens beyond it."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import riverlog

ROOMS = sorted(path.parent.name for path in Path(riverlog.__file__).parent.glob("*/limits.py"))


def limits_of(room: str) -> ModuleType:
    return import_module(f"riverlog.{room}.limits")


def stated_in(room: str) -> list[str]:
    """Name the bounds that a room states; others it may import to reckon with them."""
    return re.findall(r"^([A-Z_]+): Final", Path(str(limits_of(room).__file__)).read_text(), re.MULTILINE)


@pytest.mark.parametrize("room", ROOMS)
def test_every_limit_is_positive_and_explained(room: str) -> None:
    limits = limits_of(room)
    text = Path(str(limits.__file__)).read_text()
    names = [name for name in vars(limits) if name.isupper()]
    assert stated_in(room)
    for name in names:
        assert getattr(limits, name) > 0
    for name in stated_in(room):
        assert re.search(rf'^{name}: Final = .*\n"""', text, re.MULTILINE), name


def test_every_limit_stands_once() -> None:
    names = [name for room in ROOMS for name in stated_in(room)]
    assert len(names) == len(set(names)) > 100
