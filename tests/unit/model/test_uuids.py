"""Uuids as Kafka writes them."""

from uuid import UUID

import pytest

from riverlog.model.uuids import decode_uuid, encode_uuid

KNOWN = UUID("0d1e2f30-4152-6374-8596-a7b8c9daebfc")


def test_a_uuid_has_kafkas_form() -> None:
    assert encode_uuid(KNOWN) == "DR4vMEFSY3SFlqe4ydrr_A"
    assert decode_uuid("DR4vMEFSY3SFlqe4ydrr_A") == KNOWN


@pytest.mark.parametrize("text", ["", "abc", "DR4vMEFSY3SFlqe4ydrr_A_A"])
def test_other_text_is_no_uuid(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # its wording is the library's
        decode_uuid(text)
