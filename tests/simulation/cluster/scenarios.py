"""What no chance may leave out, in clusters in which one thing alone is wrong."""

from riverlog.client.network.connection import Connection
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from tests.simulation.cluster.clients import Administrator
from tests.simulation.cluster.hosts import ClientHost
from tests.simulation.cluster.plan import Plan
from tests.simulation.cluster.run import ClusterRun

BROKER = 11


def quiet(seed: int, *, controllers: int) -> Plan:
    """Return a cluster to which nothing happens."""
    return Plan(seed, controllers, brokers=2, combined=False, snapshot_bytes=10**8, steps_in_work=False, steps=())


def late_heartbeat(seed: int) -> list[str]:
    """A heartbeat of a broker's earlier process comes when the next one has registered, and asks to be let go."""
    run = ClusterRun(quiet(seed, controllers=1))
    broker, controller = run.nodes[BROKER], run.nodes[1]

    async def say(host: ClientHost, epoch: int) -> int:
        """Send the heartbeat, and return what it is answered with."""
        ports = host.ports()
        connection = await Connection.open(
            ports.network, Address(controller.name, 9093), client_id="late", connect_seconds=2, request_seconds=2
        )
        response = await connection.request(BrokerHeartbeatRequest(BROKER, epoch, 1 << 40, want_shut_down=True))
        connection.close()
        return int(response.error_code)

    with run:
        run.start()
        assert broker.node is not None
        registration = broker.node._registration
        assert registration is not None
        assert registration._session is not None
        epoch = registration._session.epoch
        broker.kill()
        run.universe.after(0.1, broker.start)
        run.until(lambda: broker.is_serving, 60)
        late = run.client("late")
        said = late.do(say(late, epoch))
        run.until(said.done, 10)
        if not run.violations and said.result() != ErrorCode.STALE_BROKER_EPOCH:
            run.report(f"the heartbeat was answered with {ErrorCode(said.result()).name}")
    return run.violations


def lost_answer(seed: int) -> list[str]:
    """The answer to a forwarded request is lost, and then the controller that has carried it out."""
    run = ClusterRun(quiet(seed, controllers=3))
    with run:
        run.start()
        active, broker = run.active(), run.nodes[BROKER]
        assert active is not None
        host = run.client("admin")
        administrator = Administrator(host, (Address(broker.name, 9092),), run.ledger, run.report)
        run.until(host.do(administrator.create(1)).done, 20)  # now there is a connection to the controller
        run.wires.cut(active.name, broker.name)
        asking = host.do(administrator.create(1))
        run.universe.after(0.3, active.kill)
        run.until(asking.done, 20)
        if not run.violations and run.checker.image().topic(asking.result().name) is None:
            run.report("the request never came to be")
    return run.violations
