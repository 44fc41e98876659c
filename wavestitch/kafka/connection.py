"""One connection to one broker, over which kafka-python's protocol classes speak: what confluent-kafka does not offer.

The same security as everywhere: plain text, TLS with the server's name checked, SASL by PLAIN, SCRAM or OAUTHBEARER. A
login in the clear is sent to this machine alone. Every wait is bounded by the deadline; an answer larger than
`_MOST_BYTES` is none.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from typing import Any, Self

from wavestitch.contracts.errors import Refused, Terminal, Transient
from wavestitch.kafka.client_settings import KafkaSettings, is_loopback
from wavestitch.kafka.host_addresses import reach
from wavestitch.kafka.kafka_python import KafkaProtocol, ProtocolError, ScramClient, sasl
from wavestitch.kafka.login_token import read_token
from wavestitch.kafka.tls import connect_tls

_MOST_BYTES = 256 << 20
_HANDSHAKE, _AUTHENTICATE = 1, 1
_LENGTH = 4
_MOST_HEAD = 1 << 10


class Disconnected(Transient):
    """The broker cannot be reached, or went away, or did not answer in time. `was`: what was the matter with it, where
    the message says what came after that."""

    def __init__(self, message: str, *, was: str = "", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.was = was or self.message


class OutOfTime(Disconnected):
    """The deadline came before the answer: of a broker that was asked late it says nothing."""


def with_before(now: Disconnected, before: Disconnected | None) -> Disconnected:
    """What is told of a broker that was asked again: where no answer came in time, what was the matter before, too. It
    had the time to say that."""
    if before is None or isinstance(before, OutOfTime) or not isinstance(now, OutOfTime):
        return now
    return Disconnected(f"{now.message}. Before that: {before.was}", was=before.was)


class Connection:
    """A connection to `host:port`, logged in. Raises `Disconnected`, or `Terminal` where the login is refused."""

    def __init__(self, settings: KafkaSettings, host: str, port: int, *, deadline: float) -> None:
        self.where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._until = deadline
        self._asked = ""
        self._protocol = KafkaProtocol(client_id=settings.options.get("client.id", "wavestitch"))
        protocol = settings.protocol
        if protocol == "sasl_plaintext" and not is_loopback(self.where):
            raise login_would_leave(self.where)
        try:
            self._socket = self._open(settings, host, port)
        except ssl.SSLCertVerificationError as error:
            raise Terminal(
                f"the broker at {self.where} is not spoken to: {error.verify_message or error}; check certificates and "
                "security.protocol in the settings",
                code="_SSL",
            ) from None
        except (OSError, ValueError) as error:  # the latter of a host's name that is none
            raise _kind_of(error)(
                f"no connection to the broker at {self.where}: {error}; is it up? Try again"
            ) from None
        try:
            if protocol.startswith("sasl_"):
                self._log_in(settings)
        except BaseException:
            self.close()
            raise

    def _open(self, settings: KafkaSettings, host: str, port: int) -> socket.socket:
        """A way to the broker; where it is none in the end, none is left open."""
        family = settings.options.get("broker.address.family", "any")
        plain = reach(host, port, family=family, until=self._until)
        try:
            plain.settimeout(self._left())
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connect_tls(plain, settings.options, host=host) if settings.protocol.endswith("ssl") else plain
        except BaseException:
            plain.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def ask(self, request: Any, *, deadline: float | None = None) -> Any:
        """The answer to one request; one that was sent before, and whose answer nobody took, has none any more.
        `deadline`: by `time.monotonic()`."""
        while self.waits_for_answer:
            self.answer(deadline=deadline)
        self.send(request, deadline=deadline)
        return self.answer(deadline=deadline)

    @property
    def waits_for_answer(self) -> bool:
        """Whether something was sent whose answer nobody took."""
        return bool(self._protocol.in_flight_requests)

    def send(self, request: Any, *, deadline: float | None = None) -> None:
        """Ask, and do something else until the `answer` is wanted."""
        self._until = deadline if deadline is not None else self._until
        self._asked = type(request).__name__
        self._protocol.send_request(request)
        with self.told():
            self._socket.settimeout(self._left())
            self._socket.sendall(self._protocol.send_bytes())

    def answer(self, *, deadline: float | None = None) -> Any:
        """To what was sent first of what has no answer yet."""
        self._until = deadline if deadline is not None else self._until
        with self.told():
            # kafka-python's own parser would copy what came five times: most of it are records.
            size = int.from_bytes(self._receive(_LENGTH), "big")
            if size > _MOST_BYTES:
                raise ProtocolError(f"an answer of {size} bytes")
            frame = self._receive(size)
            asked = self._protocol.in_flight_requests.popleft()
            kind, head = asked.get_response_class(), io.BytesIO(frame[:_MOST_HEAD])
            if kind.parse_header(head).correlation_id != asked.correlation_id:
                raise ProtocolError("an answer to another question")
            return kind.decode(frame[head.tell() :])

    def _receive(self, size: int) -> memoryview:
        """So many bytes."""
        found, at = memoryview(bytearray(size)), 0
        while at < size:
            self._socket.settimeout(self._left())
            came = self._socket.recv_into(found[at:])
            if not came:
                raise Disconnected(
                    f"the broker at {self.where} closed the connection on a {self._asked}; is it up, and of version "
                    "2.7 or later? Try again"
                )
            at += came
        return found

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Around whatever looks into an answer: one that lacks what every broker says is none."""
        try:
            yield
        except (OSError, ProtocolError, ValueError, struct.error) as error:
            self.close()
            raise _kind_of(error)(
                f"the broker at {self.where} gave no answer: {error or type(error).__name__}; try again"
            ) from None
        except (LookupError, TypeError, AssertionError):
            self.close()
            raise Disconnected(
                f"the broker at {self.where} sent what is no answer to a {self._asked}; try again"
            ) from None

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for it is up")
        return left

    def _log_in(self, settings: KafkaSettings) -> None:
        options = settings.options
        mechanism = options["sasl.mechanism"].upper()
        user, password = options.get("sasl.username", ""), options.get("sasl.password", "")
        answer = self.ask(sasl.SaslHandshakeRequest[_HANDSHAKE](mechanism))
        if answer.error_code:
            raise Refused(
                f"the broker at {self.where} does not take logins by {mechanism} (it takes "
                f"{', '.join(answer.mechanisms)}); correct sasl.mechanism",
                key="sasl.mechanism",
            )
        if mechanism == "PLAIN":
            self._prove(f"\0{user}\0{password}".encode())
            return
        if settings.token is not None:
            token = read_token(settings.token, now=time.time())
            if self._prove(f"n,,\x01auth=Bearer {token.text}\x01\x01".encode()):
                # RFC 7628: who is refused is told why, and says that he has heard it; the refusal itself comes then.
                self._prove(b"\x01")
                raise Terminal(f"the broker at {self.where} neither takes our token nor refuses it; look at its log")
            return
        # RFC 5802: these two have a meaning of their own in the exchange.
        scram = ScramClient(user.replace("=", "=3D").replace(",", "=2C"), password, mechanism)
        try:
            scram.process_server_first_message(self._prove(scram.first_message()))
            scram.process_server_final_message(self._prove(scram.final_message()))
        except (ValueError, KeyError) as error:
            raise Terminal(f"the broker at {self.where} does not prove that it knows the password: {error}") from None

    def _prove(self, said: bytes) -> bytes:
        answer = self.ask(sasl.SaslAuthenticateRequest[_AUTHENTICATE](said))
        if answer.error_code:
            raise Terminal(
                f"the broker at {self.where} does not let us in: {answer.error_message}; check user, "
                "password or token, and security.protocol in the settings",
                code="SASL_AUTHENTICATION_FAILED",
            )
        return bytes(answer.auth_bytes)


def _kind_of(error: Exception) -> type[Disconnected]:
    return OutOfTime if isinstance(error, TimeoutError) else Disconnected


def login_would_leave(where: str) -> Refused:
    return Refused(
        f"the cluster names a broker at {where} (an advertised listener), and security.protocol is SASL_PLAINTEXT: the "
        "login would leave this machine for everybody to read; use SASL_SSL, or let the brokers advertise loopback",
        key="security.protocol",
    )
