"""Bounds of coordinators: how much, how long or how often, and what happens beyond."""

from typing import Final

VERIFICATION_RETRY_SECONDS: Final = 0.005
"""How often the first batch of a transaction looks whether the one before it has ended."""

COORDINATOR_RELOAD_SECONDS_MIN: Final = 0.25
"""How long a coordinator whose log has failed stays away before the log is read again."""

COORDINATOR_RELOAD_SECONDS_MAX: Final = 5.0
"""How long at most, when one failure has followed on another."""

COORDINATED_NAMES_PLACED_MAX: Final = 10_000
"""Groups and transactional ids whose partition is remembered; that of others is reckoned again."""

REPLAY_READ_BYTES: Final = 256 * 1024
"""Bytes of a machine's log that are read at once."""

MARKER_RETRY_SECONDS_MIN: Final = 0.02
"""How soon the marker of a transaction is sent again that did not reach its partition; each time twice as late."""

MARKER_RETRY_SECONDS_MAX: Final = 5.0
"""The longest time between two attempts; there is no last one."""

MARKER_ANSWER_SECONDS_MAX: Final = 30.0
"""How long an answer about markers is waited for; then they are sent again."""

BROKER_RETRY_SECONDS_MIN: Final = 0.05
"""How long a broker is left alone that could not be reached; each time twice as long."""

BROKER_RETRY_SECONDS_MAX: Final = 1.0
"""How long at most."""

BROKER_CONNECT_SECONDS_MAX: Final = 5.0
"""How long another broker may take to accept a connection."""

MARKED_PER_REQUEST_MAX: Final = 2_000
"""Partitions in one request for markers, unless one producer alone has more; the others go with the next one."""

MARKER_RESPONSE_SECONDS_MAX: Final = 15.0
"""How long one broker may take to write markers: shorter than whoever sends them waits for all brokers."""

VERIFIED_PER_REQUEST_MAX: Final = 2_000
"""Questions in one request whether transactions are open; the others go with the next one."""

VERIFICATION_RESPONSE_SECONDS_MAX: Final = 10.0
"""How long a coordinator may take to say whether transactions are open; then producers are told to try again."""

OFFSETS_RESPONSE_SECONDS_MAX: Final = 10.0
"""How long the coordinator of a group may take to store offsets of a transaction; then its owner tries again."""
