"""CQRS: commands are checked and become events; a pipeline keeps a view of them; questions are answered by the view.

    riverlog topics create order-events --partitions 3
    riverlog topics create order-view --config cleanup.policy=compact
    riverlog pipelines run examples/order_view.py

The side that writes (`Shop`) and the side that reads (`View`) share nothing but the two topics. Another view of the
same events is another pipeline.
"""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import riverlog
from riverlog import Producer
from riverlog.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLLOWS = {"placed": {None}, "paid": {"placed"}, "shipped": {"paid"}, "cancelled": {"placed", "paid"}}
"""What may happen to an order, and after what."""


class Shop:
    """The side that writes: it knows the rules, and appends what happened."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._states: dict[str, str] = {}

    async def order(self, order: str, what: str, *, customer: str | None = None, cents: int | None = None) -> None:
        """Let something happen to an order; ValueError where the rules forbid it."""
        if self._states.get(order) not in FOLLOWS[what]:
            raise ValueError(f"order {order} cannot be {what}: it is {self._states.get(order, 'not there')}")
        event = {"order": order, "what": what, "customer": customer, "cents": cents, "at": _now()}
        await self._producer.send("order-events", json.dumps(event), key=order)
        self._states[order] = what


def view_of(events: "DataFrame") -> "DataFrame":
    """Keep for each order what a page shows: whose it is, what it costs, and what happened last."""
    from pyspark.sql import functions as sql

    return events.groupBy("order").agg(
        sql.max("customer").alias("customer"),
        sql.max("cents").alias("cents"),
        sql.max_by("what", "at").alias("state"),
        sql.max("at").alias("changed_at"),
    )


pipeline = Pipeline("order-view")
events = pipeline.stream("order-events", schema="order string, what string, customer string, cents long, at timestamp")
events.apply(view_of, keys=["order"], updates=True).to("order-view", key="order")


class View:
    """The side that reads: the newest row of each order."""

    def __init__(self, bootstrap: str) -> None:
        table = riverlog.scan("order-view", bootstrap=bootstrap, columns=["key", "value"]).to_arrow()
        rows = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
        self._orders: dict[str, dict[str, Any]] = {key.decode(): json.loads(value) for key, value in rows}

    def order(self, order: str) -> dict[str, Any] | None:
        """Give an order, if there is one."""
        return self._orders.get(order)

    def open_orders(self, customer: str) -> list[str]:
        """Name the orders of a customer that are still to be shipped."""
        mine = {name: row for name, row in self._orders.items() if row["customer"] == customer}
        return sorted(name for name, row in mine.items() if row["state"] in ("placed", "paid"))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


if __name__ == "__main__":
    pipeline.run()
