"""Settings of a topic that change nothing: the command line says so, and the documentation of each."""

from tests.support.shell import Shell

NOT_RECOMPRESSED = b"Batches are kept as they were sent, whatever this says: a node does not recompress."


def test_a_setting_that_changes_nothing_is_named(shell: Shell) -> None:
    code, _, err = shell.run("topics", "create", "zipped", "--config", "compression.type=zstd")
    assert (code, err.count(b"\n")) == (0, 1)
    assert err.startswith(b"riverlog: compression.type=zstd changes nothing. " + NOT_RECOMPRESSED)
    code, _, err = shell.run("topics", "alter", "zipped", "--config", "preallocate=true", "--config", "segment.ms=9999")
    assert (code, err) == (
        0,
        b"riverlog: preallocate=true changes nothing. Known from Kafka; has no meaning here.\n",
    )
    shell.done("topics", "alter", "zipped", "--config", "compression.type=producer", "--delete-config", "preallocate")
    assert "both name segment.ms" in shell.refused(
        "topics", "alter", "zipped", "--config", "segment.ms=1", "--delete-config", "segment.ms", code=2
    )
