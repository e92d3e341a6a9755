"""One setting: what it reads, what it refuses, what it says about itself."""

import pytest

from riverlog.model.setting import BadSetting, NodeSettingName, Setting, SettingType


def setting(kind: SettingType, **more: object) -> Setting:
    return Setting(name="some.name", kind=kind, default="", doc="Something to set.", **more)  # type: ignore[arg-type]  # tests say little


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SettingType.BOOLEAN, "TRUE", True),
        (SettingType.BOOLEAN, " false ", False),
        (SettingType.INT, " 42 ", 42),
        (SettingType.INT, "+7", 7),
        (SettingType.LONG, "-1", -1),
        (SettingType.DOUBLE, "0.25", 0.25),
        (SettingType.LIST, " a , b ,, ", ("a", "b")),
        (SettingType.LIST, "", ()),
        (SettingType.STRING, " x ", "x"),
        (SettingType.PASSWORD, "secret", "secret"),
    ],
)
def test_text_becomes_a_value(kind, text, value):
    assert setting(kind).read(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SettingType.BOOLEAN, "1"),
        (SettingType.BOOLEAN, ""),
        (SettingType.INT, ""),
        (SettingType.INT, "1.0"),
        (SettingType.INT, "1_000"),
        (SettingType.INT, "\u0663"),
        (SettingType.INT, str(2**31)),
        (SettingType.LONG, str(2**63)),
        (SettingType.LONG, "9" * 5000),
        (SettingType.DOUBLE, "nan"),
        (SettingType.DOUBLE, "x"),
    ],
)
def test_text_that_is_no_value_is_refused(kind, text):
    with pytest.raises(BadSetting, match=r"^some\.name cannot be "):
        setting(kind).read(text)


def test_a_coarser_unit_is_multiplied_but_signs_are_kept():
    retention = setting(SettingType.LONG, least=-1)
    hours = NodeSettingName("some.hours", 3_600_000)
    assert retention.read("2", name=hours) == 7_200_000
    assert retention.read("-1", name=hours) == -1
    with pytest.raises(BadSetting, match=r"^some\.hours cannot be"):
        retention.read("-2", name=hours)
    with pytest.raises(BadSetting, match="too large"):
        retention.read(str(2**62), name=hours)


def test_choices_and_checks_are_kept():
    colours = setting(SettingType.LIST, choices=("red", "blue", "green"))
    assert colours.read("blue,red") == ("blue", "red")
    with pytest.raises(BadSetting, match="it takes any of red, blue, green"):
        colours.read("blue,pink")
    even = setting(SettingType.INT, check=lambda value: "it is odd" if value % 2 else None)  # type: ignore[operator]  # an int
    with pytest.raises(BadSetting, match="it is odd"):
        even.read("3")


def test_passwords_are_sensitive():
    assert setting(SettingType.PASSWORD).sensitive
    assert not setting(SettingType.STRING).sensitive
