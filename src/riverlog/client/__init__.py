"""The Python client: Producer, Consumer and Admin, for riverlog and any other Kafka-compatible cluster.

`network.cluster` knows who leads what and holds the connections; everything else asks through it. `producer` writes,
`consumer` reads, `admin` asks for changes. The world comes in through `ports`; waiting is asyncio's, so all of it also
runs on virtual time.
"""
