"""Writing: batches in order, sent and retried without a twin, and transactions of one or many writers.

`producer` puts records into the batches of `deliveries`, `partition_queue` keeps each partition's batches in order,
`sender` sees them through, `transactions` lets them count all or nothing, `shared_transactions` those of many processes
together.
"""
