"""What other controllers said last."""

from riverlog.controller.limits import PEER_ANSWERS_MAX
from riverlog.controller.peer_answers import PeerAnswers
from riverlog.controller.quorum_ports import ForeignCluster, NoResponse
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, LeaderEpoch, NodeId
from riverlog.raft.messages import Leadership

A, B = Address("a", 1), Address("b", 2)
FOREIGN = ForeignCluster("belongs to another one")


def test_the_last_answer_of_each_is_told() -> None:
    answers = PeerAnswers()
    assert str(answers) == "nobody was asked"
    answers.note(A, Leadership(ErrorCode.NOT_LEADER_OR_FOLLOWER, LeaderEpoch(3)))
    answers.note_silence(B, NoResponse("b:2: Nobody listens there."))
    assert str(answers) == "a:1: knows no leader in epoch 3; b:2: Nobody listens there"
    answers.note(A, Leadership(ErrorCode.NONE, LeaderEpoch(4), NodeId(7)))
    assert str(answers) == "a:1: says that node 7 leads in epoch 4; b:2: Nobody listens there"


def test_all_of_them_may_be_of_another_cluster() -> None:
    answers = PeerAnswers()
    assert not answers.are_foreign([])
    answers.note_silence(A, FOREIGN)
    assert answers.are_foreign([A])
    assert not answers.are_foreign([A, B])
    answers.note_silence(B, FOREIGN)
    assert answers.are_foreign([A, B])


def test_no_more_are_remembered_than_there_is_room_for() -> None:
    answers = PeerAnswers()
    for port in range(2 * PEER_ANSWERS_MAX):
        answers.note_silence(Address("h", port), NoResponse("gone"))
    assert str(answers).count("gone") == PEER_ANSWERS_MAX
