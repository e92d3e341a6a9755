"""One setting: its name, what a value may be, and the sentence that explains it.

Values travel as text, the way files, variables, the wire and the metadata log carry them; `read` turns text into
a checked value, or raises `BadSetting` with one sentence that says what is wrong and what would be right.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
LONG_DIGITS_MAX: Final = 19
INT_DIGITS_MAX: Final = 10

Value = bool | int | float | str | tuple[str, ...]


class BadSetting(ValueError):
    """A setting that does not exist or a value that it cannot take; the text is a sentence for a person."""


class SettingType(IntEnum):
    """What a value is, by the number that DescribeConfigs uses for it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class SettingSource(IntEnum):
    """Where a value was set, by the number that DescribeConfigs uses for it; that of a group is the strongest."""

    TOPIC = 1
    NODE = 2
    CLUSTER = 3
    STATIC = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True)
class NodeSettingName:
    """A name under which a node sets a value for itself or for all its topics, and that name's unit."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A row of the table of settings.

    `node_names` are the names that may stand in a node's configuration, strongest first; for a setting of
    topics they give the value for topics that say nothing themselves, and are empty where a node has no say.
    """

    name: str
    kind: SettingType
    default: str
    doc: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    node_names: tuple[NodeSettingName, ...] = ()
    dynamic: bool = False
    check: Callable[[Value], str | None] | None = None
    """Looks at a value that is otherwise fine; gives what is wrong with it, or None."""

    @property
    def sensitive(self) -> bool:
        """Return whether a value must never be shown."""
        return self.kind is SettingType.PASSWORD

    def read(self, text: str, *, name: NodeSettingName | None = None) -> Value:
        """Read the value that the text stands for, in this setting's own unit; BadSetting if it is none."""
        unit_name = name or NodeSettingName(self.name)
        try:
            value = _parse(self.kind, text.strip())
        except ValueError:
            raise BadSetting(f"{unit_name.name} cannot be {text!r}: it takes {self.range}.") from None
        if isinstance(value, int | float) and not isinstance(value, bool):
            # -1 and other negative values are signs ("no limit"), not amounts: they have no unit.
            value = value * unit_name.factor if value > 0 else value
        problem = self._problem(value)
        if problem:
            raise BadSetting(f"{unit_name.name} cannot be {text!r}: {problem}.")
        return value

    @property
    def range(self) -> str:
        """Describe in words which values are possible."""
        if self.choices:
            some = "any of " if self.kind is SettingType.LIST else ""
            return some + " or ".join(self.choices) if len(self.choices) < 3 else some + ", ".join(self.choices)
        match self.kind:
            case SettingType.BOOLEAN:
                return "true or false"
            case SettingType.INT | SettingType.LONG | SettingType.DOUBLE:
                noun = "a number" if self.kind is SettingType.DOUBLE else "a whole number"
                if self.least is None:
                    return noun
                if self.most is None:
                    return f"{noun} of at least {self.least:,.15g}"
                return f"{noun} from {self.least:,.15g} to {self.most:,.15g}"
            case SettingType.LIST:
                return "a list with commas"
            case SettingType.STRING | SettingType.PASSWORD:
                return "a text"

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the smallest and the largest number that is allowed."""
        widest = {SettingType.INT: INT_MAX, SettingType.LONG: LONG_MAX}.get(self.kind, float("inf"))
        return (
            -widest if self.least is None else self.least,
            widest if self.most is None else self.most,
        )

    def _problem(self, value: Value) -> str | None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            least, most = self.bounds
            if not least <= value <= most:
                return f"it takes {self.range}" if value < least or self.most is not None else "it is too large"
        elif self.choices:
            chosen = value if isinstance(value, tuple) else (value,)
            if any(each not in self.choices for each in chosen):
                return f"it takes {self.range}"
        return self.check(value) if self.check else None


def _parse(kind: SettingType, text: str) -> Value:
    match kind:
        case SettingType.BOOLEAN:
            return _truth(text.lower())
        case SettingType.INT | SettingType.LONG:
            return _whole_number(text)
        case SettingType.DOUBLE:
            number = float(text)
            if number != number:
                raise ValueError(text)
            return number
        case SettingType.LIST:
            return tuple(part for part in (piece.strip() for piece in text.split(",")) if part)
        case SettingType.STRING | SettingType.PASSWORD:
            return text


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _whole_number(text: str) -> int:
    # int() also takes "1_000" and other scripts' digits, which no Kafka tool could read back.
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= LONG_DIGITS_MAX):
        raise ValueError(text)
    return int(text)
