"""How a Kafka client of ours is set up: which options a person may set, and which are never theirs.

Only listed options pass. What is left out could run code or shell commands (plugins, engines, kinit), call foreign
addresses (OAuth token URLs), switch off the check of a server's name, or break I5 and I8 (automatic commits, a reset
policy that moves silently, another isolation level, queues without bound). Secrets are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any, Literal

from wavestitch.contracts.errors import BadInput
from wavestitch.kafka.client_log import client_log
from wavestitch.kafka.login_token import tells_token
from wavestitch.kafka.tls import check_ciphers

Isolation = Literal["read_committed", "read_uncommitted"]

_SECRET = frozenset(("sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password"))
_ALLOWED = _SECRET | {
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.keystore.location",
    "ssl.cipher.suites",
    "ssl.curves.list",
    "ssl.sigalgs.list",
    "client.id",
    "client.rack",
    "broker.address.family",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.timeout.ms",
}
_VALUES = {
    "security.protocol": ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    # GSSAPI runs a shell command to renew its ticket, which is not for a settings file. OAUTHBEARER by the client's
    # own ways asks a URL; by ours it reads a file.
    "sasl.mechanism": ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer"),
}
# Other names of allowed options: of two that disagree the client takes one, and what was checked may be the other.
_ALIASES = {"sasl.mechanisms": "sasl.mechanism"}
_BOOTSTRAP = re.compile(r"[^\s,]+:[0-9]{1,5}(,[^\s,]+:[0-9]{1,5})*")
_ONE_PORT = re.compile(r"(?P<host>[^\s,]+):[0-9]{1,5}")

_READER = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Any other policy moves the reader silently when its offset is gone.
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "queued.max.messages.kbytes": 32768,
    # A full queue of that size is empty again in a tenth of a second; by default the next fetch waits for a whole one.
    "fetch.queue.backoff.ms": 5,
    # One partition at a time is read, so one fetch must bring more than the default MiB.
    "max.partition.fetch.bytes": 8 << 20,
    # The end of the log is told only when a fetch comes back empty; half a second a slice would be waited for that.
    "fetch.wait.max.ms": 50,
}
_TUNING = frozenset(("batch.num.messages", "compression.type", "linger.ms", "queue.buffering.max.messages"))
"""How a producer fills its requests: nothing that a promise rests on."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Where the brokers are (`host:port,…`) and how to reach them; `BadInput` names a key that is not allowed.

    `token`: where the token of OAUTHBEARER is (`file:PATH`), never the token itself, which is read anew each time.
    """

    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict)
    token: str | None = None

    def __post_init__(self) -> None:
        for key, value in self.options.items():
            _check_option(key, value)
        object.__setattr__(self, "bootstrap", _without_protocol(self.bootstrap, self.protocol))
        if not _BOOTSTRAP.fullmatch(self.bootstrap):
            raise BadInput(f"Kafka's address is {self.bootstrap!r}; write host:port, several with commas between them")
        _check_protocol(self.bootstrap, self.options)
        _check_token(self.token, self.options)
        # A copy: what the caller does to its own mapping afterwards was not checked. (Pickles, unlike a proxy.)
        object.__setattr__(self, "options", dict(self.options))

    @property
    def protocol(self) -> str:
        """plaintext, ssl, sasl_plaintext or sasl_ssl."""
        return self.options.get("security.protocol", "plaintext").lower()

    def __repr__(self) -> str:
        shown = {key: "***" if key in _SECRET else value for key, value in self.options.items()}
        token = "" if self.token is None else ", token='***'"
        return f"KafkaSettings(bootstrap={self.bootstrap!r}, options={shown!r}{token})"


def consumer_config(
    settings: KafkaSettings, *, group: str, isolation: Isolation, on_error: Callable[[Any], None] | None = None
) -> dict[str, Any]:
    """A bounded reader's configuration. `group` is never joined; brokers check permissions by it."""
    return {**_client_config(settings, on_error), **_READER, "group.id": group, "isolation.level": isolation}


def admin_config(settings: KafkaSettings, *, on_error: Callable[[Any], None] | None = None) -> dict[str, Any]:
    """An admin client's configuration."""
    return _client_config(settings, on_error)


def producer_config(
    settings: KafkaSettings,
    *,
    own: Mapping[str, Any] | None = None,
    tuning: Mapping[str, Any] | None = None,
    on_error: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """An idempotent producer's configuration: a retry neither repeats nor reorders a record.

    `own`: what its maker sets. `tuning`: what a caller may set beside; `BadInput` names what is none of it.
    """
    unknown = sorted(set(tuning or ()) - _TUNING)
    if unknown:
        raise BadInput(
            f"a producer's {', '.join(map(repr, unknown))} cannot be set here; allowed are {', '.join(sorted(_TUNING))}"
        )
    return {
        **_client_config(settings, on_error),
        **(own or {}),
        **(tuning or {}),
        "enable.idempotence": True,
        "acks": "all",
    }


def _client_config(settings: KafkaSettings, on_error: Callable[[Any], None] | None) -> dict[str, Any]:
    config: dict[str, Any] = {
        "client.id": "wavestitch",
        **settings.options,
        "bootstrap.servers": settings.bootstrap,
        "logger": client_log(),
    }
    if settings.token is not None:
        config["oauth_cb"] = tells_token(settings.token)
    if on_error is not None:
        config["error_cb"] = on_error
    return config


def _without_protocol(bootstrap: str, protocol: str) -> str:
    """`SSL://host:port` without that, as the client takes it. One of another protocol it would just leave out."""
    plain = []
    for address in bootstrap.split(","):
        said, _, bare = address.rpartition("://")
        if said and said.lower() != protocol:
            raise BadInput(
                f"Kafka's address is {address!r}, and security.protocol is {protocol!r}: nobody would be asked there; "
                "write host:port, or correct one of the two",
                key="security.protocol",
            )
        plain.append(bare)
    return ",".join(plain)


def _check_protocol(bootstrap: str, options: Mapping[str, str]) -> None:
    """Who configures a password or a certificate means it to be used, and never to be shown to the network."""
    protocol = options.get("security.protocol", "plaintext").lower()
    idle = sorted(
        key
        for key in options
        if (key.startswith("sasl.") and not protocol.startswith("sasl_"))
        or (key.startswith("ssl.") and not protocol.endswith("ssl"))
    )
    if idle:
        raise BadInput(
            f"Kafka options {', '.join(idle)} do nothing with security.protocol {protocol!r}; set it to SASL_SSL (or "
            "SSL, for a certificate alone), or remove them",
            key="security.protocol",
        )
    if not protocol.startswith("sasl_"):
        return
    if "sasl.mechanism" not in options:
        raise BadInput(
            f"security.protocol {protocol!r} needs a sasl.mechanism (the client's own choice would run kinit); set "
            f"it to {', '.join(_VALUES['sasl.mechanism'])}",
            key="sasl.mechanism",
        )
    away = next((a for a in bootstrap.split(",") if not is_loopback(a)), None)
    if protocol == "sasl_plaintext" and away is not None:
        raise BadInput(
            f"with security.protocol sasl_plaintext the login, and every record after it, would cross the network to "
            f"{away} for everybody to read and to change; use SASL_SSL (sasl_plaintext is for loopback alone)",
            key="security.protocol",
        )


def _check_token(token: str | None, options: Mapping[str, str]) -> None:
    by_token = options.get("sasl.mechanism", "").lower() == "oauthbearer"
    if by_token != (token is not None):
        raise BadInput(
            'sasl.mechanism OAUTHBEARER and [kafka] token go together: write token = "file:PATH" with the file that '
            "holds the token, or another mechanism",
            key="sasl.mechanism" if by_token else "token",
        )
    idle = sorted(options.keys() & {"sasl.username", "sasl.password"}) if by_token else []
    if idle:
        raise BadInput(
            f"Kafka options {', '.join(idle)} do nothing with sasl.mechanism OAUTHBEARER: the token says who we are; "
            "remove them",
            key=idle[0],
        )


def is_loopback(address: str) -> bool:
    """Whether `host:port` names this machine and cannot name another."""
    found = _ONE_PORT.fullmatch(address)
    if found is None:
        return False
    host = found["host"]
    if host in ("localhost", "[::1]"):
        return True
    try:  # four numbers below 256: whatever else begins with 127 is a name, which any server of names may answer for
        return IPv4Address(host).is_loopback
    except ValueError:
        return False


def _check_option(key: str, value: object) -> None:
    if key in _ALIASES:
        raise BadInput(f"Kafka option {key!r} is another name of {_ALIASES[key]!r}; write that one", key=key)
    if key not in _ALLOWED:
        raise BadInput(
            f"Kafka option {key!r} cannot be set here; allowed are {', '.join(sorted(_ALLOWED))}. Remove it", key=key
        )
    if not isinstance(value, str):
        raise BadInput(f"Kafka option {key!r} has a value of type {type(value).__name__}; write it as text", key=key)
    known = _VALUES.get(key)
    if known is not None and value.lower() not in known:
        raise BadInput(f"Kafka option {key!r} is {value!r}; allowed are {', '.join(known)}", key=key)
    if key == "ssl.cipher.suites":
        check_ciphers(value)
