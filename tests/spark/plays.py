"""What is written for each example, and what it must give; and two pipelines in a row, one on what the other wrote."""

from collections import Counter, defaultdict
from typing import Any, Final, NamedTuple

from riverlog.pipelines.operators.windows import session, tumbling
from tests.spark.play import Play, Row, at, span
from tests.support.stream_oracle import Event, Group, joined, watermarks_ms
from tests.support.streams import micros

MINUTE_MS: Final = 60_000
HOURS_APART: Final = 6
"""Between two portions: more than any window, gap, or delay of a watermark."""


class Revenue(Play):
    """Orders to revenue: shuffled by minutes, never late."""

    file = "examples/revenue.py"
    queries = ("revenue",)
    inputs = ("orders",)
    outputs = ("revenue",)

    def portion(self, number: int) -> None:
        orders = [
            {
                "shop": self.random.choice(["Lisbon", "Oslo", "Turin"]),
                "cents": self.random.randrange(100, 20_000),
                "placed_at": at(60 * HOURS_APART * number + minute / 40 + self.random.uniform(0, 5)),
            }
            for minute in range(2_400)
        ]
        self.send("orders", orders, key="shop")

    def expected(self) -> dict[str, Counter[Any]]:
        batches = events(self.batches("revenue", "orders"), "shop", "cents", "placed_at")
        results, late = self.windows("revenue", batches, tumbling("10 minutes"), delay_ms=10 * MINUTE_MS)
        assert not late
        return {
            "revenue": Counter((place[0], shop, cents, orders) for (place, shop, cents, orders) in results.elements())
        }

    def found(self) -> dict[str, Counter[Any]]:
        rows = self.values("revenue")
        return {
            "revenue": Counter(
                (micros(f"{row['window']}:00Z"), row["shop"], row["cents"], row["orders"]) for row in rows
            )
        }


class Visits(Play):
    """Clicks to visits: some clicks come hours too late, and are dropped."""

    file = "examples/visits.py"
    queries = ("visits",)
    inputs = ("clicks",)
    outputs = ("visits",)

    def portion(self, number: int) -> None:
        begin = 60 * HOURS_APART * number
        clicks = []
        for index in range(40):
            behind = self.random.uniform(300, 900) if index % 8 == 7 else self.random.uniform(0, 4)
            page = f"/{40 * number + index}"
            clicks.append({"user": self.random.choice("abc"), "page": page, "at": at(begin + 4 * index - behind)})
        self.send("clicks", clicks, key="user")

    def expected(self) -> dict[str, Counter[Any]]:
        batches = [
            [Event(row["user"], int(row["page"][1:]), micros(row["at"])) for row in batch]
            for batch in self.batches("visits", "clicks")
        ]
        results, _ = self.windows("visits", batches, session("30 minutes"), delay_ms=5 * MINUTE_MS, result=visit)
        return {"visits": results}

    def found(self) -> dict[str, Counter[Any]]:
        return {
            "visits": Counter(
                (
                    row["user"],
                    row["clicks"],
                    row["first_page"],
                    row["last_page"],
                    micros(row["began"]),
                    row["seconds"],
                )
                for row in self.values("visits")
            )
        }


def visit(user: str, group: Group) -> tuple[Any, ...]:
    """Describe a session as the example does."""
    clicks = sorted(group[1], key=lambda click: click.at_us or 0)
    began, ended = clicks[0].at_us or 0, clicks[-1].at_us or 0
    seconds = ended // 1_000_000 - began // 1_000_000
    return user, len(clicks), f"/{clicks[0].number}", f"/{clicks[-1].number}", began, seconds


class Payments(Play):
    """Orders and payments: paid, short, unpaid, and both kinds too late."""

    file = "examples/payments.py"
    queries = ("settled",)
    inputs = ("orders", "payments")
    outputs = ("settled", "settled-late")

    def portion(self, number: int) -> None:
        begin, orders, payments = 60 * HOURS_APART * number, [], []
        for order in range(20 * number, 20 * number + 20):
            late = 60 * HOURS_APART * 1.5 if order % 10 == 9 else 0
            placed = begin + self.random.uniform(0, 100) - late
            orders.append({"order": order, "customer": f"c{order % 5}", "cents": 100 + order, "placed_at": at(placed)})
            if order % 2:
                paid = placed + self.random.uniform(0, 90)
                payments.append({"order": order, "cents": 100 + order - order % 3, "paid_at": at(paid)})
        self.send("orders", orders, key="order")
        self.send("payments", payments, key="order")

    def expected(self) -> dict[str, Counter[Any]]:
        orders = events(self.batches("settled", "orders"), "order", "cents", "placed_at")
        payments = events(self.batches("settled", "payments"), "order", "cents", "paid_at")
        pairs, late = joined(
            orders,
            payments,
            delay_ms=(10 * MINUTE_MS, 10 * MINUTE_MS),
            before_ms=0,
            after_ms=60 * MINUTE_MS,
            how="left",
        )
        watermark = min(watermarks_ms(batches, 10 * MINUTE_MS)[-1] for batches in (orders, payments))
        settled: Counter[Any] = Counter()
        for (order, payment), count in pairs.items():
            assert order is not None
            if payment is None and (order.at_us or 0) // 1000 + 60 * MINUTE_MS > watermark:
                continue  # a payment can still come
            state = "unpaid" if payment is None else "short" if payment.number < order.number else "paid"
            settled[int(order.key), order.number, state] += count
        aside = Counter((side, int(event.key), event.at_us, judged_by) for side, event, judged_by in late)
        return {"settled": settled, "settled-late": aside}

    def found(self) -> dict[str, Counter[Any]]:
        times = {"left": "placed_at", "right": "paid_at"}
        return {
            "settled": Counter((row["order"], row["cents"], row["state"]) for row in self.values("settled")),
            "settled-late": Counter(
                (
                    row["side"],
                    row["row"]["order"],
                    micros(row["row"][times[row["side"]]]),
                    micros(row["watermark"]) // 1000,
                )
                for row in self.values("settled-late")
            ),
        }


class Sensors(Play):
    """Readings in time, half an hour late and three hours late, under all three policies."""

    file = "examples/sensors.py"
    queries = ("minutes-drop", "minutes-side", "minutes-recomputed")
    inputs = ("readings",)
    outputs = ("minutes-drop", "minutes-side", "readings-late", "minutes-recomputed")

    def portion(self, number: int) -> None:
        readings = []
        for index in range(30):
            behind = {8: 30.0, 9: 180.0}.get(index % 10, self.random.uniform(0, 0.1))
            moment = at(10 * number + index / 10 - behind)
            readings.append(
                {
                    "sensor": self.random.choice(["roof", "cellar"]),
                    "degrees": 1_000.0 * self.random.randrange(30),  # so that no mean is between two that are rounded
                    "at": moment,
                }
            )
        self.send("readings", readings, key="sensor")

    def expected(self) -> dict[str, Counter[Any]]:
        minute = tumbling("1 minute")
        found: dict[str, Counter[Any]] = {}
        for query in self.queries:
            batches = events(self.batches(query, "readings"), "sensor", "degrees", "at")
            updates = query == "minutes-recomputed"
            delay_ms = 10_000 + (60 * MINUTE_MS if updates else 0)
            results, late = self.windows(query, batches, minute, delay_ms=delay_ms, updates=updates)
            found[query] = Counter(
                {
                    (place, sensor, round(degrees / readings, 3), readings): count
                    for (place, sensor, degrees, readings), count in results.items()
                }
            )
            if query == "minutes-side":
                found["readings-late"] = late
        return found

    def found(self) -> dict[str, Counter[Any]]:
        found: dict[str, Counter[Any]] = {
            topic: Counter(
                (span(row["window"]), row["sensor"], row["degrees"], row["readings"]) for row in self.values(topic)
            )
            for topic in self.queries
        }
        found["readings-late"] = Counter(
            (
                Event(row["row"]["sensor"], int(row["row"]["degrees"]), micros(row["row"]["at"])),
                span(row["window"]),
                micros(row["watermark"]) // 1000,
            )
            for row in self.values("readings-late")
        )
        return found


class Accounts(Play):
    """Accounts: every change of a balance, and none twice."""

    file = "examples/accounts.py"
    queries = ("accounts",)
    inputs = ("account-events",)
    outputs = ("accounts",)

    def portion(self, number: int) -> None:
        happened = [
            {
                "account": self.random.choice(["ada", "alan", "grace"]),
                "what": self.random.choice(["deposited", "withdrawn"]),
                "cents": self.random.randrange(500),
                "at": at(100 * number + index),
            }
            for index in range(30)
        ]
        self.send("account-events", happened, key="account")

    def expected(self) -> dict[str, Counter[Any]]:
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        changes: Counter[Any] = Counter()
        for batch in self.batches("accounts", "account-events"):
            for row in batch:
                sums[row["account"]][0] += row["cents"] if row["what"] == "deposited" else -row["cents"]
                sums[row["account"]][1] += 1
            changes.update((account, *sums[account]) for account in {row["account"] for row in batch})
        return {"accounts": changes}

    def found(self) -> dict[str, Counter[Any]]:
        rows = self.values("accounts")
        return {"accounts": Counter((row["account"], row["cents"], row["events"]) for row in rows)}


class Shown(NamedTuple):
    """What a page shows of an order."""

    customer: str | None
    cents: int | None
    state: str
    changed_at: int


class OrderView(Play):
    """A view of orders: every change of what it shows, and none twice."""

    file = "examples/order_view.py"
    queries = ("order-view",)
    inputs = ("order-events",)
    outputs = ("order-view",)

    def portion(self, number: int) -> None:
        happened: list[Row] = []
        for order in range(8 * number, 8 * number + 8):
            steps = ["placed", "paid", "shipped"][: 1 + order % 3]
            for index, what in enumerate(steps):
                first = index == 0
                happened.append(
                    {
                        "order": str(order),
                        "what": what,
                        "customer": "ada" if first else None,
                        "cents": 100 + order if first else None,
                        "at": at(100 * number + order + index / 10),
                    }
                )
        for order in range(max(0, 8 * number - 8), 8 * number):
            moment = at(100 * number + order)
            happened.append({"order": str(order), "what": "cancelled", "customer": None, "cents": None, "at": moment})
        self.send("order-events", happened, key="order")

    def expected(self) -> dict[str, Counter[Any]]:
        view: dict[str, Shown] = {}
        changes: Counter[Any] = Counter()
        for batch in self.batches("order-view", "order-events"):
            for row in sorted(batch, key=lambda row: micros(row["at"])):
                before = view.get(row["order"], Shown(None, None, "", 0))
                assert micros(row["at"]) >= before.changed_at
                view[row["order"]] = Shown(
                    row["customer"] or before.customer, row["cents"] or before.cents, row["what"], micros(row["at"])
                )
            changes.update((order, view[order]) for order in {row["order"] for row in batch})
        return {"order-view": changes}

    def found(self) -> dict[str, Counter[Any]]:
        return {
            "order-view": Counter(
                (row["order"], Shown(row["customer"], row["cents"], row["state"], micros(row["changed_at"])))
                for row in self.values("order-view")
            )
        }


class Chain(Play):
    """Two pipelines in a row: what the first writes once the second counts once."""

    file = "tests/spark/chain.py"
    queries = ("minutes", "totals")
    inputs = ("sales",)
    outputs = ("minutes", "totals")

    def portion(self, number: int) -> None:
        begin = 60 * HOURS_APART * number
        sales = [
            {"key": self.random.choice("abcd"), "number": index, "at": at(begin + index / 10)} for index in range(50)
        ]
        self.send("sales", sales, key="key")

    def expected(self) -> dict[str, Counter[Any]]:
        batches = events(self.batches("minutes", "sales"), "key", "number", "at")
        minutes, late = self.windows("minutes", batches, tumbling("1 minute"), delay_ms=10_000)
        assert not late
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        changes: Counter[Any] = Counter()
        for batch in self.batches("totals", "minutes"):
            for row in batch:
                sums[row["key"]][0] += row["number"]
                sums[row["key"]][1] += 1
            changes.update((key, *sums[key]) for key in {row["key"] for row in batch})
        return {"minutes": minutes, "totals": changes}

    def found(self) -> dict[str, Counter[Any]]:
        minutes, totals = self.values("minutes"), self.values("totals")
        return {
            "minutes": Counter((span(row["window"]), row["key"], row["number"], row["sales"]) for row in minutes),
            "totals": Counter((row["key"], row["number"], row["minutes"]) for row in totals),
        }


PLAYS: Final = (Revenue, Visits, Payments, Sensors, Accounts, OrderView, Chain)


def events(batches: list[list[Row]], key: str, number: str, time: str) -> list[list[Event]]:
    """Return rows as the oracle takes them."""
    return [[Event(str(row[key]), int(row[number]), micros(row[time])) for row in batch] for batch in batches]
