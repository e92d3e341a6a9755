"""Bounds of clients: how much, how long or how often, and what happens beyond."""

from typing import Final

REQUESTS_IN_FLIGHT_PER_BROKER_MAX: Final = 5
"""Unanswered requests of a client on one connection: as many batches as a broker remembers per producer."""

RECEIVES_PER_TURN_MAX: Final = 16
"""How often a client's connection receives before other work of the loop gets its turn."""

EXPECTED_BYTES_MIN: Final = 64 * 1024
"""A client is called for each piece of an answer that lacks less; of a larger one, once much of it is there."""

UNKNOWN_TOPIC_ATTEMPTS_MAX: Final = 5
"""How often a client asks for a topic that the cluster does not know: it may be in the making."""

FAILURES_REMEMBERED_MAX: Final = 1_000
"""Failed batches that a producer keeps until somebody asks; of more, only the newest are told about."""
