"""The examples of pipelines as jobs: the rows that each is given, and the same job written by hand for the connector.

What the connector's users write is Spark and nothing else: bytes are cast, parsed by `from_json`, aggregated, and
written as JSON again. Each job gives the same results from the same rows as its example.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
Values = Callable[[int], str]
"""The value of a record, by its number."""
Read = Callable[[str], "DataFrame"]
"""A topic as a stream, by its name."""


@dataclass(frozen=True, slots=True)
class Job:
    """An example, what its topics hold, and who does the same by hand."""

    file: str
    inputs: Mapping[str, Values]
    outputs: tuple[str, ...]
    by_hand: Callable[[Read], "DataFrame"]
    """Makes records, `key` and `value`, of streams."""
    mode: str = "append"


def moment(number: int, *, step_ms: int = 10) -> str:
    """Return the time of a row: each is a little later than the one before."""
    return (BEGIN + timedelta(milliseconds=number * step_ms)).isoformat(timespec="milliseconds")


def parsed(records: "DataFrame", schema: str) -> "DataFrame":
    """Decode values as JSON."""
    from pyspark.sql import functions as sql

    return records.select(sql.from_json(sql.col("value").cast("string"), schema).alias("row")).select("row.*")


def record(key: "Column | str", *columns: Any) -> "list[Column]":
    """Return a result as a record."""
    from pyspark.sql import functions as sql

    named = sql.col(key) if isinstance(key, str) else key
    return [named.cast("string").alias("key"), sql.to_json(sql.struct(*columns)).alias("value")]


def order_of_shop(number: int) -> str:
    shop = ("Lisbon", "Oslo", "Turin")[number % 3]
    return f'{{"id": {number}, "shop": "{shop}", "cents": {number % 20_000}, "placed_at": "{moment(number)}"}}'


def revenue(read: Read) -> "DataFrame":
    from pyspark.sql import functions as sql

    orders = parsed(read("orders"), "shop string, cents long, placed_at timestamp").withWatermark(
        "placed_at", "10 minutes"
    )
    taken = orders.groupBy(sql.window("placed_at", "10 minutes"), "shop").agg(
        sql.count("*").alias("orders"), sql.sum("cents").alias("cents")
    )
    begin = sql.date_format("window.start", "yyyy-MM-dd'T'HH:mm").alias("window")
    return taken.select(*record("shop", begin, "shop", "orders", "cents"))


def click(number: int) -> str:
    """Make each user make a hundred clicks, two seconds apart, and never come back."""
    user = number % 200 + number // 20_000 * 200
    return f'{{"user": "user{user}", "page": "/{number % 1000}", "at": "{moment(number)}"}}'


def visits(read: Read) -> "DataFrame":
    from pyspark.sql import functions as sql

    clicks = parsed(read("clicks"), "user string, page string, at timestamp").withWatermark("at", "5 minutes")
    found = clicks.groupBy(sql.session_window("at", "30 minutes"), "user").agg(
        sql.count("*").alias("clicks"),
        sql.min_by("page", "at").alias("first_page"),
        sql.max_by("page", "at").alias("last_page"),
        sql.min("at").alias("began"),
        (sql.max("at").cast("long") - sql.min("at").cast("long")).alias("seconds"),
    )
    return found.select(*record("user", "user", "clicks", "first_page", "last_page", "began", "seconds"))


def order_to_pay(number: int) -> str:
    return (
        f'{{"order": {number}, "customer": "c{number % 1000}", "cents": {number % 5000}, '
        f'"placed_at": "{moment(number)}"}}'
    )


def payment(number: int) -> str:
    """Pay four orders of five, ten seconds later."""
    order = number + number // 4
    return f'{{"order": {order}, "cents": {order % 5000 - order % 7 // 6}, "paid_at": "{moment(order + 1_000)}"}}'


def settled(read: Read) -> "DataFrame":
    from pyspark.sql import functions as sql

    schema = "order long, customer string, cents long, placed_at timestamp"
    orders = parsed(read("orders"), schema).withWatermark("placed_at", "10 minutes").alias("orders")
    paid = parsed(read("payments"), "order long, cents long, paid_at timestamp").withWatermark("paid_at", "10 minutes")
    payments = paid.select(sql.col("order").alias("paid_order"), sql.col("cents").alias("paid_cents"), "paid_at")
    near = sql.expr("order = paid_order AND paid_at >= placed_at AND paid_at <= placed_at + interval 1 hour")
    state = sql.expr(
        "case when paid_cents is null then 'unpaid' when paid_cents < cents then 'short' else 'paid' end"
    ).alias("state")
    return orders.join(payments, near, "left_outer").select(*record("order", "order", "customer", "cents", state))


def reading(number: int) -> str:
    return f'{{"sensor": "s{number % 1000}", "degrees": {number % 400 / 10}, "at": "{moment(number)}"}}'


def minutes(read: Read) -> "DataFrame":
    from pyspark.sql import functions as sql

    readings = parsed(read("readings"), "sensor string, degrees double, at timestamp").withWatermark("at", "10 seconds")
    means = readings.groupBy(sql.window("at", "1 minute"), "sensor").agg(
        sql.round(sql.avg("degrees"), 3).alias("degrees"), sql.count("*").alias("readings")
    )
    return means.select(*record(sql.to_json(sql.struct("window", "sensor")), "window", "sensor", "degrees", "readings"))


def account_event(number: int) -> str:
    what = ("deposited", "withdrawn")[number % 2]
    return f'{{"account": "a{number % 20_000}", "what": "{what}", "cents": {number % 1000}, "at": "{moment(number)}"}}'


def accounts(read: Read) -> "DataFrame":
    from pyspark.sql import functions as sql

    events = parsed(read("account-events"), "account string, what string, cents long, at timestamp")
    moved = sql.expr("cents * case what when 'deposited' then 1 when 'withdrawn' then -1 else 0 end")
    kept = events.groupBy("account").agg(
        sql.sum(moved).alias("cents"), sql.count("*").alias("events"), sql.max("at").alias("at")
    )
    return kept.select(*record("account", "account", "cents", "events", "at"))


def order_event(number: int) -> str:
    what = ("placed", "paid", "shipped")[number % 3]
    placed = f'"customer": "c{number % 1000}", "cents": {number % 5000}' if number % 3 == 0 else '"customer": null'
    return f'{{"order": "{number // 3}", "what": "{what}", {placed}, "at": "{moment(number)}"}}'


def order_view(read: Read) -> "DataFrame":
    from pyspark.sql import functions as sql

    schema = "order string, what string, customer string, cents long, at timestamp"
    view = (
        parsed(read("order-events"), schema)
        .groupBy("order")
        .agg(
            sql.max("customer").alias("customer"),
            sql.max("cents").alias("cents"),
            sql.max_by("what", "at").alias("state"),
            sql.max("at").alias("changed_at"),
        )
    )
    return view.select(*record("order", "order", "customer", "cents", "state", "changed_at"))


JOBS: Final = {
    "revenue": Job("revenue.py", {"orders": order_of_shop}, ("revenue",), revenue),
    "visits": Job("visits.py", {"clicks": click}, ("visits",), visits),
    "payments": Job("payments.py", {"orders": order_to_pay, "payments": payment}, ("settled", "settled-late"), settled),
    "sensors": Job("sensors.py", {"readings": reading}, ("minutes-drop",), minutes),
    "accounts": Job("accounts.py", {"account-events": account_event}, ("accounts",), accounts, mode="update"),
    "order-view": Job("order_view.py", {"order-events": order_event}, ("order-view",), order_view, mode="update"),
}
