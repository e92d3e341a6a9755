"""Listeners as settings write them."""

import pytest

from riverlog.model.endpoints import Endpoint, read_endpoints
from riverlog.model.setting import BadSetting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PLAINTEXT://broker-1:9092", Endpoint("PLAINTEXT", "broker-1", 9092)),
        ("plaintext://:0", Endpoint("PLAINTEXT", "", 0)),
        ("INTERNAL://[::1]:9092", Endpoint("INTERNAL", "::1", 9092)),
    ],
)
def test_a_listener_is_a_name_a_host_and_a_port(text, expected):
    assert read_endpoints((text,)) == (expected,)
    assert read_endpoints((str(expected),)) == (expected,)


@pytest.mark.parametrize(
    "text", ["", "h:1", "A://h", "A://h:", "A://h:x", "A://h:70000", "A://h:-1", "://h:1", "A://h:\u0663"]
)
def test_anything_else_is_refused_in_one_sentence(text):
    with pytest.raises(BadSetting, match="cannot be understood; write NAME://host:port"):
        read_endpoints((text,))


def test_ipv6_addresses_need_brackets():
    with pytest.raises(BadSetting, match="write \\[::1\\]:9092"):
        read_endpoints(("PLAINTEXT://::1:9092",))


def test_two_listeners_cannot_have_one_name():
    with pytest.raises(BadSetting, match="Two listeners are called A"):
        read_endpoints(("A://:1", "a://:2"))
