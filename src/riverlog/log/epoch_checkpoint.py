"""The file `leader-epoch-checkpoint`: the history of a partition's leader epochs, in Kafka's text form."""

from riverlog.log.checkpoint import BadCheckpoint, decode_lines, encode_lines
from riverlog.model.epochs import Epochs
from riverlog.model.ids import LeaderEpoch, Offset


def encode_epochs(epochs: Epochs) -> bytes:
    """Write the content of the file."""
    return encode_lines(f"{epoch} {start_offset}" for epoch, start_offset in epochs.entries())


def decode_epochs(content: bytes, path: str) -> Epochs:
    """Read the content of the file; both columns must grow."""
    entries = list[tuple[LeaderEpoch, Offset]]()
    for line in decode_lines(content, path):
        try:
            epoch, start_offset = map(int, line.split(" "))
        except ValueError:
            raise BadCheckpoint(f"{path} has a line that is no epoch and offset: {line!r}") from None
        entries.append((LeaderEpoch(epoch), Offset(start_offset)))
    epochs = Epochs(entries)
    if epochs.entries() != entries:
        raise BadCheckpoint(f"{path} does not list its epochs in order")
    return epochs
