"""What the operating system refuses, as one sentence: what, why, and what to do."""

import errno
from typing import Final

_SENTENCES: Final = {
    errno.EACCES: "{file}: this user may not open it; change its permissions, or choose another place",
    errno.EEXIST: "{file} is there already; choose another name",
    errno.EISDIR: "{file} is a folder; name a file",
    errno.EMFILE: "too many files are open; raise the limit with `ulimit -n`",
    errno.ENOENT: "there is no file or folder {file}; check the path",
    errno.ENOSPC: "{file}: the disk is full; make room",
    errno.ENOTDIR: "{file}: a part of the path is a file and no folder; choose another place",
    errno.EPERM: "{file}: this user may not do that; choose another place",
    errno.EROFS: "{file}: the file system is read-only; choose another place",
}


def system_sentence(error: OSError) -> str:
    """Return what to say about an error of the operating system."""
    reason = error.strerror or str(error)
    sentence = _SENTENCES.get(error.errno or 0)
    if sentence is not None and error.filename is None:
        sentence = sentence.removeprefix("{file}: ")
    if sentence is not None and (error.filename is not None or "{file}" not in sentence):
        return sentence.format(file=error.filename)
    return reason if error.filename is None else f"{error.filename}: {reason}"
