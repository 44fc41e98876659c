"""Secrets: a planted one is never shown, wherever it stands and whatever surrounds it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.fuzz.draw import Draw, packed
from tests.fuzz.target import Target, check_sentence
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.redaction import is_secret, secret_inside, shown, shown_address
from wavestitch.contracts.stream import parse_stream
from wavestitch.kafka.client_settings import KafkaSettings, admin_config
from wavestitch.secret_reference import proof_of, resolve_secret, resolve_secrets
from wavestitch.settings import load_settings

PLANTED = "pl4ntedS3cret"
_KEYS = (
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
    "token",
    "credential",
    "s3.access-key-id",
    "s3.secret-access-key",
    "adls.account-key",
    "adls.connection-string",
    "adls.sas-token",
    "gcs.oauth2.token",
    "header.authorization",
    "spark.authenticate.secret",
    "spark.hadoop.fs.s3a.secret.key",
)
_PARAMETERS = ("password", "token", "sig", "apikey", "client_secret", "sslpassword", "X-Amz-Signature", "passphrase")
_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions", "spark.executor.defaultJavaOptions")


def secret_key(data: bytes) -> None:
    """A key that means a secret, in any case, with anything before it: refused, or masked."""
    draw = Draw(data)
    key = draw.pick(_KEYS)
    if draw.byte() & 1:
        key = key.upper()
    before, after = draw.text(), draw.text()
    key = f"{before}.{key}" if before else key
    value = draw.text() + PLANTED + after
    assert is_secret(key), key
    assert PLANTED not in shown(key, value)
    inside = secret_inside(key, value)
    assert inside is None or PLANTED not in inside
    assert inside is not None or value.startswith(("env:", "file:"))
    try:
        settings = KafkaSettings("localhost:1", {key: value, "security.protocol": "sasl_plaintext"})
    except BadInput as error:
        check_sentence(error.message)
        assert PLANTED not in error.message
    else:
        assert PLANTED not in repr(settings)
        assert PLANTED in str(admin_config(settings).get(key))


def secret_address(data: bytes) -> None:
    """A password or a secret parameter inside an address: refused, or masked; never in what an error says."""
    draw = Draw(data)
    scheme, user, host, path = draw.text() or "postgresql", draw.text(), draw.text(), draw.text()
    name = draw.pick(_PARAMETERS)
    prefix = "jdbc:" if draw.byte() & 1 else ""
    if any(c in scheme for c in ":/?#;") or any(c in user for c in "/@?#;") or any(c in path for c in "?#;"):
        return
    login = f"{prefix}{scheme}://{user}:{PLANTED}@{host}/{path}"
    query = f"{prefix}{scheme}://{host.translate(str.maketrans('', '', '?#;'))}/{path}?{draw.text()}&{name}={PLANTED}"
    mistyped = [] if ":" in user or not user.isalnum() else [f"{prefix}{user}:{PLANTED}@{host}/{path}"]
    for address in (login, query.replace("#", ""), *mistyped):
        _check_address(address)


def _check_address(address: str) -> None:
    refused = secret_inside("uri", address)
    said = shown_address(address)
    assert PLANTED not in said, (address, said)
    assert PLANTED not in shown("uri", address)
    # What is not known to be a secret is masked all the same; what is known to be one is refused, too.
    assert refused is not None, address
    assert PLANTED not in refused


def secret_option(data: bytes) -> None:
    """Among a JVM's options."""
    draw = Draw(data)
    key, name = draw.pick(_OPTIONS), draw.text()
    before, after = draw.text(), draw.text()
    if any(c.isspace() or c in "'\"\\=#" for c in name + after):
        return
    value = f"{before} -D{name}={PLANTED}{after}"
    assert PLANTED not in shown(key, value), shown(key, value)


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="wavestitch-fuzz-"))
    (folder / "key").write_text(PLANTED * 3)
    (folder / "binary").write_bytes(b"\xff" * 40)
    (folder / "long").write_bytes(b"a" * 10_000)
    return folder


def secret_settings(data: bytes) -> None:
    """A planted secret anywhere in a free section: the settings refuse it or mask it, and never say it."""
    draw = Draw(data)
    section, free = draw.pick((("kafka", "options"), ("tables", "properties"), ("spark", "conf")))
    key = draw.pick(_KEYS)
    value = draw.text() + PLANTED + draw.text()
    environment = {
        "WAVESTITCH_KAFKA__BOOTSTRAP": "b:1",
        "WAVESTITCH_TABLES__URI": "sqlite:////a",
        "WAVESTITCH_TABLES__WAREHOUSE": "/w",
        "WAVESTITCH_LANDING": "/l",
        "WAVESTITCH_DOCS": "/d",
        "WAVESTITCH_CACHE": "/c",
        f"WAVESTITCH_{section.upper()}__{free.upper()}": json.dumps({key: value}),
        draw.text(): draw.text(),
    }
    environment.pop("WAVESTITCH_CONFIG", None)
    try:
        settings = load_settings(environment)
    except BadInput as error:
        check_sentence(error.message)
        assert PLANTED not in error.message
        return
    assert PLANTED not in repr(settings)
    assert PLANTED not in json.dumps(settings.redacted())


def secret_reference(data: bytes) -> None:
    draw = Draw(data)
    text = draw.text().replace("FOLDER", str(_folder()))
    environment = {
        "WAVESTITCH_PROOF_KEY": PLANTED * 3,
        "SHORT": PLANTED,
        "EMPTY": "",
        draw.text().replace("\0", ""): "x" * 5000,
    }
    for look in (
        lambda: resolve_secret(text, environment),
        lambda: resolve_secrets({"sasl.password": text, "uri": text}, environment),
        lambda: proof_of(parse_stream(_stream(text), name="x"), keys=_folder(), environment=environment),
    ):
        try:
            look()
        except BadInput as error:
            check_sentence(error.message)
            assert PLANTED not in error.message
    assert PLANTED not in shown("sasl.password", text)


def _stream(reference: str) -> str:
    return f"topic: t\ngroup: g\nproof: mac\nproof_key: {json.dumps(reference, ensure_ascii=True)}\n"


def _key_seeds() -> Iterator[bytes]:
    for n in range(len(_KEYS)):
        yield packed(n, 0, "", "", "")
    yield packed(0, 1, "x", "y", "env:")
    yield packed(0, 0, "", "", "file://")


def _address_seeds() -> Iterator[bytes]:
    for n in range(len(_PARAMETERS)):
        yield packed("postgresql", "me", "db:5432", "iceberg", n, 0, "sslmode=require")
    yield packed("sqlserver", "me", "db", "a", 0, 1, "user=x;y=z")
    yield packed("mysql+pymysql", "a%40b", "h@i", "//", 0, 1, "=&&=;")
    yield packed("http", "", "[::1]", "", 0, 0, "")


def _setting_seeds() -> Iterator[bytes]:
    for n in range(3):
        yield packed(n, 0, "env:", "", "WAVESTITCH_CACHE", "/c")
        yield packed(n, 5, "", "", "WAVESTITCH_KAFKA", '{"options": {}}')


def _reference_seeds() -> Iterator[bytes]:
    for text in (
        "env:WAVESTITCH_PROOF_KEY",
        "file:key",
        "file:binary",
        "file:long",
        "env:SHORT",
        "env:EMPTY",
        "env:NONE",
        "file:FOLDER/key",
        "file:FOLDER/binary",
    ):
        yield packed(text, "A")
    for text in (
        "file:FOLDER/long",
        "file:/dev/null",
        "file:FOLDER",
        "file:\0",
        "file:" + "a" * 300,
        "file://FOLDER/key",
    ):
        yield packed(text, "A")


TARGETS = (
    Target("secret_key", secret_key, _key_seeds, ("env:", "file:", "file://", *_KEYS), 500),
    Target("secret_address", secret_address, _address_seeds, ("jdbc:", "sqlite", "%3A", "@", ";", *_PARAMETERS), 500),
    Target(
        "secret_option",
        secret_option,
        lambda: [packed(n, "a.b", "-XX:a=b", "c") for n in range(3)],
        ("-D", "-XX:", "'"),
        300,
    ),
    Target("secret_settings", secret_settings, _setting_seeds, ("WAVESTITCH_", "__", "OPTIONS", "env:", "{}"), 500),
    Target(
        "secret_reference", secret_reference, _reference_seeds, ("FOLDER/", "env:", "file:", "\0", "/proc/self/"), 500
    ),
)
