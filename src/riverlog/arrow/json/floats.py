"""Numbers that Spark's `to_json` writes as text, for JSON has none such: NaN and the infinities.

The parser reads them without quotes. So a value that it cannot read is looked through for such text in fields of
floating numbers, and written anew. Values without any are not touched.
"""

import json
import re
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

_NAMES: Final = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "+Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "+INF": "Infinity",
    "-INF": "-Infinity",
}
_MAYBE: Final = re.compile(rb'"(?:NaN|[+-]?Infinity|[+-]INF)"')


class _Repeated(ValueError):
    """A name comes twice in an object."""


def unquoted(value: bytes, schema: pa.Schema) -> bytes | None:
    """Return a value with such numbers as the parser reads them; None where there are none, or it is no JSON."""
    if _MAYBE.search(value) is None:
        return None
    try:
        found = json.loads(value, parse_float=Decimal, parse_constant=_constant, object_pairs_hook=_object)
        return _written(found, pa.struct(list(schema))).encode()
    except (ValueError, RecursionError):
        return None


class _Constant(str):
    """A number that has a name, as it is written without quotes."""

    __slots__ = ()


def _constant(name: str) -> _Constant:
    return _Constant(name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Repeated
    return found


def _written(found: Any, kind: pa.DataType | None) -> str:
    """Write what was read; `kind` is None where the schema says nothing."""
    match found:
        case dict():
            fields = (
                {kind.field(index).name: kind.field(index).type for index in range(kind.num_fields)}
                if (kind is not None and pa.types.is_struct(kind))
                else {}
            )
            inside = ",".join(f"{json.dumps(name)}:{_written(each, fields.get(name))}" for name, each in found.items())
            return f"{{{inside}}}"
        case list():
            inner = kind.value_type if kind is not None and pa.types.is_list(kind) else None
            return f"[{','.join(_written(each, inner) for each in found)}]"
        case _Constant() | Decimal():
            return str(found)
        case str() if kind is not None and pa.types.is_floating(kind) and found in _NAMES:
            return _NAMES[found]
        case _:
            return json.dumps(found)
