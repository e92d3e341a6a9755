"""What can be wrong with a batch. Each is a Refusal, so a handler can answer it and a client can show it."""

from riverlog.model.errors import ErrorCode, Refusal


class CorruptBatch(Refusal):
    """The bytes are not the batch that their header describes; nothing of it may be used."""

    def __init__(self, reason: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(code, reason)


class BatchTooLarge(CorruptBatch):
    """The records would unfold to more bytes than the reader allows; unfolding stopped there."""

    def __init__(self, decompressed_bytes_max: int) -> None:
        super().__init__(
            f"the batch unfolds to more than {decompressed_bytes_max} bytes, the most that is allowed",
            ErrorCode.MESSAGE_TOO_LARGE,
        )
