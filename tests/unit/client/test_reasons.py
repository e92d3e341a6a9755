"""What error codes mean, in words."""

import pytest

from riverlog.client.reasons import REASONS, reason
from riverlog.model.errors import ErrorCode


@pytest.mark.parametrize("code", REASONS)
def test_a_reason_is_a_part_of_a_sentence(code: ErrorCode) -> None:
    assert reason(code)[0].islower()
    assert not reason(code).endswith(".")
    assert code.name not in reason(code)


def test_a_code_without_a_reason_has_its_name() -> None:
    assert reason(ErrorCode.FENCED_STATE_EPOCH) == "fenced state epoch"
