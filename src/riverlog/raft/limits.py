"""Bounds of the quorum: how much, how long or how often, and what happens beyond."""

from typing import Final

FETCH_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of the metadata log that one Fetch asks for; Kafka's leaders send a whole batch in any case."""

SNAPSHOT_CHUNK_BYTES: Final = 1024 * 1024
"""Bytes of a snapshot that one FetchSnapshot asks for."""

FETCH_WAIT_SECONDS_MAX: Final = 1.0
"""The longest time for which a Fetch is held back that has nothing new, whatever its sender wants."""

FETCHES_PARKED_MAX: Final = 8_192
"""Fetches that a leader holds back; beyond it they are answered at once."""

OBSERVER_FORGOTTEN_SECONDS: Final = 300.0
"""An observer that has not fetched for so long is no longer listed by DescribeQuorum."""

OBSERVERS_MAX: Final = 4_096
"""Observers whose progress a leader keeps; beyond it the one that was silent for longest is forgotten."""

VOTER_CAUGHT_UP_SECONDS: Final = 3_600.0
"""A node may become a voter if it was at the end of the log once, and has fetched within this time."""

VOTERS_MAX: Final = 64
"""Voters of one quorum; a majority of more would be slow, and one mistaken request must not make it so."""
