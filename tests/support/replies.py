"""Replies are what the types of their commands promise: mypy cannot look into a machine's answers, so tests do."""

import sys
from functools import cache
from itertools import repeat
from typing import Any, ForwardRef, get_args, get_origin


@cache
def promised_by(command: type) -> tuple[Any, Any]:
    """Return the records and the reply that a class of commands promises."""
    (base,) = command.__orig_bases__  # type: ignore[attr-defined]  # it is generic
    records, reply = get_args(base)
    if isinstance(reply, ForwardRef):
        reply = eval(reply.__forward_arg__, vars(sys.modules[command.__module__]))
    return records, reply


def check_reply(command: object, response: object) -> None:
    """Compare a response with what its command promises; of many, each."""
    _, promised = promised_by(type(command))
    assert _is(response, promised), f"{response} answers {command}"


def _is(value: object, promised: Any) -> bool:
    if get_origin(promised) is not tuple:
        return isinstance(value, promised)
    kinds = get_args(promised)
    if not isinstance(value, tuple):
        return False
    return all(map(_is, value, repeat(kinds[0]) if kinds[-1] is ... else kinds))
