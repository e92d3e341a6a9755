"""Where a cluster is reached, as people write it."""

import pytest

from riverlog.model.addresses import parse_addresses
from riverlog.model.ids import Address


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("127.0.0.1:9092", [("127.0.0.1", 9092)]),
        ("a:1, b:2,", [("a", 1), ("b", 2)]),
        (["a", "b:2"], [("a", 9092), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("fe80::1", [("fe80::1", 9092)]),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str | list[str], addresses: list[tuple[str, int]]) -> None:
    assert parse_addresses(text) == tuple(Address(*address) for address in addresses)


@pytest.mark.parametrize("text", ["", " , ", "host:port", "host:0", "host:70000", ":9092"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9092"):
        parse_addresses(text)


@pytest.mark.parametrize(("text", "meant"), [("http://a:9644", '"a:9644", without http://'), ("SSL://", '"host:port"')])
def test_an_address_has_no_protocol(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"write {meant}"):
        parse_addresses(text)
