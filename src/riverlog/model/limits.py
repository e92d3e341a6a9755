"""Every bound that is not a setting: what the node will hold, wait for or try, and what happens beyond it."""

from typing import Final

FRAME_BYTES_BEFORE_AUTHENTICATION_MAX: Final = 512 * 1024
"""A longer first frame closes the connection: nobody may ask for memory before saying who they are."""

RECEIVE_BUFFER_BYTES: Final = 64 * 1024
"""A connection's buffer at rest. It grows with the bytes that arrive, never with the length that was claimed."""

ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX: Final = 1_000
"""A connection with this many unanswered requests is not read from until some are answered."""

UNSENT_BYTES_PER_CONNECTION_MAX: Final = 16 * 1024 * 1024
"""A connection whose peer has not taken this many bytes of answers is not read from until it has."""

SEND_BUFFERS_MAX: Final = 64
"""Buffers given to one gathered send; the system's own limit is 1,024."""

TOPIC_NAME_CHARACTERS_MAX: Final = 249
"""The longest topic name: with the partition number it must fit a file name."""

PRODUCER_BATCHES_REMEMBERED: Final = 5
"""Batches per producer and partition that a retry may repeat; Kafka's clients keep at most five in flight."""

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""What one compressed batch may unfold to; a larger one is refused, not unfolded."""

ARRAY_NESTING_MAX: Final = 8
"""How deep a message may nest; no Kafka message comes near."""

PRODUCER_ID_BLOCK: Final = 1_000
"""Producer ids that a node takes from the controller at a time."""
