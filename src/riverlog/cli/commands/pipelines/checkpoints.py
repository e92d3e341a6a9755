"""`pipelines checkpoints`: list, export and import what Spark's queries keep on a node."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.options import Argument, output_option
from riverlog.cli.terminal.render import OutputFormat, Row, emit, emit_table

if TYPE_CHECKING:
    from riverlog.checkpoints.remote import RemoteFile, RemoteStore

_PART_BYTES: Final = 256 * 1024

store_option: Final = click.option(
    "--store",
    "address",
    default="127.0.0.1:9870",
    show_default=True,
    envvar="RIVERLOG_CHECKPOINTS",
    metavar="HOST:PORT",
    help="The checkpoint store; the ready line of a node names it.",
)


@click.command
@click.argument(
    "path", cls=Argument, metavar="PATH", help="A checkpoint. With it, its files are listed.", required=False
)
@store_option
@output_option
def list_checkpoints(path: str | None, address: str, output: OutputFormat | None) -> None:
    """List checkpoints with their batches and sizes, or the files of one.

    A batch is planned when its offsets are stored, and committed when it is done.
    """
    with opened(address) as store:
        if path is not None:
            rows = [_file_row(each) for each in store.walk(checked(path)) if not each.is_folder]
            columns = ["path", "bytes", "modified"]
        else:
            rows = checkpoints(store.walk("/"))
            columns = ["checkpoint", "planned", "committed", "files", "bytes"]
    emit_table(rows, output, columns, "There are no checkpoints" if path is None else "There are no files")


@click.command
@click.argument("path", cls=Argument, metavar="PATH", help="The checkpoint.")
@click.argument("folder", cls=Argument, metavar="FOLDER", help="A new or empty folder for its files.")
@store_option
@output_option
def export(path: str, folder: str, address: str, output: OutputFormat | None) -> None:
    """Copy a checkpoint to a folder.

    Stop its query first, or files that it writes or deletes during the copy may be missing. Spark can continue from the
    folder as it is.
    """
    root = checked(path)
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise usage_error(f"{folder} is not empty; name a new folder")
    files = size = 0
    with opened(address) as store:
        for each in store.walk(root):
            target = os.path.join(folder, *each.path[len(root.rstrip("/")) + 1 :].split("/"))
            if each.is_folder:
                os.makedirs(target, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "xb") as file:
                for part in store.read(each.path):
                    file.write(part)
            files += 1
            size += each.size
    row: Row = {"path": root, "folder": folder, "files": files, "bytes": size}
    emit([row], output, lambda: print(f"Exported {files} files, {size} bytes: {root} to {folder}"))


@click.command
@click.argument("folder", cls=Argument, metavar="FOLDER", help="A checkpoint's folder: exported, or Spark's own.")
@click.argument(
    "path", cls=Argument, metavar="PATH", help="The path of the checkpoint on the node; it must have no files."
)
@store_option
@output_option
def import_checkpoint(folder: str, path: str, address: str, output: OutputFormat | None) -> None:
    """Copy a checkpoint from a folder to a node.

    The query then goes on with webhdfs://HOST:PORT/PATH as its checkpointLocation. Hidden files, such as the checksums
    that Spark puts beside its files, are left out. The log of commits is written last, so an interrupted import can be
    recognised.
    """
    root = checked(path)
    if not os.path.isdir(folder):
        raise usage_error(f"{folder} is not a folder")
    files = size = 0
    with opened(address) as store:
        if _has_files(store, root):
            raise CommandError(f"{root} has files already; delete them first, or choose another path", ExitCode.REFUSED)
        for name in _names(folder):
            with open(os.path.join(folder, name), "rb") as file:
                store.write(f"{root.rstrip('/')}/{name}", _parts(file))
                size += file.tell()
            files += 1
    row: Row = {"path": root, "folder": folder, "files": files, "bytes": size}
    emit([row], output, lambda: print(f"Imported {files} files, {size} bytes: {folder} to {root}"))


def checkpoints(found: "Iterator[RemoteFile]") -> list[Row]:
    """Add the files up by checkpoint: the folder that has logs of offsets and commits."""
    from riverlog.checkpoints.files.paths import is_below, log_file_of

    files = [each for each in found if not each.is_folder]
    logs = [
        (place, each) for each in files if (place := log_file_of(each.path)) and place.log in ("offsets", "commits")
    ]
    rows: list[Row] = []
    for checkpoint in sorted({place.checkpoint for place, _ in logs}):
        own = [each for each in files if is_below(each.path, checkpoint)]
        numbers = [(place.log, place.number) for place, _ in logs if place.checkpoint == checkpoint]
        rows.append(
            {
                "checkpoint": checkpoint,
                "planned": max((number for log, number in numbers if log == "offsets"), default=None),
                "committed": max((number for log, number in numbers if log == "commits"), default=None),
                "files": len(own),
                "bytes": sum(each.size for each in own),
            }
        )
    return rows


def _file_row(file: "RemoteFile") -> Row:
    modified = datetime.fromtimestamp(file.modified_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return {"path": file.path, "bytes": file.size, "modified": modified}


def _names(folder: str) -> list[str]:
    """Name the files of a folder as a store would, the log of commits last."""
    names = []
    for parent, _, files in os.walk(folder):
        below = os.path.relpath(parent, folder)
        names += [name if below == "." else f"{below}/{name}" for name in files if not name.startswith(".")]
    return sorted(names, key=lambda name: (name.startswith("commits/"), name))


def _parts(file: BinaryIO) -> Iterator[bytes]:
    while part := file.read(_PART_BYTES):
        yield part


def _has_files(store: "RemoteStore", root: str) -> bool:
    from riverlog.checkpoints.files.refusals import RequestRefused

    try:
        return any(not each.is_folder for each in store.walk(root))
    except RequestRefused as refusal:
        if refusal.name == "FileNotFoundException":
            return False
        raise


def checked(path: str) -> str:
    """Read a path of a store."""
    from riverlog.checkpoints.files.paths import check_path
    from riverlog.checkpoints.files.refusals import RequestRefused

    try:
        return check_path(path)
    except RequestRefused as refusal:
        raise usage_error(f"'{path}': {refusal.message}") from refusal


@contextmanager
def opened(address: str) -> "Iterator[RemoteStore]":
    """Open a store; what it refuses becomes a sentence."""
    from socket import gaierror

    from riverlog.checkpoints.files.refusals import RequestRefused
    from riverlog.checkpoints.remote import RemoteStore
    from riverlog.cli.patience import say_silence

    with RemoteStore(address, on_silence=say_silence) as store:
        try:
            yield store
        except RequestRefused as refusal:
            raise CommandError(refusal_sentence(refusal.message), ExitCode.REFUSED) from refusal
        except (ConnectionError, TimeoutError, gaierror) as error:
            why = error.strerror or error
            sentence = f"no checkpoint store answers at {address}: {why}; the ready line of a node names it"
            raise CommandError(sentence, ExitCode.UNREACHABLE) from error


def refusal_sentence(message: str) -> str:
    """Explain why a store does not do something: a checkpoint that is not there is one of a pipeline, or has a path."""
    from riverlog.checkpoints.files.refusals import MISSING
    from riverlog.checkpoints.pipelines.pipeline import name_of

    path = message.removeprefix(MISSING)
    if path == message:
        return f"the checkpoint store says: {message}"
    if (name := name_of(path)) != path:
        return f"there is no pipeline {name}; `riverlog pipelines list` shows what there is"
    return f"there is no checkpoint {path}; `riverlog pipelines checkpoints list` shows what there is"
