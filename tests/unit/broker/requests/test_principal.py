"""Principals in envelopes, as Kafka's brokers write them."""

import pytest

from riverlog.broker.requests.principal import BadPrincipal, decode_principal, encode_principal
from riverlog.model.access import Principal

HERE = b"\x7f\0\0\1"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_principal_comes_back_with_its_address(host: str) -> None:
    data, address = encode_principal(Principal("ANONYMOUS", host))
    assert decode_principal(data, address) == Principal("ANONYMOUS", host)
    assert data == b"\x00\x00\x05User\x0aANONYMOUS\x00\x00"


@pytest.mark.parametrize(
    ("data", "address"),
    [
        (None, b"\x7f\0\0\1"),
        (b"\0", b"\x7f\0\0\1"),
        (b"\0\1", b"\x7f\0\0\1"),
        (b"\0\0\x05Us", bytes(4)),
        (b"\0\0\1\1\0\0", b""),
    ],
)
def test_bytes_that_name_nobody_are_refused(data: bytes | None, address: bytes) -> None:
    with pytest.raises(BadPrincipal):
        decode_principal(data, address)


def test_a_host_without_an_address_has_none() -> None:
    assert encode_principal(Principal("x", "client"))[1] == bytes(4)
