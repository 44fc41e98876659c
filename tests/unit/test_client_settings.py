"""What a person may set of a Kafka client, and what is never theirs."""

from __future__ import annotations

import contextlib
import pickle
import re
import socket
import ssl
import threading

import pytest
from confluent_kafka import KafkaException, Producer

from tests.conftest import ROOT
from wavestitch.contracts.errors import BadInput
from wavestitch.kafka import tls
from wavestitch.kafka.client_settings import KafkaSettings, consumer_config, producer_config
from wavestitch.kafka.clients import open_admin, open_consumer, open_producer
from wavestitch.kafka.tls import tls_context

FORBIDDEN = [
    "plugin.library.paths",
    "ssl.engine.location",
    "ssl.providers",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.principal",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.config",
    "enable.ssl.certificate.verification",
    "ssl.endpoint.identification.algorithm",
    "auto.offset.reset",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "isolation.level",
    "enable.partition.eof",
    "allow.auto.create.topics",
    "queued.max.messages.kbytes",
    "bootstrap.servers",
    "metadata.broker.list",
    "group.id",
    "debug",
    "log_level",
    "test.mock.num.brokers",
    "sasl.Password",
    "",
    # Code, commands and foreign addresses, in every spelling that the client might take for the same.
    "PLUGIN.LIBRARY.PATHS",
    " plugin.library.paths",
    "plugin.library.paths\0",
    "sasl.kerberos.keytab",
    "sasl.kerberos.service.name",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "https.ca.location",
    "ssl.engine.id",
    "ssl.ca.certificate.stores",
    "ssl.crl.location",
    "oauth_cb",
    "error_cb",
    "log_cb",
    "stats_cb",
    "throttle_cb",
    "on_delivery",
    "logger",
    "statistics.interval.ms",
    # What every promise about offsets and bounds rests on.
    "auto.commit.interval.ms",
    "enable.auto.commit ",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "partition.assignment.strategy",
    "check.crcs",
    "fetch.message.max.bytes",
    "receive.message.max.bytes",
    "max.poll.interval.ms",
    "enable.idempotence",
    "acks",
    "transactional.id",
    "message.max.bytes",
    "builtin.features",
    "client.software.name",
    "topic.blacklist",
    # Letters that only look like those of an allowed name.
    "sasl.pa\u0455\u0455word",
    "\uff53asl.username",
    "client\u2024id",
]


@pytest.mark.parametrize("key", FORBIDDEN)
def test_an_option_that_is_not_listed_is_refused_by_name(key: str) -> None:
    with pytest.raises(BadInput) as refused:
        KafkaSettings("k:9092", {key: "hush-1"})
    assert repr(key) in refused.value.message
    assert "hush-1" not in refused.value.message


@pytest.mark.parametrize("mechanism", ["GSSAPI", "AWS_MSK_IAM", ""])
def test_a_login_that_runs_commands_or_is_none_is_refused(mechanism: str) -> None:
    with pytest.raises(BadInput, match=r"sasl.mechanism.*scram-sha-512"):
        KafkaSettings("k:9092", {"sasl.mechanism": mechanism})


def test_the_client_that_is_installed_has_no_kerberos() -> None:
    """What docs/settings.md says of it."""
    with pytest.raises(KafkaException, match=r"No provider for SASL mechanism GSSAPI.*PLAIN SASL_SCRAM OAUTHBEARER"):
        Producer({"bootstrap.servers": "k:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"})


BY_TOKEN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}


@pytest.mark.parametrize(
    ("options", "token", "says"),
    [
        (BY_TOKEN, None, r'go together: write token = "file:PATH"'),
        ({**BY_TOKEN, "sasl.mechanism": "PLAIN"}, "file:/t", "go together"),
        ({}, "file:/t", "go together"),
        (
            {**BY_TOKEN, "sasl.username": "ada", "sasl.password": "hush-1"},
            "file:/t",
            "password, sasl.username do nothing",
        ),
    ],
)
def test_a_token_goes_with_its_mechanism_and_nothing_else(
    options: dict[str, str], token: str | None, says: str
) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        KafkaSettings("k:9092", options, token)
    assert "hush-1" not in refused.value.message


def test_a_client_is_told_how_to_ask_for_the_token_and_never_where_a_person_sees_it() -> None:
    settings = KafkaSettings("k:9092", BY_TOKEN, "file:/run/secrets/kafka-token")
    assert callable(consumer_config(settings, group="g", isolation="read_committed")["oauth_cb"])
    assert "oauth_cb" not in consumer_config(KafkaSettings("k:9092"), group="g", isolation="read_committed")
    assert "/run/secrets" not in repr(settings)


@pytest.mark.parametrize(
    "bootstrap", ["", "kafka", "a:1,,b:2", "a:1 b:2", "a:x", "a:1\nb:2", "a:1\n", "a:\u0661\u0662", "a:123456"]
)
def test_an_address_without_host_and_port_is_refused(bootstrap: str) -> None:
    with pytest.raises(BadInput, match="write host:port"):
        KafkaSettings(bootstrap)


@pytest.mark.parametrize(
    ("bootstrap", "protocol", "bare"),
    [
        ("PLAINTEXT://a:1", "plaintext", "a:1"),
        ("a:1,plaintext://[::1]:2", "PLAINTEXT", "a:1,[::1]:2"),
        ("SSL://a:1,ssl://b:2", "ssl", "a:1,b:2"),
    ],
)
def test_an_address_may_begin_with_the_protocol_as_the_client_takes_it(
    bootstrap: str, protocol: str, bare: str
) -> None:
    settings = KafkaSettings(bootstrap, {"security.protocol": protocol})
    assert settings.bootstrap == bare
    assert consumer_config(settings, group="g", isolation="read_committed")["bootstrap.servers"] == bare


@pytest.mark.parametrize("address", ["SSL://a:1", "http://a:1", "SASL_PLAINTEXT://127.0.0.1:1"])
def test_an_address_of_another_protocol_which_the_client_would_leave_out_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match=r"nobody would be asked there; write host:port"):
        KafkaSettings(f"a:1,{address}")


@pytest.mark.parametrize("bootstrap", ["PLAINTEXT://", "PLAINTEXT://a", "a:1,PLAINTEXT://"])
def test_behind_the_protocol_there_are_host_and_port(bootstrap: str) -> None:
    with pytest.raises(BadInput, match="several with commas between them"):
        KafkaSettings(bootstrap)


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        (None, "sasl.password"),
        ("ssl", "sasl.username"),
        ("plaintext", "ssl.ca.location"),
        ("SASL_PLAINTEXT", "ssl.ca.pem"),
    ],
)
def test_a_login_or_a_certificate_that_would_silently_not_be_used_is_refused(protocol: str | None, key: str) -> None:
    given = {} if protocol is None else {"security.protocol": protocol}
    with pytest.raises(BadInput, match=rf"{key} do nothing with security.protocol .* set it to SASL_SSL"):
        KafkaSettings("k:9092", {**given, key: "x"})


@pytest.mark.parametrize(
    "bootstrap",
    [
        *("k:9092", "127.0.0.1:1,k:9092", "127.0.0.1.evil.example:1", "localhost.x:1"),
        *(
            "127.999.1:9092",
            "127.0.0.1.1:9092",
            "127..:9092",
            "127.1:9092",
            "127.0.0.256:1",
            "[::2]:1",
            "127.0.0.1\u0660:1",
        ),
    ],
)
def test_a_password_never_crosses_a_network_in_the_clear(bootstrap: str) -> None:
    plain = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.password": "hush-1"}
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        with pytest.raises(BadInput, match="for everybody to read and to change; use SASL_SSL") as refused:
            KafkaSettings(bootstrap, {**plain, "sasl.mechanism": mechanism})
        assert "hush-1" not in refused.value.message
    KafkaSettings("127.0.0.1:1,localhost:2,[::1]:3", plain)
    KafkaSettings(bootstrap, {**plain, "security.protocol": "SASL_SSL"})


def test_a_second_name_of_an_option_is_refused_beside_the_first_and_alone() -> None:
    one = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    for given in ({**one, "sasl.mechanisms": "PLAIN"}, {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN"}):
        with pytest.raises(BadInput, match=r"another name of 'sasl.mechanism'; write that one"):
            KafkaSettings("k:9092", given)


def test_a_login_without_a_mechanism_is_refused_because_the_clients_own_choice_runs_commands() -> None:
    with pytest.raises(BadInput, match=r"needs a sasl.mechanism"):
        KafkaSettings("k:9092", {"security.protocol": "SASL_SSL", "sasl.username": "ada"})


def test_a_value_that_is_not_text_is_refused() -> None:
    with pytest.raises(BadInput, match=r"socket.timeout.ms.*of type int"):
        KafkaSettings("k:9092", {"socket.timeout.ms": 5})  # type: ignore[dict-item]


def test_secrets_are_never_shown() -> None:
    secrets = dict.fromkeys(("sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password"), "hush-1")
    settings = KafkaSettings(
        "k:9092", {**secrets, "sasl.username": "ada", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    )
    assert "hush-1" not in repr(settings) + str(settings) + f"{settings}"
    assert "ada" in repr(settings)


def test_settings_survive_the_way_to_another_process_and_changes_of_the_callers_mapping() -> None:
    mine = {"client.id": "me"}
    settings = KafkaSettings("k:9092", mine)
    mine["plugin.library.paths"] = "evil.so"
    assert settings.options == {"client.id": "me"}
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_reader_never_commits_never_moves_silently_and_has_bounded_queues() -> None:
    config = consumer_config(KafkaSettings("k:9092"), group="g", isolation="read_committed")
    assert config | {"logger": None} == {
        "bootstrap.servers": "k:9092",
        "client.id": "wavestitch",
        "group.id": "g",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
        "queued.max.messages.kbytes": 32768,
        "fetch.queue.backoff.ms": 5,
        "max.partition.fetch.bytes": 8 << 20,
        "fetch.wait.max.ms": 50,
        "logger": None,
    }


def test_the_client_library_takes_every_configuration() -> None:
    settings = KafkaSettings("127.0.0.1:9", {"security.protocol": "PLAINTEXT", "socket.timeout.ms": "1000"})
    open_consumer(settings, group="g", isolation="read_uncommitted").close()
    open_admin(settings)
    open_producer(settings, own={"linger.ms": 20}, tuning={"linger.ms": 5, "compression.type": "zstd"}).flush(0)


def test_what_the_client_does_not_take_is_said() -> None:
    with pytest.raises(BadInput, match="does not take its settings: Invalid value for"):
        open_producer(KafkaSettings("127.0.0.1:9"), own={}, tuning={"linger.ms": "soon"})


def test_no_tuning_takes_a_producer_its_idempotence() -> None:
    config = producer_config(KafkaSettings("k:9092"), own={"acks": 0}, tuning={"linger.ms": 1})
    assert (config["enable.idempotence"], config["acks"], config["linger.ms"]) == (True, "all", 1)
    with pytest.raises(BadInput, match=r"'acks', 'message\.timeout\.ms' cannot be set here"):
        producer_config(KafkaSettings("k:9092"), tuning={"message.timeout.ms": 1, "acks": "0"})


def test_every_client_is_made_in_one_place() -> None:
    product = (
        p for top in ("wavestitch", "consumers", "spark_apps", "dags", "plugins") for p in (ROOT / top).rglob("*.py")
    )
    made = re.compile(r"\b(AdminClient|Consumer|Producer)\(")
    makers = {p.relative_to(ROOT).as_posix() for p in product if made.search(p.read_text(encoding="utf-8"))}
    # The embedded broker, which is on this machine alone, is looked at while it starts.
    assert makers == {"wavestitch/local/broker.py"}


TLS = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "hush"}
WITHOUT_CERTIFICATE = [
    "AECDH-AES128-SHA:@SECLEVEL=0",
    "AECDH-AES128-SHA",
    "adh-AES128-SHA256",
    "aNULL",
    "kEDH+aNULL",
    "eNULL",
    "NULL-SHA256",
    "ECDHE-RSA-NULL-SHA",
    "ECDHE+AESGCM:@SECLEVEL=0",
    "ECDHE+AESGCM:aNULL",
    "ECDHE+AESGCM, aNULL",
    "ALL",
    "HIGH",
    "COMPLEMENTOFDEFAULT",
    "PSK",
    "SRP-AES-128-CBC-SHA",
    "TLS_DH_anon_WITH_AES_128_CBC_SHA",
]


@pytest.mark.parametrize("suites", WITHOUT_CERTIFICATE)
def test_cipher_suites_without_a_certificate_of_the_broker_are_refused(suites: str) -> None:
    with pytest.raises(BadInput, match=r"ssl\.cipher\.suites' takes in .*, with which a broker shows no certificate"):
        KafkaSettings("h:1", {**TLS, "ssl.cipher.suites": suites})
    with pytest.raises(BadInput, match=r"takes in"):
        tls_context({"ssl.cipher.suites": suites})


@pytest.mark.parametrize(
    "suites", ["ECDHE+AESGCM", "HIGH:!aNULL:!eNULL", "ALL:!aNULL:!eNULL:!PSK", "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA"]
)
def test_cipher_suites_with_a_certificate_are_taken(suites: str) -> None:
    KafkaSettings("h:1", {**TLS, "ssl.cipher.suites": suites})


def test_cipher_suites_that_are_none_are_refused_when_they_are_read() -> None:
    with pytest.raises(BadInput, match="names no suite that there is"):
        KafkaSettings("h:1", {**TLS, "ssl.cipher.suites": "TLS_NO_SUCH_SUITE"})


def test_a_broker_that_has_shown_no_certificate_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second line: as if the library had taken words that nobody knows."""
    monkeypatch.setattr(tls, "check_ciphers", lambda _: None)
    suites = "AECDH-AES128-SHA:@SECLEVEL=0"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(suites)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    got: list[bytes] = []

    def serve() -> None:
        plain, _ = listening.accept()
        with contextlib.suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as found:
            got.append(found.recv(100))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with (
            socket.create_connection(listening.getsockname(), 10) as plain,
            pytest.raises(ssl.SSLCertVerificationError, match="has shown no certificate"),
        ):
            tls.connect_tls(plain, {"ssl.cipher.suites": suites}, host="broker.example")
        thread.join(10)
    assert b"".join(got) == b""
