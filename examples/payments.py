"""Orders joined with their payments; an order that nobody has paid within an hour is told, too.

    riverlog topics create orders --partitions 3
    riverlog topics create payments --partitions 3
    riverlog topics create settled
    riverlog topics create settled-late
    riverlog pipelines run examples/payments.py

An order is {"order": 7, "customer": "ada", "cents": 1200, "placed_at": "…"}, a payment {"order": 7, "cents": 1200,
"paid_at": "…"}. Each order is written once: with its payment as soon as that is there, or without one when none can
come any more. What comes later than the watermark allows is not lost: it is in settled-late.
"""

from riverlog.pipelines import Pipeline

pipeline = Pipeline("settled")
orders = pipeline.stream(
    "orders",
    schema="order long, customer string, cents long, placed_at timestamp",
    time="placed_at",
    watermark="10 minutes",
)
payments = pipeline.stream(
    "payments", schema="order long, cents long, paid_at timestamp", time="paid_at", watermark="10 minutes"
)
joined = orders.join(
    payments,
    on="order",
    within=("0 seconds", "1 hour"),
    how="left",
    prefix="paid_",
    late="side-output:settled-late",
)
joined.select(
    "order",
    "customer",
    "cents",
    state="case when paid_cents is null then 'unpaid' when paid_cents < cents then 'short' else 'paid' end",
).to("settled", key="cast(order as string)")

if __name__ == "__main__":
    pipeline.run()
