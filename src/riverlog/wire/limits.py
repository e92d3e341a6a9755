"""Bounds of messages: how much, how long or how often, and what happens beyond."""

from typing import Final

ERROR_MESSAGE_CHARACTERS_MAX: Final = 4_096
"""Characters of an error message in an answer; it may repeat what a client sent, and the rest is cut."""

ARRAY_NESTING_MAX: Final = 8
"""How deep a message may nest; no Kafka message comes near."""

MESSAGE_ELEMENTS_MAX: Final = 1_000_000
"""Structs and strings in the arrays of one message; a small frame must not unfold to gigabytes of objects."""

REQUEST_ELEMENTS_MAX: Final = 200_000
"""The same of a request, with its numbers: everybody waits while it is taken apart, and each may ask for an answer."""
