"""Saying who one is: what the broker hears, and what a client makes of its answers."""

from typing import Any

import pytest
from scramp import ScramMechanism

from riverlog.client.errors import AuthenticationFailed, KafkaError
from riverlog.client.network.login import log_in
from riverlog.client.network.security import Login
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from riverlog.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.virtual_time import run

FAILED = SaslAuthenticateResponse(
    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed: Invalid username or password"
)


class Broker:
    """A broker that knows one user."""

    address = Address("node", 9092)

    def __init__(self, mechanism: str, password: str = "secret") -> None:
        self.heard: list[bytes] = []
        self._mechanism = mechanism
        self._password = password
        if mechanism.startswith("SCRAM"):
            scram = ScramMechanism(mechanism)
            known = scram.make_auth_info(password, iteration_count=4096)
            self._server = scram.make_server(lambda _user: known)

    async def request(self, message: object, *, seconds: float | None = None) -> Any:
        if isinstance(message, SaslHandshakeRequest):
            good = message.mechanism == self._mechanism
            code = ErrorCode.NONE if good else ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return SaslHandshakeResponse(code, [self._mechanism])
        assert isinstance(message, SaslAuthenticateRequest)
        self.heard.append(message.auth_bytes)
        if self._mechanism == "PLAIN":
            good = message.auth_bytes == f"\0alice\0{self._password}".encode()
            return SaslAuthenticateResponse() if good else FAILED
        return SaslAuthenticateResponse(auth_bytes=self._scram(message.auth_bytes.decode()).encode())

    def _scram(self, words: str) -> str:
        if len(self.heard) == 1:
            self._server.set_client_first(words)
            return str(self._server.get_server_first())
        self._server.set_client_final(words)
        return str(self._server.get_server_final())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_broker_believes_who_knows_the_password(mechanism: str) -> None:
    broker = Broker(mechanism)
    run(log_in(broker, Login(mechanism, "alice", "secret"), 1.0))
    assert len(broker.heard) == (1 if mechanism == "PLAIN" else 2)
    assert (b"secret" in b"".join(broker.heard)) == (mechanism == "PLAIN")


def test_a_wrong_password_is_the_brokers_to_refuse() -> None:
    with pytest.raises(AuthenticationFailed, match="node:9092: Authentication failed: Invalid username") as failed:
        run(log_in(Broker("PLAIN"), Login("PLAIN", "alice", "wrong"), 1.0))
    assert not failed.value.retriable


def test_a_broker_that_does_not_know_the_password_itself_is_not_believed() -> None:
    class Liar(Broker):
        def _scram(self, words: str) -> str:
            return super()._scram(words) if len(self.heard) == 1 else "v=bm90IGl0"

    with pytest.raises(AuthenticationFailed, match="node:9092 does not know the password itself"):
        run(log_in(Liar("SCRAM-SHA-256"), Login("SCRAM-SHA-256", "alice", "secret"), 1.0))


def test_a_mechanism_that_the_broker_lacks_is_named_with_those_it_has() -> None:
    with pytest.raises(AuthenticationFailed, match="node:9092 does not take PLAIN; it takes SCRAM-SHA-512"):
        run(log_in(Broker("SCRAM-SHA-512"), Login("PLAIN", "alice", "secret"), 1.0))


def test_a_listener_without_sasl_is_told_with_its_code() -> None:
    class Plaintext(Broker):
        async def request(self, message: object, *, seconds: float | None = None) -> Any:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)

    with pytest.raises(KafkaError, match="node:9092 asks nobody to log in: this listener has no SASL") as refused:
        run(log_in(Plaintext("PLAIN"), Login("PLAIN", "alice", "secret"), 1.0))
    assert refused.value.code is ErrorCode.ILLEGAL_SASL_STATE
