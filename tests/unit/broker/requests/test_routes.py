"""Repeated requests are recognised by their bytes, as long as what was found out about them holds."""

from riverlog.broker.limits import REPEATED_HEAD_BYTES_MAX, ROUTES_PER_CONNECTION_MAX
from riverlog.broker.requests.routes import Route, Routes
from riverlog.observe.stats import RequestStats

RULES = 3


class Anywhere:
    kind = 9
    stats = RequestStats("Produce")

    def take(self, frame: memoryview, position: int, correlation_id: int) -> None:
        raise AssertionError


def frame(head: bytes, correlation_id: int = 5) -> memoryview:
    return memoryview(b"\0\0\0\x09" + correlation_id.to_bytes(4, "big") + head + b"batch")


def found(routes: Routes, asked: memoryview) -> Route | None:
    if routes.head_bytes >= len(asked):
        return None
    _kind, _correlation_id, head = routes.take_apart(asked)
    return routes.known.get(head)


def test_the_same_head_leads_to_the_same_place_whatever_the_correlation_id() -> None:
    routes, route = Routes(), Anywhere()
    assert found(routes, frame(b"orders")) is None
    routes.learn(frame(b"orders"), 14, route, RULES)
    assert found(routes, frame(b"orders", 77)) is route
    assert routes.take_apart(frame(b"orders", 77)) == (9, 77, b"orders")
    assert found(routes, frame(b"orderz")) is None
    assert found(routes, memoryview(b"short")) is None


def test_other_access_rules_or_another_length_begins_anew() -> None:
    routes, route = Routes(), Anywhere()
    routes.learn(frame(b"orders"), 14, route, RULES)
    routes.learn(frame(b"others"), 14, route, RULES)
    assert len(routes.known) == 2
    routes.learn(frame(b"orders"), 14, route, RULES + 1)
    assert len(routes.known) == 1
    routes.learn(frame(b"payments"), 16, route, RULES)
    assert found(routes, frame(b"payments")) is route
    assert found(routes, frame(b"orders")) is None


def test_a_connection_knows_so_many_and_no_more() -> None:
    routes, route = Routes(), Anywhere()
    for number in range(ROUTES_PER_CONNECTION_MAX + 1):
        routes.learn(frame(b"%6d" % number), 14, route, RULES)
        assert len(routes.known) <= ROUTES_PER_CONNECTION_MAX
    long = REPEATED_HEAD_BYTES_MAX + 1
    routes.learn(frame(bytes(long)), long, route, RULES)
    assert routes.head_bytes == 14
