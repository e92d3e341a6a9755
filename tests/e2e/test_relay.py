"""Relays see what passes between clients and a node, and can keep it from arriving."""

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.e2e.clients import create_topic, read_all, send
from tests.support.relay import Cut, Moment, Passing
from tests.support.relayed import RelayedNode
from tests.support.webhdfs import WebHdfs


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[RelayedNode]:
    with RelayedNode(tmp_path) as relayed:
        yield relayed


def test_requests_and_answers_pass_in_order_and_are_seen(relayed: RelayedNode) -> None:
    seen: list[Passing] = []
    relayed.kafka.watcher = seen.append
    create_topic(relayed.kafka.address, "orders")
    assert send(relayed.kafka.address, "orders", [b"a", b"b", b"c"]) == [0, 1, 2]
    assert read_all(relayed.kafka.address, TopicPartition("orders", 0)) == [(0, b"a"), (1, b"b"), (2, b"c")]
    produced = [each for each in seen if each.name == "Produce" and "orders" in each.about]
    assert {each.moment for each in produced} == set(Moment)
    assert {"CreateTopics", "Metadata", "Fetch"} <= {each.name for each in seen}


def test_operations_of_checkpoints_are_named_with_what_they_are_about(relayed: RelayedNode) -> None:
    seen: list[Passing] = []
    relayed.store.watcher = seen.append
    with WebHdfs(relayed.checkpoints) as store:
        assert store.create("/pipelines/a b/.1.tmp", b"x" * 100_000, b"y").status == 201
        assert store.rename("/pipelines/a b/.1.tmp", "/pipelines/a b/1").facts == {"boolean": True}
        assert store.open("/pipelines/a b/1") == b"x" * 100_000 + b"y"
    renamed = [each for each in seen if each.name == "RENAME"]
    assert [each.moment for each in renamed] == list(Moment)
    assert all("destination=/pipelines/a b/1" in each.about for each in renamed)


@pytest.mark.parametrize(("moment", "arrives"), [(Moment.ASKED, False), (Moment.ANSWERED, True)])
def test_what_is_cut_off_arrives_or_not_and_is_never_answered(
    relayed: RelayedNode, moment: Moment, *, arrives: bool
) -> None:
    def watch(passing: Passing) -> None:
        if (passing.name, passing.moment) == ("MKDIRS", moment):
            raise Cut

    relayed.store.watcher = watch
    with WebHdfs(relayed.checkpoints) as store:
        with pytest.raises(http.client.RemoteDisconnected):
            store.ask("PUT", "/pipelines/orders", "MKDIRS")
        assert ("orders" in store.names("/pipelines")) is arrives


def test_who_is_held_holds_nobody_else(relayed: RelayedNode) -> None:
    held, free = threading.Event(), threading.Event()

    def watch(passing: Passing) -> None:
        if passing.name == "MKDIRS" and passing.moment is Moment.ASKED:
            held.set()
            assert free.wait(20)

    relayed.store.watcher = watch
    with WebHdfs(relayed.checkpoints) as one, WebHdfs(relayed.checkpoints) as other:
        asking = threading.Thread(target=one.ask, args=("PUT", "/pipelines/orders", "MKDIRS"))
        asking.start()
        assert held.wait(20)
        assert other.names("/pipelines") == []
        free.set()
        asking.join()
        assert other.names("/pipelines") == ["orders"]


def test_a_node_that_is_away_is_waited_for(relayed: RelayedNode) -> None:
    relayed.node.kill()
    seen: list[Passing] = []
    relayed.store.watcher = seen.append
    with WebHdfs(relayed.checkpoints) as store:
        asking = threading.Thread(target=store.ask, args=("PUT", "/pipelines/orders", "MKDIRS"))
        asking.start()
        relayed.node.start()
        asking.join()
        assert store.names("/pipelines") == ["orders"]
    assert len({each.port for each in seen}) == 1, "one connection was enough"
