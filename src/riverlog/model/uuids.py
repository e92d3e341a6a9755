"""Uuids as Kafka writes them in files and messages for people: URL-safe base64 without padding."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID


def encode_uuid(uuid: UUID) -> str:
    """Write a uuid as text."""
    return urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> UUID:
    """Read a uuid; ValueError where the text is none."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))
