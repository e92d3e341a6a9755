"""What can be wrong with a batch. Each is a Refusal, so a handler can answer it and a client can show it."""

from collections.abc import Mapping

from riverlog.model.errors import ErrorCode, Refusal


class CorruptBatch(Refusal):
    """The bytes are not the batch that their header describes; nothing of it may be used."""

    def __init__(self, reason: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(code, reason)


class BadRecords(Refusal):
    """Some records of a batch may not be written: each of them with the reason, by its place in the batch."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        first = min(reasons)
        super().__init__(ErrorCode.INVALID_RECORD, f"some records were refused, the first is {first}: {reasons[first]}")
        self.reasons = reasons


class BatchTooLarge(CorruptBatch):
    """The records would unfold to more bytes than the reader allows; unfolding stopped there."""

    def __init__(self, decompressed_bytes_max: int) -> None:
        super().__init__(
            f"the batch unfolds to more than {decompressed_bytes_max} bytes, the most that is allowed",
            ErrorCode.MESSAGE_TOO_LARGE,
        )
