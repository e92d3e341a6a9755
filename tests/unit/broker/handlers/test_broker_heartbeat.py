"""Heartbeats: who has caught up is let in, and a stale epoch is nobody's."""

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from tests.support.clusters import controller_line
from tests.support.virtual_time import run
from tests.unit.broker.handlers.test_broker_registration import REQUEST


def test_a_broker_is_let_in_when_it_has_caught_up_and_let_go_when_it_asks() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            epoch = (await line.ask(ApiKey.BROKER_REGISTRATION, 4, REQUEST)).broker_epoch
            beat = BrokerHeartbeatRequest(6, epoch, current_metadata_offset=epoch - 1)
            response = await line.ask(ApiKey.BROKER_HEARTBEAT, 2, beat)
            assert (response.is_caught_up, response.is_fenced) == (False, True)
            beat.current_metadata_offset = cluster.nodes[1].controller.end_offset
            response = await line.ask(ApiKey.BROKER_HEARTBEAT, 2, beat)
            assert (response.is_caught_up, response.is_fenced) == (True, False)
            assert not cluster.nodes[1].controller.image.brokers[6].fenced
            beat.want_shut_down = True
            while not response.should_shut_down:
                beat.current_metadata_offset = cluster.nodes[1].controller.end_offset
                response = await line.ask(ApiKey.BROKER_HEARTBEAT, 2, beat)
            assert cluster.nodes[1].controller.image.brokers[6].fenced

    run(scenario())


def test_another_epoch_is_stale() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            epoch = cluster.nodes[1].controller.image.brokers[4].epoch
            response = await line.ask(ApiKey.BROKER_HEARTBEAT, 2, BrokerHeartbeatRequest(4, epoch - 1))
            assert response.error_code == ErrorCode.STALE_BROKER_EPOCH

    run(scenario())
