"""Python source under construction: lines at a depth and the names they use; and the least that a type can take."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from riverlog.wire.types import Array, Fixed, Struct, Type, Variable, fields_of


class FunctionSource:
    """One function being written. `names` are the objects that its lines refer to."""

    def __init__(self, signature: str, names: dict[str, object]) -> None:
        self.names = dict(names)
        self._lines = [f"def {signature}:"]
        self._depth = 1
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Write `opening:` and put what follows one level deeper."""
        self.line(opening + ":")
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self) -> str:
        """Return the name of a new local variable."""
        self._count += 1
        return f"v{self._count}"

    def name(self, value: object, wish: str) -> str:
        """Return the name under which the function finds `value`, named as near to the wish as is free."""
        while self.names.setdefault(wish, value) is not value:
            wish += "_"
        return wish

    def struct(self, codes: str, method: str) -> tuple[str, int]:
        """Return the name of a struct's method and the struct's size."""
        packed = struct.Struct(">" + codes)
        name = f"{method}_{codes.replace('?', '_')}"
        self.names.setdefault(name, getattr(packed, method))
        return name, packed.size

    def compiled(self, function: str, title: str) -> Callable[..., Any]:
        """Compile what was written; `title` stands in tracebacks."""
        exec(compile(self.text, f"<{title}>", "exec"), self.names)
        compiled: Callable[..., Any] = self.names[function]  # type: ignore[assignment]  # it was just defined
        return compiled

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def bytes_min(type_: Type, version: int, flexible: bool) -> int:
    """Return how few bytes a value of this type can take, so that a count can be held against the bytes left."""
    match type_:
        case Fixed(size=size):
            return size
        case Variable(length_code=code):
            return 1 if flexible else {"h": 2, "i": 4}[code]
        case Array():
            return 1 if flexible else 4
        case Struct(declaration=declaration):
            untagged = [
                field for field in fields_of(declaration) if field.wire.is_in(version) and field.wire.tag is None
            ]
            return flexible + sum(
                1  # a null struct is the byte that says so
                if isinstance(field.type, Struct) and field.wire.is_nullable_in(version)
                else bytes_min(field.type, version, flexible)
                for field in untagged
            )
