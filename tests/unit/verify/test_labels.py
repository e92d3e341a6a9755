"""Records that say who they are."""

import pytest

from riverlog.verify.labels import name_of, value_of


@pytest.mark.parametrize("size", [0, 7, 40, 1_000])
def test_a_value_says_whose_it_is(size: int) -> None:
    value = value_of("p1-17", size)
    assert len(value) == max(size, len(f"p1-17 {size}|"))
    assert name_of(b"p1-17", value) == "p1-17"


@pytest.mark.parametrize("position", [0, 3, 8, 30, 99])
def test_a_single_altered_byte_is_noticed(position: int) -> None:
    value = bytearray(value_of("p1-17", 100))
    value[position] ^= 1
    assert name_of(b"p1-17", bytes(value)) != "p1-17"


@pytest.mark.parametrize("value", [None, b"", b"x", b"x y|", b"x 9999999999999|", b"\xff 1|", b"x 5|x 5|x"])
def test_what_is_none_of_ours_gets_a_name_that_no_record_has(value: bytes | None) -> None:
    assert name_of(b"x", value).startswith(f"{len(value or b'')} bytes b'")


def test_half_a_value_and_a_wrong_key_are_noticed() -> None:
    assert name_of(b"p", value_of("p", 100)[:99]).startswith("99 bytes b'p 100|p 100|")
    assert name_of(None, value_of("p", 100)) == "p with the key None"
