"""A setting becomes a field that holds its value and carries its row."""

from dataclasses import dataclass

from riverlog.model.row import row, rows_of
from riverlog.model.setting import Setting, SettingType

WORDS = Setting(name="some.words", kind=SettingType.LIST, default="a,b", doc="Words.")
NUMBER = Setting(name="a.number", kind=SettingType.INT, default="5", doc="A number.")


@dataclass(frozen=True, slots=True)
class Config:
    number: int = row(NUMBER)
    has_a: bool = row(WORDS, lambda value: isinstance(value, tuple) and "a" in value)
    has_c: bool = row(WORDS, lambda value: isinstance(value, tuple) and "c" in value)
    note: str = ""


def test_a_field_starts_out_as_its_default_reads() -> None:
    assert Config() == Config(number=5, has_a=True, has_c=False, note="")


def test_rows_come_once_each_in_the_order_of_the_fields() -> None:
    assert list(rows_of(Config).items()) == [("a.number", NUMBER), ("some.words", WORDS)]
