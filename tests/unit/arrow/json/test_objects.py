"""One object or not, by its braces; the property tests compare the compiled form."""

import numpy as np
import pytest

from riverlog.arrow.json.objects import DEPTH_MAX, find_objects


def is_object(value: bytes) -> bool:
    found = np.zeros(1, np.bool_)
    find_objects(value, [0, len(value)], found)
    return bool(found[0])


@pytest.mark.parametrize(
    "value",
    [
        b"{}",
        b' \t\r\n{"a": [1, {"b": "}"}]}\n',
        b'{"a": "\\"}"}',
        b'{"a": "\\\\"}',
        b"{" * DEPTH_MAX + b"}" * DEPTH_MAX,
    ],
)
def test_objects(value: bytes) -> None:
    assert is_object(value)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"null",
        b"[{}]",
        b"{}{}",
        b"{} x",
        b"x{}",
        b"{",
        b"}",
        b'{"}',
        b"{}\0",
        b"{\0}",
        b"[" * 600 + b"]" * 600,
        b"{" * (DEPTH_MAX + 1) + b"}" * (DEPTH_MAX + 1),
    ],
)
def test_what_is_no_object(value: bytes) -> None:
    assert not is_object(value)
