"""Bounds of the cluster's metadata on a node: how much, how long or how often, and what happens beyond."""

from typing import Final

PRODUCER_ID_BLOCK: Final = 1_000
"""Producer ids that a node takes from the controller at a time."""

METADATA_TRIES_MAX: Final = 100
"""How often a write of metadata that could not begin is tried again, each tenth of a second, before the node ends."""

QUORUM_EFFECTS_MAX: Final = 10_000
"""Steps of the quorum that may wait for the disk; beyond them peers are refused until it has answered."""

RECORDS_LOADED_PER_TURN: Final = 500
"""Committed records that a node takes into its view at a stretch: some milliseconds."""

PEER_ANSWERS_MAX: Final = 32
"""Controllers whose last answers are remembered; the oldest is forgotten."""

RECORDS_UNTIL_KEPT: Final = 20_000
"""Records in the view after which its objects are left out of Python's search for cycles: they are in none."""

METADATA_BATCH_BYTES: Final = 8 * 1024 * 1024
"""Bytes of what was submitted together that go into one batch, as in Kafka; what is beyond goes into the next."""

PEER_CONNECTIONS_MAX: Final = 128
"""Connections to other controllers that are kept open; beyond it the one that was used longest ago is closed."""
