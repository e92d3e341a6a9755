"""Which requests a web page may have sent."""

import socket

import pytest

from riverlog.observe.web_guard import CALL_HEADER, WebGuard, is_call, names_of_node

GUARD = WebGuard(["Node.Example.org.", "*.svc.local", ""])


def refusal(guard: WebGuard = GUARD, **headers: str) -> str | None:
    return guard.refusal(
        [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    )


@pytest.mark.parametrize(
    "host",
    [
        "localhost:9870",
        "LOCALHOST",
        "api.localhost:9870",
        "127.0.0.1:9870",
        "127.0.0.1",
        "[::1]:9870",
        "[::1]",
        "10.1.2.3:9870",
        "node.example.org",
        "NODE.example.org.:9870",
        "riverlog-0.svc.local:9870",
    ],
)
def test_names_and_addresses_of_the_node_are_taken(host: str) -> None:
    assert refusal(host=host) is None
    assert refusal(host=host, origin=f"http://{host}", sec_fetch_site="same-origin") is None
    assert refusal(host=host, sec_fetch_site="none") is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:9870",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil-node.example.org",
        "svc.local",
        "xsvc.local",
        "",
        ":9870",
        "127.0.0.1:x",
        "[::1",
        "[::1]x",
        "localhost@evil.example",
        "l\xf6calhost",
    ],
)
def test_other_names_are_refused_with_the_setting_that_would_help(host: str) -> None:
    reason = refusal(host=host)
    assert reason is not None
    assert "http.allowed.hosts" in reason


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": "https://localhost:9870"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "anything"},
    ],
)
def test_pages_of_other_sites_are_refused(headers: dict[str, str]) -> None:
    reason = refusal(host="localhost:9870", **headers)
    assert reason is not None
    assert "web page" in reason


def test_a_request_without_a_host_is_no_browsers() -> None:
    assert refusal() is None
    assert refusal(origin="http://localhost") is not None
    assert GUARD.refusal([(b"host", b"localhost"), (b"host", b"evil.example")]) is not None


def test_any_name_may_be_allowed_and_still_no_other_page() -> None:
    assert refusal(WebGuard(["*"]), host="proxy.example") is None
    assert refusal(WebGuard(["*"]), host="proxy.example", origin="http://evil.example") is not None


def test_a_call_is_known_by_its_header() -> None:
    assert is_call([(b"host", b"localhost"), (CALL_HEADER.lower().encode(), b"")])
    assert not is_call([(b"host", b"localhost")])


def test_a_node_is_known_by_its_machine() -> None:
    assert {"listens", socket.gethostname(), "allowed"} <= set(names_of_node(["listens"], ["allowed"]))
