"""Why a request is not done, in the words that Hadoop's client knows: it builds the exception of that name again.

403 stops the query with our sentence as its message; SafeModeException makes a client whose retry policy is on wait and
ask again.
"""

from http import HTTPStatus
from typing import Final, Self

ACCESS_CONTROL: Final = "org.apache.hadoop.security.AccessControlException"
MISSING: Final = "File does not exist: "
"""How the message begins that names a path which is not there; Hadoop's own words."""


class RequestRefused(Exception):
    """A request that is not done; nothing has changed."""

    def __init__(self, status: HTTPStatus, java_class: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.java_class = java_class
        self.message = message

    @property
    def name(self) -> str:
        """Return the name of the exception without its package."""
        return self.java_class.rpartition(".")[2]

    @property
    def is_for_now(self) -> bool:
        """Return whether the same may be asked for again."""
        return self.name == "SafeModeException"

    @classmethod
    def illegal(cls, message: str) -> Self:
        return cls(HTTPStatus.BAD_REQUEST, "java.lang.IllegalArgumentException", message)

    @classmethod
    def missing(cls, path: str) -> Self:
        return cls(HTTPStatus.NOT_FOUND, "java.io.FileNotFoundException", f"{MISSING}{path}")

    @classmethod
    def exists(cls, path: str) -> Self:
        return cls(HTTPStatus.FORBIDDEN, "org.apache.hadoop.fs.FileAlreadyExistsException", f"{path} already exists")

    @classmethod
    def not_a_folder(cls, path: str) -> Self:
        return cls(
            HTTPStatus.FORBIDDEN,
            "org.apache.hadoop.fs.ParentNotDirectoryException",
            f"{path} is a file, and nothing can lie below it",
        )

    @classmethod
    def not_empty(cls, path: str) -> Self:
        return cls(
            HTTPStatus.FORBIDDEN,
            "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
            f"{path} is not empty; delete it with recursive=true",
        )

    @classmethod
    def failed(cls, message: str) -> Self:
        """Refuse for good: the query stops with this sentence."""
        return cls(HTTPStatus.FORBIDDEN, "java.io.IOException", message)

    @classmethod
    def replaced(cls, message: str) -> "DriverReplaced":
        """Refuse who was replaced."""
        return DriverReplaced(HTTPStatus.FORBIDDEN, ACCESS_CONTROL, message)

    @classmethod
    def foreign(cls, message: str) -> Self:
        """Refuse what a web page may have sent."""
        return cls(HTTPStatus.FORBIDDEN, ACCESS_CONTROL, message)

    @classmethod
    def later(cls, message: str) -> Self:
        """Ask the client to try again."""
        return cls(HTTPStatus.FORBIDDEN, "org.apache.hadoop.hdfs.server.namenode.SafeModeException", message)


class DriverReplaced(RequestRefused):
    """Another driver has taken the query over. Its class says so, wherever it is raised: words may be anybody's."""
