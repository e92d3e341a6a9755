"""Refusals: each has the name that Hadoop's client builds its exception from."""

from http import HTTPStatus

from riverlog.checkpoints.files.refusals import RequestRefused


def test_each_has_its_status_and_name() -> None:
    expected = {
        RequestRefused.illegal("x"): (HTTPStatus.BAD_REQUEST, "IllegalArgumentException"),
        RequestRefused.missing("/x"): (HTTPStatus.NOT_FOUND, "FileNotFoundException"),
        RequestRefused.exists("/x"): (HTTPStatus.FORBIDDEN, "FileAlreadyExistsException"),
        RequestRefused.not_a_folder("/x"): (HTTPStatus.FORBIDDEN, "ParentNotDirectoryException"),
        RequestRefused.not_empty("/x"): (HTTPStatus.FORBIDDEN, "PathIsNotEmptyDirectoryException"),
        RequestRefused.failed("x"): (HTTPStatus.FORBIDDEN, "IOException"),
        RequestRefused.replaced("x"): (HTTPStatus.FORBIDDEN, "AccessControlException"),
        RequestRefused.later("x"): (HTTPStatus.FORBIDDEN, "SafeModeException"),
    }
    for refused, (status, name) in expected.items():
        assert (refused.status, refused.name) == (status, name)
        assert str(refused) == refused.message
        assert refused.is_for_now is (name == "SafeModeException")
