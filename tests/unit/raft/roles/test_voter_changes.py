"""Changes of the voters, one at a time."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.raft.effects import Answer, AppendControl
from riverlog.raft.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
    VoterChangeResponse,
)
from riverlog.raft.voters import ReplicaKey
from tests.support.raft import TIMING, Rig, endpoints, key, voters


def answers(rig: Rig) -> list[ErrorCode]:
    found = [effect.response for effect in rig.only(Answer)]
    return [response.leadership.error for response in found if isinstance(response, VoterChangeResponse)]


def refusal(rig: Rig, request: AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest) -> ErrorCode:
    response = rig.ask(request)
    assert isinstance(response, VoterChangeResponse)
    return response.leadership.error


def test_a_node_that_has_caught_up_becomes_a_voter() -> None:
    rig = Rig().elect()
    rig.fetch(4)
    assert rig.ask(AddVoterRequest(key(4), endpoints(4))) is None
    [probe] = rig.calls(VersionsRequest)
    rig.answer(probe, VersionsResponse((0, 1)))
    [written] = rig.only(AppendControl)
    assert written.voters == voters(1, 2, 3, 4)
    assert written.elected_by is None
    assert rig.replica.voters.latest == voters(1, 2, 3, 4), "as soon as it is in the log"
    assert answers(rig) == []
    rig.flush()
    rig.fetch(2)
    assert answers(rig) == []
    rig.fetch(4)
    assert answers(rig) == [ErrorCode.NONE]


def test_the_only_voter_leads_on_when_it_gets_company() -> None:
    rig = Rig(quorum=voters(1))
    rig.flush()
    assert rig.role == "Leader"
    rig.wait(60)
    rig.fetch(2)
    rig.ask(AddVoterRequest(key(2), endpoints(2)))
    [probe] = rig.calls(VersionsRequest)
    rig.answer(probe, VersionsResponse((0, 1)))
    rig.flush()
    rig.wait(TIMING.fetch_timeout / 2)
    assert rig.role == "Leader"
    rig.wait(2 * TIMING.fetch_timeout)
    assert rig.role != "Leader", "nobody has fetched"


def test_who_need_not_wait_is_answered_when_it_is_written() -> None:
    rig = Rig().elect()
    rig.fetch(4)
    rig.ask(AddVoterRequest(key(4), endpoints(4), ack_when_committed=False))
    rig.answer(rig.calls(VersionsRequest)[0], VersionsResponse((0, 1)))
    assert answers(rig) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("versions", "has_fetched", "error"),
    [
        ((0, 0), True, ErrorCode.INVALID_REQUEST),
        (None, True, ErrorCode.INVALID_REQUEST),
        ((0, 1), False, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_who_cannot_follow_is_not_added(versions: tuple[int, int] | None, has_fetched: bool, error: ErrorCode) -> None:
    rig = Rig().elect()
    if has_fetched:
        rig.fetch(4)
    rig.ask(AddVoterRequest(key(4), endpoints(4)))
    rig.answer(rig.calls(VersionsRequest)[0], VersionsResponse(versions))
    assert answers(rig) == [error]
    assert rig.replica.voters.latest == voters(1, 2, 3)


def test_who_does_not_answer_is_not_added() -> None:
    rig = Rig().elect()
    rig.ask(AddVoterRequest(key(4), endpoints(4)))
    rig.fail(rig.calls(VersionsRequest)[0])
    assert answers(rig) == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_change_that_is_not_committed_in_time_is_an_unknown_outcome() -> None:
    rig = Rig().elect()
    rig.ask(RemoveVoterRequest(key(3)))
    for _ in range(3):
        rig.wait(0.3)
        assert answers(rig) == []
        rig.fetch(2, 0, last_epoch=LeaderEpoch(0))
    rig.wait(0.2)
    assert answers(rig) == [ErrorCode.REQUEST_TIMED_OUT]
    assert rig.replica.voters.latest == voters(1, 2), "it may be committed yet"


def test_one_change_waits_for_the_one_before() -> None:
    rig = Rig().elect()
    rig.ask(RemoveVoterRequest(key(3)))
    assert refusal(rig, RemoveVoterRequest(key(2))) is ErrorCode.REQUEST_TIMED_OUT
    rig.flush()
    rig.fetch(2)
    assert rig.ask(AddVoterRequest(key(3), endpoints(3))) is None


def test_nothing_changes_before_this_leader_has_committed_anything() -> None:
    rig = Rig()
    while rig.role != "Prospective":
        rig.wait(0.05)
    rig.grant()
    assert refusal(rig, RemoveVoterRequest(key(3))) is ErrorCode.REQUEST_TIMED_OUT


def test_senseless_changes_are_refused() -> None:
    rig = Rig().elect()
    assert refusal(rig, AddVoterRequest(key(2), endpoints(2))) is ErrorCode.DUPLICATE_VOTER
    assert refusal(rig, AddVoterRequest(key(4), ())) is ErrorCode.INVALID_REQUEST
    assert refusal(rig, AddVoterRequest(ReplicaKey(key(4).id), endpoints(4))) is ErrorCode.INVALID_REQUEST
    assert refusal(rig, RemoveVoterRequest(key(9))) is ErrorCode.VOTER_NOT_FOUND
    assert refusal(rig, RemoveVoterRequest(ReplicaKey(key(2).id))) is ErrorCode.VOTER_NOT_FOUND
    update = UpdateVoterRequest(key(9), rig.raft.epoch, endpoints(9), (0, 1))
    assert refusal(rig, update) is ErrorCode.VOTER_NOT_FOUND
    update = UpdateVoterRequest(key(2), rig.raft.epoch, (), (0, 1))
    assert refusal(rig, update) is ErrorCode.INVALID_REQUEST
    alone = Rig(quorum=voters(1))
    alone.flush()
    assert refusal(alone, RemoveVoterRequest(key(1))) is ErrorCode.INVALID_REQUEST


def test_voters_of_the_settings_do_not_change() -> None:
    rig = Rig(kraft_version=0).elect()
    assert refusal(rig, RemoveVoterRequest(key(3))) is ErrorCode.UNSUPPORTED_VERSION
    assert refusal(rig, UpdateVoterRequest(key(2), rig.raft.epoch, endpoints(2), (0, 1))) is ErrorCode.NONE


def test_a_voter_that_has_moved_is_found_again() -> None:
    rig = Rig().elect()
    update = UpdateVoterRequest(key(2), rig.raft.epoch, endpoints(7), (0, 1))
    assert refusal(rig, update) is ErrorCode.NONE
    assert rig.replica.voters.latest.by_id[key(2).id].endpoints == endpoints(7)


def test_who_waits_is_told_that_another_one_leads() -> None:
    rig = Rig().elect()
    rig.ask(RemoveVoterRequest(key(3)))
    rig.wait(1.0)
    assert rig.role != "Leader"
