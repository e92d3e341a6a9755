"""The examples of pipelines do what they say: each is loaded as `pipelines run` loads it, and compared with Python."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

import riverlog
from riverlog import Admin, Producer
from riverlog.pipelines import Pipeline
from riverlog.pipelines.operators.row_counts import total
from riverlog.pipelines.runtime.loader import pipelines_in, run_file
from riverlog.spark.sessions.session import settings
from tests.support.node import Node

EXAMPLES = Path(__file__).parents[2] / "examples"
NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)

Load = Callable[[str], tuple[ModuleType, list[Pipeline]]]


@pytest.fixture(scope="module")
def own_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Yield a node whose topics have the names that the examples use."""
    with Node(tmp_path_factory.mktemp("examples")) as node:
        yield node


@pytest.fixture
def load(spark: SparkSession, own_node: Node, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Yield what loads an example, with the settings of a session of ours."""
    store = own_node.addresses["checkpoints"].removeprefix("webhdfs://")
    chosen = {name: value for name, value in settings(store).items() if name.startswith("spark.sql.streaming.")}
    before = {name: spark.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", own_node.bootstrap)

    def loaded(name: str) -> tuple[ModuleType, list[Pipeline]]:
        module = run_file(EXAMPLES / name)
        return module, pipelines_in(vars(module).values())

    yield loaded
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def create(node: Node, *topics: str, partitions: int = 3) -> None:
    async def work() -> None:
        async with Admin(node.bootstrap) as admin:
            for topic in topics:
                await admin.create_topic(topic, partitions=partitions)

    asyncio.run(work())


def send(node: Node, topic: str, rows: Iterable[dict[str, Any]], *, key: str) -> None:
    async def work() -> None:
        async with Producer(node.bootstrap) as producer:
            for row in rows:
                producer.send_soon(topic, json.dumps(row), key=str(row[key]))

    asyncio.run(work())


def values(node: Node, topic: str) -> list[dict[str, Any]]:
    table = riverlog.scan(topic, bootstrap=node.bootstrap).to_arrow()
    return [json.loads(value) for value in table["value"].to_pylist()]


def run(*pipelines: Pipeline) -> None:
    for pipeline in pipelines:
        pipeline.run(trigger="available-now")


def at(minutes: float) -> str:
    return (NINE + timedelta(minutes=minutes)).isoformat(timespec="milliseconds")


def test_clicks_become_visits(own_node: Node, load: Load) -> None:
    create(own_node, "clicks", "visits")
    random = Random(3)
    clicks = [(random.choice(["ada", "alan", "grace"]), random.uniform(0, 600), f"/{index}") for index in range(120)]
    clicks.append(("end", 10_000.0, "/"))
    in_order = sorted(clicks, key=lambda click: click[1] + random.uniform(0, 4))
    send(
        own_node, "clicks", ({"user": user, "page": page, "at": at(when)} for user, when, page in in_order), key="user"
    )
    _, (pipeline,) = load("visits.py")
    run(pipeline)
    expected = []
    for user in ("ada", "alan", "grace"):
        visit: list[tuple[float, str]] = []
        for when, page in [*sorted((when, page) for name, when, page in clicks if name == user), (99_999.0, "")]:
            if visit and when - visit[-1][0] >= 30:
                expected.append((user, len(visit), visit[0][1], visit[-1][1]))
                visit = []
            visit.append((when, page))
    found = [(row["user"], row["clicks"], row["first_page"], row["last_page"]) for row in values(own_node, "visits")]
    assert sorted(found) == sorted(expected)
    assert len(found) > 6


def test_orders_meet_their_payments(own_node: Node, load: Load) -> None:
    create(own_node, "orders", "payments", "settled", "settled-late")
    random = Random(4)
    orders = [{"order": index, "customer": f"c{index % 5}", "cents": 100 + index} for index in range(40)]
    placed = {order["order"]: random.uniform(0, 100) for order in orders}
    paid = {index: (placed[index] + random.uniform(0, 90), random.choice([0, 50])) for index in range(0, 40, 2)}
    rows = [{**order, "placed_at": at(placed[order["order"]])} for order in orders]
    payments = [
        {"order": index, "cents": 100 + index - less, "paid_at": at(when)} for index, (when, less) in paid.items()
    ]
    send(
        own_node, "orders", [*rows, {"order": 900, "customer": "end", "cents": 1, "placed_at": at(1_000)}], key="order"
    )
    send(own_node, "payments", [*payments, {"order": 901, "cents": 1, "paid_at": at(1_000)}], key="order")
    _, (pipeline,) = load("payments.py")
    run(pipeline)
    send(own_node, "payments", [{"order": 1, "cents": 101, "paid_at": at(30)}], key="order")
    run(pipeline)
    expected = {}
    for index in range(40):
        when, less = paid.get(index, (1e9, 0))
        expected[index] = "unpaid" if when - placed[index] > 60 else "short" if less else "paid"
    found = values(own_node, "settled")
    assert {row["order"]: row["state"] for row in found} == expected
    assert len(found) == 40
    assert set(expected.values()) == {"unpaid", "short", "paid"}
    (late,) = values(own_node, "settled-late")
    assert (late["side"], late["row"]["order"]) == ("right", 1)


def test_late_readings_are_dropped_put_aside_or_taken_in(own_node: Node, load: Load) -> None:
    create(own_node, "readings", "minutes-drop", "minutes-side", "readings-late", "minutes-recomputed")
    in_time = [("roof", 20.0 + index, index / 10) for index in range(40)]
    send_readings(own_node, [*in_time, ("cellar", 5.0, 5.0)])
    _, pipelines = load("sensors.py")
    run(*pipelines)
    late = [("roof", 99.0, 0.5), ("roof", 77.0, 1.5), ("roof", 55.0, 1.6)]
    send_readings(own_node, late)
    run(*pipelines)
    lates = [total(pipeline.counts().values()).late for pipeline in pipelines]
    send_readings(own_node, [("cellar", 6.0, 500.0)])
    run(*pipelines)
    assert lates == [3, 3, 0]
    first, corrected = means(in_time), means([*in_time, *late])
    for topic in ("minutes-drop", "minutes-side"):
        assert latest(own_node, topic) == {**first, ("cellar", at(5)): (5.0, 1)}
        assert len(values(own_node, topic)) == len(first) + 1
    aside = values(own_node, "readings-late")
    assert sorted(each["row"]["degrees"] for each in aside) == [55.0, 77.0, 99.0]
    assert {moment(each["window"]["start"]) for each in aside} == {at(0), at(1)}
    found = latest(own_node, "minutes-recomputed")
    assert {place: found[place] for place in corrected} == corrected


def send_readings(node: Node, readings: Iterable[tuple[str, float, float]]) -> None:
    rows = [{"sensor": sensor, "degrees": degrees, "at": at(minutes)} for sensor, degrees, minutes in readings]
    send(node, "readings", rows, key="sensor")


def means(readings: Iterable[tuple[str, float, float]]) -> dict[tuple[str, str], tuple[float, int]]:
    """Compute by hand what the windows compute."""
    grouped: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sensor, degrees, minutes in readings:
        grouped[sensor, at(minutes // 1)].append(degrees)
    return {place: (round(sum(found) / len(found), 3), len(found)) for place, found in grouped.items()}


def latest(node: Node, topic: str) -> dict[tuple[str, str], tuple[float, int]]:
    """Read results as a table: the last record of each key counts."""
    return {
        (row["sensor"], moment(row["window"]["start"])): (row["degrees"], row["readings"])
        for row in values(node, topic)
    }


def moment(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="milliseconds")


def test_accounts_are_rebuilt_from_events(own_node: Node, load: Load) -> None:
    create(own_node, "account-events", "accounts")
    module, (pipeline,) = load("accounts.py")
    random = Random(6)
    names = ["ada", "alan", "grace", "margaret"]
    events = [{"account": name, "what": "opened", "cents": 0, "at": at(0)} for name in names]
    for index in range(200):
        what = random.choice(["deposited", "withdrawn"])
        events.append({"account": random.choice(names), "what": what, "cents": random.randrange(500), "at": at(index)})
    for part in (events[:100], events[100:]):
        send(own_node, "account-events", part, key="account")
        run(pipeline)
    kept = {row["account"]: row["cents"] for row in values(own_node, "accounts")}
    assert kept == module.folded(events) == module.rebuilt(own_node.bootstrap)
    counts = Counter(str(event["account"]) for event in events)
    assert {row["account"]: row["events"] for row in values(own_node, "accounts")} == counts


def test_a_view_answers_what_commands_have_written(own_node: Node, load: Load) -> None:
    create(own_node, "order-events", "order-view")
    module, (pipeline,) = load("order_view.py")

    async def trade() -> None:
        async with Producer(own_node.bootstrap) as producer:
            shop = module.Shop(producer)
            await shop.order("1", "placed", customer="ada", cents=900)
            await shop.order("2", "placed", customer="ada", cents=100)
            await shop.order("3", "placed", customer="alan", cents=500)
            with pytest.raises(ValueError, match="order 1 cannot be shipped: it is placed"):
                await shop.order("1", "shipped")
            await shop.order("1", "paid")
            run(pipeline)
            assert module.View(own_node.bootstrap).open_orders("ada") == ["1", "2"]
            await shop.order("1", "shipped")
            await shop.order("2", "cancelled")
            with pytest.raises(ValueError, match="not there"):
                await shop.order("4", "paid")

    asyncio.run(trade())
    run(pipeline)
    view = module.View(own_node.bootstrap)
    assert view.open_orders("ada") == []
    assert view.open_orders("alan") == ["3"]
    order = view.order("1")
    assert order is not None
    assert (order["state"], order["cents"], order["customer"]) == ("shipped", 900, "ada")
    assert view.order("4") is None
