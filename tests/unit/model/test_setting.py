"""One setting: what it reads, what it refuses, what it says about itself."""

import pytest

from riverlog.model.setting import BadSetting, Kind, NodeName, Setting


def setting(kind: Kind, **more: object) -> Setting:
    return Setting(name="some.name", kind=kind, default="", doc="Something to set.", **more)  # type: ignore[arg-type]  # tests say little


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, "TRUE", True),
        (Kind.BOOLEAN, " false ", False),
        (Kind.INT, " 42 ", 42),
        (Kind.INT, "+7", 7),
        (Kind.LONG, "-1", -1),
        (Kind.DOUBLE, "0.25", 0.25),
        (Kind.LIST, " a , b ,, ", ("a", "b")),
        (Kind.LIST, "", ()),
        (Kind.STRING, " x ", "x"),
        (Kind.PASSWORD, "secret", "secret"),
    ],
)
def test_text_becomes_a_value(kind, text, value):
    assert setting(kind).read(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.BOOLEAN, "1"),
        (Kind.BOOLEAN, ""),
        (Kind.INT, ""),
        (Kind.INT, "1.0"),
        (Kind.INT, "1_000"),
        (Kind.INT, "\u0663"),
        (Kind.INT, str(2**31)),
        (Kind.LONG, str(2**63)),
        (Kind.LONG, "9" * 5000),
        (Kind.DOUBLE, "nan"),
        (Kind.DOUBLE, "x"),
    ],
)
def test_text_that_is_no_value_is_refused(kind, text):
    with pytest.raises(BadSetting, match=r"^some\.name cannot be "):
        setting(kind).read(text)


def test_a_coarser_unit_is_multiplied_but_signs_are_kept():
    retention = setting(Kind.LONG, least=-1)
    hours = NodeName("some.hours", 3_600_000)
    assert retention.read("2", name=hours) == 7_200_000
    assert retention.read("-1", name=hours) == -1
    with pytest.raises(BadSetting, match=r"^some\.hours cannot be"):
        retention.read("-2", name=hours)
    with pytest.raises(BadSetting, match="too large"):
        retention.read(str(2**62), name=hours)


def test_choices_and_checks_are_kept():
    colours = setting(Kind.LIST, choices=("red", "blue", "green"))
    assert colours.read("blue,red") == ("blue", "red")
    with pytest.raises(BadSetting, match="it takes any of red, blue, green"):
        colours.read("blue,pink")
    even = setting(Kind.INT, check=lambda value: "it is odd" if value % 2 else None)  # type: ignore[operator]  # an int
    with pytest.raises(BadSetting, match="it is odd"):
        even.read("3")


def test_passwords_are_sensitive():
    assert setting(Kind.PASSWORD).sensitive
    assert not setting(Kind.STRING).sensitive
