"""Settings: one file, overrides, refusals, secrets only by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.warehouse import plain_warehouse
from wavestitch.secret_reference import MOST_SECRET_BYTES, resolve_secret
from wavestitch.settings import load_settings, load_stream, parse_settings

TEXT = """
landing = "/l"
docs = "/d"
[kafka]
bootstrap = "127.0.0.1:1"
[kafka.options]
"sasl.password" = "env:CANARY"
[tables]
uri = "sqlite:///c"
warehouse = "file:///w"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "wavestitch.toml"
    path.write_text(TEXT)
    return path


def load(config: Path, **env: str):  # type: ignore[no-untyped-def]
    return load_settings({"WAVESTITCH_CONFIG": str(config), **env})


def test_the_environment_overrides_the_file(config: Path) -> None:
    assert load(config, WAVESTITCH_KAFKA__BOOTSTRAP="h:2", WAVESTITCH_CACHE="/c").kafka.bootstrap == "h:2"


def test_an_override_names_one_entry_of_a_table_or_is_json(config: Path) -> None:
    found = load(
        config,
        WAVESTITCH_MAINTAIN__STREAMS__ECG__DATA_DOCS="3 d",
        WAVESTITCH_SPARK__ENVIRONMENT='["AWS_PROFILE"]',
        **{"WAVESTITCH_KAFKA__OPTIONS__SASL.USERNAME": "ada"},
    )
    assert found.maintain.of("ecg").data_docs == 3 * 86400
    assert found.spark.environment == ("AWS_PROFILE",)
    assert found.kafka.options == {"sasl.password": "env:CANARY", "sasl.username": "ada"}


def test_a_variable_with_a_stream_s_key_is_no_setting_and_stands_beside_them(config: Path) -> None:
    found = load(config, WAVESTITCH_PROOF_ECG="sixteen bytes or more", WAVESTITCH_KEY_FOLDER="/run/keys")
    assert found.key_folder == Path("/run/keys")
    assert "sixteen" not in repr(found)


@pytest.mark.parametrize(
    "name", ["WAVESTITCH_LANDINGS", "WAVESTITCH_LANDING__X", "WAVESTITCH_", "WAVESTITCH_KAFKAS__BOOTSTRAP"]
)
def test_an_override_of_what_is_no_setting_is_refused_by_name(config: Path, name: str) -> None:
    with pytest.raises(BadInput, match=rf"{name} does not name a setting"):
        load(config, **{name: "x"})


def test_an_override_that_cannot_be_read_is_refused_without_its_value(config: Path) -> None:
    with pytest.raises(BadInput, match="the environment: ") as refused:
        load(config, WAVESTITCH_SPARK__ENVIRONMENT="[hunter2")
    assert "hunter2" not in refused.value.message


def test_an_unknown_key_is_refused_by_name(config: Path) -> None:
    config.write_text(TEXT + "[spark]\nmastre = 'x'\n")
    with pytest.raises(BadInput, match=r"spark\.mastre"):
        load(config)


def test_an_unreadable_file_is_one_sentence(config: Path) -> None:
    config.write_text("landing = ")
    with pytest.raises(BadInput, match="cannot be read as TOML"):
        load(config)


@pytest.mark.parametrize("content", [b"landing = '\xff'", b"a = " + b"[" * 5000])
def test_a_file_that_is_no_text_or_too_deep_is_one_sentence_too(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    with pytest.raises(BadInput, match="cannot be read as TOML"):
        load(config)


def test_a_secret_file_that_is_no_text_is_refused_without_a_byte_of_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xffhunter2")
    with pytest.raises(BadInput, match="is no text") as refused:
        resolve_secret(f"file:{tmp_path}/key")
    assert "hunter2" not in refused.value.message
    assert "0xff" not in refused.value.message
    with pytest.raises(BadInput, match="no file has such a name"):
        resolve_secret("file:/a\0b")


def test_a_secret_ends_where_its_text_does_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" s3cret \n\n")
    assert resolve_secret(f"file:{tmp_path}/key") == resolve_secret("env:KEY", {"KEY": " s3cret \n"}) == "s3cret"


@pytest.mark.parametrize("name", ["/dev/zero", "{}", "{}/large"])
def test_a_secret_file_is_small_and_plain(tmp_path: Path, name: str) -> None:
    (tmp_path / "large").write_bytes(b"x" * (MOST_SECRET_BYTES + 1))
    with pytest.raises(BadInput, match=r"no plain file|has more than 65536 bytes"):
        resolve_secret(f"file:{name.format(tmp_path)}")


def test_a_missing_file_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="`wavestitch init` writes one, `wavestitch up` makes one"):
        load_settings({})


def test_secrets_are_references_and_never_printed(config: Path) -> None:
    settings = load(config)
    assert resolve_secret(settings.kafka.options["sasl.password"], {"CANARY": "s3cret"}) == "s3cret"
    assert "CANARY" not in str(settings.redacted())
    with pytest.raises(BadInput, match="CANARY, which is not set"):
        resolve_secret("env:CANARY", {})


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("KAFKA__OPTIONS", "SASL.PASSWORD"),
        ("KAFKA__OPTIONS", "SSL.KEY.PEM"),
        ("TABLES__PROPERTIES", "S3.SECRET-ACCESS-KEY"),
        ("TABLES__PROPERTIES", "CREDENTIAL"),
        ("TABLES__PROPERTIES", "TOKEN"),
        ("SPARK__CONF", "SPARK.AUTHENTICATE.SECRET"),
    ],
)
def test_a_secret_in_the_settings_themselves_is_refused_without_repeating_it(
    config: Path, section: str, key: str
) -> None:
    with pytest.raises(BadInput, match="holds a secret itself; write env:NAME or file:PATH") as refused:
        load(config, **{f"WAVESTITCH_{section}__{key}": "hunter2"})
    assert key.lower() in refused.value.message
    assert "hunter2" not in refused.value.message
    where_it_is = load(config, **{f"WAVESTITCH_{section}__{key}": "file:/run/secret"})
    assert "/run/secret" not in f"{where_it_is.redacted()} {where_it_is} {where_it_is!r}"


def test_a_catalog_address_with_a_password_is_refused_or_a_reference(config: Path) -> None:
    with pytest.raises(BadInput, match=r"tables\.uri holds a password itself") as refused:
        load(config, WAVESTITCH_TABLES__URI="postgresql://ada:hunter2@db/catalog")
    assert "hunter2" not in refused.value.message
    assert "CATALOG" not in str(load(config, WAVESTITCH_TABLES__URI="env:CATALOG_URI").redacted())
    assert (
        load(config, WAVESTITCH_TABLES__URI="postgresql://ada@db/catalog")
        .redacted()["tables"]["uri"]
        .endswith("/catalog")
    )


def test_where_a_secret_is_kept_and_how_long_it_is_are_no_secrets(config: Path) -> None:
    plain = {"SPARK.KUBERNETES.OAUTHTOKENFILE": "/run/token", "SPARK.AUTHENTICATE.SECRETBITLENGTH": "256"}
    found = load(config, **{f"WAVESTITCH_SPARK__CONF__{k}": v for k, v in plain.items()})
    assert sorted(found.redacted()["spark"]["conf"].values()) == ["/run/token", "256"]


def test_a_stream_that_is_not_there_is_named_with_those_that_are(config: Path, tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    settings = load(config, WAVESTITCH_STREAMS=str(tmp_path / "streams"))
    assert load_stream(settings, "ecg").topic == "t"
    with pytest.raises(BadInput, match="known are: ecg"):
        load_stream(settings, "../ecg")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("file:///srv//w", "file:///srv/w"),
        ("file:///srv/./w/", "file:///srv/w"),
        ("file:/srv/w", "file:///srv/w"),
        ("file:////srv/w", "file:///srv/w"),
        ("FILE:///srv/w", "file:///srv/w"),
        ("file:///srv/a b%41\u00e9", "file:///srv/a b%41\u00e9"),
        ("s3://bucket//w/./x/", "s3://bucket/w/x"),
        ("s3a://bucket", "s3://bucket"),
        ("gs://bucket//w", "gs://bucket//w"),
    ],
)
def test_a_warehouse_is_written_plainly(said: str, meant: str) -> None:
    assert parse_settings(TEXT.replace("file:///w", said), where="a test").tables.warehouse == meant


@pytest.mark.parametrize(
    "said",
    ["s3:bucket/w", "s3:///w", "s3://B/w", "s3://bucket/../w", "s3://bucket/w?x", "s3://b-/w"],
)
def test_a_warehouse_that_is_no_plain_place_in_a_store_is_refused(said: str) -> None:
    with pytest.raises(BadInput, match=r"tables\.warehouse: warehouse .* as in s3://waveforms/warehouse; see"):
        parse_settings(TEXT.replace("file:///w", said), where="a test")


@pytest.mark.parametrize(
    "said",
    [
        "file://srv/w",
        "file://localhost/srv/w",
        "file:srv/w",
        "file:",
        "file:///",
        "file:///srv/../w",
        "file:///srv/w#x",
        "file:///srv/w?x",
        "file:///srv/\u202ew",
    ],
)
def test_a_warehouse_that_not_all_take_for_the_same_folder_is_refused(said: str) -> None:
    with pytest.raises(BadInput, match=r"tables\.warehouse: warehouse .* as in file:///srv/wavestitch/warehouse; see"):
        parse_settings(TEXT.replace("file:///w", said), where="a test")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("webhook", "http://hooks.example/hunter2", "plain http beyond this machine"),
        ("webhook", "http://127.0.0.1.example/hunter2", "plain http beyond this machine"),
        ("webhook", "https://ada:hunter2@hooks.example/", "holds a"),
        ("webhook", "https://hooks.example/?token=hunter2", "holds the secret parameter token"),
        ("webhook", "hooks.example/hunter2", "no address of the web"),
        ("webhook", "ftp://hooks.example/hunter2", "no address of the web"),
        ("webhook", "https://hooks.example:x/hunter2", "is no address"),
        ("webhook", "https://hooks.example/hunter2 x", "characters that no address has"),
        ("token", "hunter2", "holds the secret itself"),
        ("token", "env:HOOK", "none is named"),
        ("log", "false", "nobody would be told"),
        ("red", "0.6", "amber comes first"),
        ("timeout", "10 m", "less than or equal to 60"),
    ],
)
def test_a_way_to_tell_somebody_that_cannot_be_is_refused_without_a_secret(
    config: Path, key: str, value: str, says: str
) -> None:
    with pytest.raises(BadInput, match=f"notify.*{says}") as refused:
        load(config, **{f"WAVESTITCH_NOTIFY__{key.upper()}": value})
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("hunter2", "holds the secret itself"),
        ("env:TOKEN", "file:PATH, the path absolute"),
        ("file:token", "file:PATH, the path absolute"),
    ],
)
def test_a_token_for_kafka_is_a_file_that_can_be_read_anew(config: Path, value: str, says: str) -> None:
    with pytest.raises(BadInput, match=rf"kafka\.token.*{says}") as refused:
        load(config, WAVESTITCH_KAFKA__TOKEN=value)
    assert "hunter2" not in refused.value.message
    found = load(config, WAVESTITCH_KAFKA__TOKEN="file:/run/secrets/kafka/token")
    assert (found.kafka.token, found.redacted()["kafka"]["token"]) == ("file:/run/secrets/kafka/token", "…")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("otlp", "http://otel.example/hunter2", "plain http beyond this machine"),
        ("otlp", "https://otel.example/?token=hunter2", "holds the secret parameter token"),
        ("token", "hunter2", "holds the secret itself"),
        ("token", "env:OTLP", "none is named"),
        ("timeout", "10 m", "less than or equal to 60"),
        ("endpoint", "https://otel.example", "Extra inputs"),
    ],
)
def test_a_way_for_metrics_that_cannot_be_is_refused_without_a_secret(
    config: Path, key: str, value: str, says: str
) -> None:
    with pytest.raises(BadInput, match=f"metrics.*{says}") as refused:
        load(config, **{f"WAVESTITCH_METRICS__{key.upper()}": value})
    assert "hunter2" not in refused.value.message


def test_of_a_receiver_of_metrics_only_whom_it_leads_to_is_printed(config: Path) -> None:
    address = "https://otel.example:4318/hunter2/v1/metrics"
    found = load(config, WAVESTITCH_METRICS__OTLP=address, WAVESTITCH_METRICS__TOKEN="file:/run/hunter2")
    assert found.redacted()["metrics"] == {
        "textfile": None,
        "otlp": "https://otel.example:4318/…",
        "token": "…",
        "timeout": 10,
    }
    assert "hunter2" not in str(found)
    assert not load(config).metrics.wanted


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://hooks.example:8443/services/hunter2", "https://hooks.example:8443/…"),
        ("http://localhost:1/hunter2", "http://localhost:1/…"),
        ("http://[::1]:1/hunter2", "http://[::1]:1/…"),
        ("file:/run/hunter2", "…"),
    ],
)
def test_of_a_webhook_only_whom_it_leads_to_is_printed(config: Path, value: str, shown: str) -> None:
    found = load(config, WAVESTITCH_NOTIFY__WEBHOOK=value, WAVESTITCH_NOTIFY__TOKEN="file:/run/hunter2")
    ways = found.redacted()["notify"]
    assert (ways["webhook"], ways["token"], ways["timeout"]) == (shown, "…", 10)
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("warehouse", "says"),
    [
        (
            "s3://AKIA4711:hunter2@waveforms/warehouse",
            r"itself; leave it out, and name it by reference in \[tables.properties\]",
        ),
        ("s3://hunter2@waveforms/warehouse", "itself; leave it out"),
        ("s3://waveforms/warehouse?token=hunter2", "itself; leave it out|is no place|has '"),
        ("file://u:hunter2@nas/warehouse", "itself; leave it out"),
    ],
)
def test_a_warehouse_with_a_login_in_it_is_refused_without_a_word_of_it(
    config: Path, warehouse: str, says: str
) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        load(config, WAVESTITCH_TABLES__WAREHOUSE=warehouse)
    assert "hunter2" not in f"{refused.value}{refused.value.__cause__}"
    with pytest.raises(ValueError, match="warehouse") as spelled:
        plain_warehouse(warehouse)
    assert "hunter2" not in str(spelled.value)


@pytest.mark.parametrize(("one", "other"), [("kafka", "spark"), ("kafka", "verify"), ("spark", "verify")])
def test_a_pool_that_two_kinds_of_tasks_share_has_one_size(config: Path, one: str, other: str) -> None:
    named = {"WAVESTITCH_CONFIG": str(config)}
    for part, slots in ((one, "2"), (other, "3")):
        named |= {f"WAVESTITCH_{part.upper()}__POOL": "all", f"WAVESTITCH_{part.upper()}__POOL_SLOTS": slots}
    with pytest.raises(BadInput, match=rf"{one}\.pool and {other}\.pool are both 'all'.*\(2 and 3\)"):
        load_settings(named)
    same = {name: "2" if name.endswith("SLOTS") else said for name, said in named.items()}
    assert load_settings(same).pools["all"] == 2
