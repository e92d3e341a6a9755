"""The Python client: Producer, Consumer and Admin, for riverlog and any other Kafka-compatible cluster.

`cluster` knows who leads what and holds the `connection`s; everything else asks through it. Writing: `producer` puts
records into the batches of `deliveries`, `outbox` keeps each partition's batches in order, `sender` sees them through,
`transacting` lets them count all or nothing, `shared` those of many processes together.
Reading: `fetcher` fetches ahead, `fetched` decodes, `consumer` hands out. `admin` asks for changes. The world comes
in through `ports`; waiting is asyncio's, so the whole client also runs on virtual time.
"""
