"""Refusals: each has the name that Hadoop's client builds its exception from."""

from http import HTTPStatus

from riverlog.checkpoints.files.refusals import Refused


def test_each_has_its_status_and_name() -> None:
    expected = {
        Refused.illegal("x"): (HTTPStatus.BAD_REQUEST, "IllegalArgumentException"),
        Refused.missing("/x"): (HTTPStatus.NOT_FOUND, "FileNotFoundException"),
        Refused.exists("/x"): (HTTPStatus.FORBIDDEN, "FileAlreadyExistsException"),
        Refused.not_a_folder("/x"): (HTTPStatus.FORBIDDEN, "ParentNotDirectoryException"),
        Refused.not_empty("/x"): (HTTPStatus.FORBIDDEN, "PathIsNotEmptyDirectoryException"),
        Refused.failed("x"): (HTTPStatus.FORBIDDEN, "IOException"),
        Refused.replaced("x"): (HTTPStatus.FORBIDDEN, "AccessControlException"),
        Refused.later("x"): (HTTPStatus.FORBIDDEN, "SafeModeException"),
    }
    for refused, (status, name) in expected.items():
        assert (refused.status, refused.name) == (status, name)
        assert str(refused) == refused.message
        assert refused.is_for_now is (name == "SafeModeException")
