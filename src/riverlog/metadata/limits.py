"""Bounds of the cluster's metadata: how much, how long or how often, and what happens beyond."""

from typing import Final

TOPIC_NAME_CHARACTERS_MAX: Final = 249
"""The longest topic name: with the partition number it must fit a file name."""

TOPICS_OPEN_MAX: Final = 4_096
"""Topics of a draft that are kept in pieces; beyond it those that changed are put together, and their pieces go."""

BROKER_SESSION_SECONDS: Final = 9.0
"""How long a broker may be silent before it is fenced, as Kafka's `broker.session.timeout.ms`: it beats every 2 s."""

OWN_SESSION_SECONDS: Final = 3.0
"""The same for brokers of riverlog, which beat every 0.5 s."""

LEADERS_SOUGHT_SECONDS: Final = 300.0
"""How often partitions without a leader, or not led by their preferred one, are looked at, as in Kafka."""

PARTITIONS_PER_WAKE_MAX: Final = 1_000
"""Partitions that one decision looks at when a broker goes; the next decision goes on behind them."""

RECORDS_PER_BATCH_MAX: Final = 10_000
"""Metadata records in one batch, as in Kafka; more that belong together are put into a transaction."""

RESERVED_DIRECTORIES: Final = 100
"""Directory ids below this mean something else than a directory, as in Kafka: unassigned, lost."""

LISTENERS_MAX: Final = 64
"""Listeners that a node may register; a registration stays in everybody's memory."""

HOST_CHARACTERS_MAX: Final = 255
"""The longest name of a host, as in DNS, and of a listener."""
