"""Saying who one is to a broker that asks (SASL): PLAIN, or SCRAM, which tells the password to nobody."""

from typing import Any, Protocol

from riverlog.client.errors import AuthenticationFailed, KafkaError, check
from riverlog.client.network.security import Login
from riverlog.model.checkpoint_topic import OWN_MECHANISM
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from riverlog.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class Line(Protocol):
    """A connection, as far as it is needed here."""

    @property
    def address(self) -> Address: ...

    async def request(self, message: object, *, seconds: float | None = None) -> Any: ...


async def log_in(line: Line, login: Login, seconds: float) -> None:
    """Authenticate; raise AuthenticationFailed where the broker does not believe it."""
    agreed: SaslHandshakeResponse = await line.request(SaslHandshakeRequest(login.mechanism), seconds=seconds)
    if agreed.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise AuthenticationFailed(
            f"{line.address} does not take {login.mechanism}; it takes {', '.join(agreed.mechanisms) or 'none'}"
        )
    if agreed.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        what = f"{line.address} asks nobody to log in: this listener has no SASL"
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, what)
    check(agreed.error_code, f"{line.address} does not let anybody log in")
    if login.mechanism in ("PLAIN", OWN_MECHANISM):
        await _tell(line, f"\0{login.username}\0{login.password}", seconds)
    else:
        await _convince(line, login, seconds)


async def _convince(line: Line, login: Login, seconds: float) -> None:
    """Show that the password is known, and have the broker show that it knows it too (RFC 5802)."""
    from scramp import ScramClient, ScramException

    scram = ScramClient([login.mechanism], login.username, login.password)
    try:
        scram.set_server_first(await _tell(line, scram.get_client_first(), seconds))
        scram.set_server_final(await _tell(line, scram.get_client_final(), seconds))
    except ScramException as error:
        raise AuthenticationFailed(f"{line.address} does not know the password itself: {error}") from None


async def _tell(line: Line, words: str, seconds: float) -> str:
    answer: SaslAuthenticateResponse = await line.request(SaslAuthenticateRequest(words.encode()), seconds=seconds)
    if answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
        raise AuthenticationFailed(f"{line.address}: {answer.error_message or 'authentication failed'}")
    check(answer.error_code, f"{line.address} does not let this client log in", answer.error_message)
    return bytes(answer.auth_bytes).decode()
