"""Event sourcing: nobody writes a balance. What happened is written, and accounts are rebuilt from that.

    riverlog topics create account-events --partitions 3
    riverlog topics create accounts --config cleanup.policy=compact
    riverlog pipelines run examples/accounts.py

An event is {"account": "ada", "what": "deposited", "cents": 500, "at": "…"}, keyed by the account. The pipeline keeps
the newest state of each account in `accounts`. The events stay the truth: `rebuilt` makes the same out of them from
nothing, as of any moment in the past.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import riverlog
from riverlog.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIGNS = {"opened": 0, "deposited": 1, "withdrawn": -1}


def balances(events: "DataFrame") -> "DataFrame":
    """Add up what happened to each account."""
    from pyspark.sql import functions as sql

    signs = " ".join(f"when '{what}' then {sign}" for what, sign in SIGNS.items())
    moved = sql.expr(f"cents * case what {signs} else 0 end")
    return events.groupBy("account").agg(
        sql.sum(moved).alias("cents"), sql.count("*").alias("events"), sql.max("at").alias("at")
    )


pipeline = Pipeline("accounts")
events = pipeline.stream("account-events", schema="account string, what string, cents long, at timestamp")
events.apply(balances, keys=["account"], updates=True).to("accounts", key="account")


def rebuilt(bootstrap: str, *, until: str = "latest") -> dict[str, int]:
    """Make the balances out of the events alone, up to a time."""
    table = riverlog.scan("account-events", bootstrap=bootstrap, until=until, columns=["value"]).to_arrow()
    return folded(json.loads(value) for value in table["value"].to_pylist())


def folded(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Apply events one after another, as plain Python does."""
    cents: dict[str, int] = {}
    for event in events:
        cents[event["account"]] = cents.get(event["account"], 0) + SIGNS[event["what"]] * event["cents"]
    return cents


if __name__ == "__main__":
    pipeline.run()
