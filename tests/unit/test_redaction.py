"""Secrets stand in the settings only by reference, wherever a value could hold one; what may be one is not printed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spark_apps.submit import spark_conf
from tests.security.canaries import KINDS_OF_KEYS
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.redaction import KINDS_OF_SECRETS, MASK, secret_inside, shown, shown_address
from wavestitch.settings import Settings

SECRET = "hunter2"


def settings(uri: str = "sqlite:////x", *, master: str = "local[2]", **free: Any) -> Settings:
    found: dict[str, Any] = {
        "kafka": {"bootstrap": "h:1", "options": free.get("options", {})},
        "tables": {"uri": uri, "warehouse": "file:///w", "properties": free.get("properties", {})},
        "spark": {"master": master, "conf": free.get("conf", {})},
        "landing": "/l",
        "docs": "/d",
    }
    return Settings.model_validate(found)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://u:hunter2@h/db",
        "postgresql://u:hun/hunter2@h/db",
        "postgresql://u:hun@hunter2@h/db",
        "postgresql:///db?user=u&password=hunter2",
        "mysql://h/db?user=u&passwd=hunter2",
        "postgresql+psycopg2://h/db?options=x&sslpassword=hunter2",
        "mssql://h/db;user=u;pwd=hunter2",
        "https://h/catalog?sig=hunter2",
        "https://hunter2@h/catalog",
        "host=h user=u password=hunter2",
        "host=h user=u passwd = 'hunter2'",
        "https://h/catalog?api_key=hunter2",
        "https://h/catalog?X-Amz-Signature=hunter2",
        "postgresql://u:hun\nhunter2@h/db",
        "postgresql://u:\r\nhunter2@h/db",
        "postgresql:/\t/u:hunter2@h/db",
        "https:\\\\u:hunter2@h/catalog",
        "https:/\\hun\nhunter2@h/catalog",
        "postgresql://ada@server:hunter2@h/db",
        "postgresql://ada@example.com:hunter2@h:5432/db",
        "mssql+pyodbc://CORP\\ada:hunter2@h/db",
        "mssql+pyodbc://CORP/ada:hunter2@h/db",
        "https://h/catalog;token=hunter2?x=y",
        "ada@server:hunter2@h/db",
        "CORP\\ada:hunter2@h/db",
        "a b:hunter2@h/db",
        "https:hunter2@h/catalog",
        "u:hunter2@strength.example/db",
        "u:hunter2@sha1:5432/db",
        "u:hunter2@h/db",
        "u:hun@hunter2@h/db",
        "u:hun/hunter2@h/db",
        "u:hunter2:@h/db",
        ":hunter2@h/db",
        "u:/hunter2@h/db",
        "postgresql:u:hunter2@h/db",
        "postgresql:/u:hunter2@h/db",
        "postgresql://\n/u:hunter2@h/db",
        "postgresql//u:hunter2@h/db",
        "jdbc:postgresql:u:hunter2@h/db",
        "jdbc:postgresql:/u:hunter2@h/db",
        "POSTGRESQL:\\u:hunter2@h/db",
    ],
)
def test_a_secret_in_an_address_is_refused_without_repeating_it(uri: str) -> None:
    with pytest.raises(ValueError, match=r"tables\.uri holds .* itself; write the whole as env:NAME") as refused:
        settings(uri)
    assert SECRET not in str(refused.value).partition("[type=")[0]
    assert SECRET not in shown_address(uri)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("properties", "header.Authorization", "Bearer hunter2"),
        ("properties", "s3.endpoint", "https://hunter2@h"),
        ("properties", "s3.proxy-uri", "http://hunter2@proxy:3128"),
        ("conf", "spark.jars", "https://hunter2@h/a.jar"),
        ("conf", "spark.eventLog.dir", "s3a://hunter2@bucket/x"),
        ("conf", "spark.sql.catalog.x.uri", "jdbc:oracle:thin:scott/hunter2@//h:1521/x"),
        ("conf", "spark.sql.catalog.x.uri", "jdbc:oracle:thin:scott/hun/hunter2@h:1521:x"),
        ("conf", "spark.sql.catalog.x.uri", "jdbc:mysql://address=(host=h)(user=u)(password=hunter2)/db"),
        ("conf", "spark.sql.catalog.x.uri", "jdbc:mysql://(host=h,user=u,password = hunter2)/db"),
        ("conf", "spark.driver.extraJavaOptions", "-XX:OnOutOfMemoryError='curl -u me:hunter2 http://h'"),
        ("conf", "spark.executor.extraJavaOptions", "-XX:OnError=curl\\ hunter2"),
        ("properties", "header.X-Whatever", "Basic hunter2"),
        ("properties", "header.Cookie", "hunter2"),
        ("properties", "adls.account-key", SECRET),
        ("properties", "adls.connection-string", "AccountKey=hunter2"),
        ("properties", "adls.sas-token", SECRET),
        ("properties", "s3.secret-access-key", SECRET),
        ("properties", "s3.proxy-uri", "http://u:hunter2@proxy:3128"),
        ("properties", "auth.passwd", SECRET),
        ("properties", "api_key", SECRET),
        ("conf", "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net", SECRET),
        ("conf", "spark.hadoop.fs.s3a.access.key", SECRET),
        ("conf", "spark.hadoop.javax.jdo.option.ConnectionPwd", SECRET),
        ("conf", "spark.ssl.keyPassphrase", SECRET),
        ("conf", "spark.sql.catalog.x.uri", "jdbc:postgresql://h/db?user=u&password=hunter2"),
        ("conf", "spark.driver.extraJavaOptions", "-Xmx1g -Djavax.net.ssl.trustStorePassword=hunter2"),
        ("conf", "spark.executor.extraJavaOptions", "'-Dhttp.proxyPassword=hunter2 with more'"),
        ("conf", "spark.driver.defaultJavaOptions", "-Dcatalog=https://u:hunter2@h"),
        ("conf", "spark.driver.extraJavaOptions", "-Xmx1g -Dcatalog=u:hunter2@h/db"),
        ("conf", "spark.driver.extraJavaOptions", "-javaagent:/opt/a.jar=u:hunter2@h"),
        ("conf", "spark.sql.catalog.x.uri", "jdbc:postgresql://ada@server:hunter2@h/db"),
        ("conf", "spark.executorEnv.DATABASE_URL", "u:hunter2@h/db"),
        ("properties", "s3.proxy-uri", "http://CORP\\ada:hunter2@proxy:3128"),
        ("properties", "s3.endpoint", "u:hunter2@h"),
    ],
)
def test_a_secret_under_a_free_key_is_refused_without_repeating_it(section: str, key: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"holds .*itself; write env:NAME or file:PATH") as refused:
        settings(**{section: {key: value}})  # type: ignore[arg-type]
    assert SECRET not in str(refused.value).partition("[type=")[0]
    assert key in str(refused.value)
    assert SECRET not in shown(key, value)
    by_reference = settings(**{section: {key: "env:CANARY"}})  # type: ignore[arg-type]
    assert "CANARY" not in str(by_reference.redacted())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("s3.signer.whatever", SECRET),
        ("some.new.catalog.option", SECRET),
        ("spark.hadoop.fs.new.thing", SECRET),
        # Only of a key that is about a secret its end says that it finds one.
        *((f"some.new.catalog.{end}", SECRET) for end in ("file", "path", "class", "length", "enabled", "server-uri")),
        ("header.x-tenant", SECRET),
        ("spark.driver.extraJavaOptions", "-Xmx1g -Dunknown=hunter2 -agentlib:x=hunter2"),
        ("spark.driver.extraJavaOptions", "-Dpass hunter2"),
        ("spark.driver.extraJavaOptions", "-Dpass:hunter2"),
        ("spark.driver.extraJavaOptions", "-XX:Flag='a hunter2'"),
        ("uri", "postgresql://ada@h/db?options=hunter2"),
        ("s3.endpoint", "https://h/#hunter2"),
    ],
)
def test_what_nobody_knows_to_be_harmless_is_masked(key: str, value: str) -> None:
    assert SECRET not in shown(key, value)
    assert MASK in shown(key, value) or "#" in value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("s3.endpoint", "https://minio.example:9000"),
        ("py-io-impl", "pyiceberg.io.fsspec.FsspecFileIO"),
        ("spark.driver.memory", "4g"),
        ("spark.kubernetes.oauthTokenFile", "/run/token"),
        ("spark.authenticate.secretBitLength", "256"),
        ("spark.driver.extraJavaOptions", "-Xmx1g -XX:SharedArchiveFile=/cache/a.jsa"),
        ("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dplain"),
        ("warehouse", "abfss://container@account.dfs.core.windows.net/w"),
        ("security.protocol", "SASL_SSL"),
        ("socket.timeout.ms", "1000"),
        ("ssl.cipher.suites", "DEFAULT:@SECLEVEL=1"),
        ("ssl.cipher.suites", "ALL:!aNULL:@STRENGTH"),
        ("spark.kubernetes.container.image", "apache/spark:4.1@sha256:0123456789abcdef"),
        ("spark.kubernetes.container.image", "spark:4.1@sha256:0123456789abcdef"),
        ("spark.kubernetes.container.image", "localhost:5000/spark@sha512:0123456789abcdef"),
        ("spark.eventLog.dir", "hdfs:/logs/ada"),
        ("spark.eventLog.dir", "/logs/of:ada@example"),
        ("spark.sql.catalog.x.uri", "jdbc:oracle:thin:@//h:1521/x"),
        ("uri", "postgresql://ada@db.example:5432/iceberg?sslmode=verify-full&sslrootcert=/ca.pem"),
    ],
)
def test_what_is_known_to_be_no_secret_is_shown_as_it_is(key: str, value: str) -> None:
    assert shown(key, value) == value
    assert secret_inside(key, value) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.hadoop.hadoop.security.auth_to_local", "RULE:[1:$1@$0](.*@REALM)s/@.*//"),
        ("spark.kubernetes.driver.annotation.contact", "mailto:ada@example.com"),
        ("header.From", "mailto:ada@example.com"),
        ("client.id", "team:wavestitch@prod"),
        ("spark.app.name", "job:ada@example"),
        (
            "spark.driver.extraJavaOptions",
            "-javaagent:/opt/a@b/c.jar -agentlib:jdwp=address=*:5005 -Dmail=ada@example.com",
        ),
    ],
)
def test_what_only_looks_like_an_address_is_not_refused(key: str, value: str) -> None:
    assert secret_inside(key, value) is None


@pytest.mark.parametrize(
    "value",
    [
        *("jdbc:postgresql://ada@server:hunter2@h/db", "https://a@b:hunter2@h", "http://CORP/ada:hunter2@proxy"),
        *("u:hunter2@h/db", "-Xmx1g -Dcatalog=u:hunter2@h/db", "jdbc:oracle:thin:scott/hunter2@//h:1521/x"),
    ],
)
def test_an_address_with_a_login_is_hidden_by_spark_too(value: str) -> None:
    assert re.search(spark_conf("local[1]", {})["spark.redaction.regex"], value)


def test_every_kind_of_secret_key_is_hidden_by_spark_too() -> None:
    for kind in KINDS_OF_SECRETS:
        assert any(re.search(kind, key.lower()) for key in KINDS_OF_KEYS), f"no key is tried for {kind}"
    hides = re.compile(spark_conf("local[1]", {})["spark.redaction.regex"])
    assert [key for key in KINDS_OF_KEYS if not hides.search(key)] == []
    assert [
        key for key in ("spark.driver.memory", "spark.master", "spark.sql.shuffle.partitions") if hides.search(key)
    ] == []
    assert hides.search("https://u:hunter2@h/x")
    assert hides.search("jdbc:oracle:thin:scott/hunter2@h:1521:x")
    assert not hides.search("https://h:8080/x")


def test_what_the_settings_refer_to_is_hidden_by_spark_whatever_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", SECRET)
    conf = {"spark.hadoop.fs.new.thing": "env:CANARY", "spark.redaction.regex": "of.my.own", "spark.plain": "1"}
    found = settings(conf=conf, properties={"scope": "env:CANARY", "prefix": "p"})
    hides = re.compile(spark_conf("local[1]", Deployment(found).spark_conf)["spark.redaction.regex"])
    hidden = ("spark.hadoop.fs.new.thing", "spark.of.my.own", "spark.x.pwd", "spark.sql.catalog.wavestitch.scope")
    assert [key for key in hidden if not hides.search(key)] == []
    assert not hides.search("spark.plain")
    assert not hides.search("spark.hadoop.fs.new.thing.else")
    assert not hides.search("spark.sql.catalog.wavestitch.prefix")


def test_a_login_in_the_address_of_the_master_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spark\.master holds a password"):
        settings(master="k8s://https://u:hunter2@k:6443")


def test_an_address_of_files_is_no_reference() -> None:
    assert settings(properties={"warehouse": "file:///data/w"}).redacted()["tables"]["properties"] == {
        "warehouse": "file:///data/w"
    }


@pytest.mark.parametrize(
    "query", ["password:hunter2&a=b", "a=b&password%3Dhunter2", "password hunter2=x", "x;pwd\0hunter2=1"]
)
def test_a_secret_that_slipped_into_a_parameter_s_name_is_not_repeated(query: str) -> None:
    uri = f"postgresql://h/db?{query}"
    assert SECRET not in shown_address(uri)
    assert SECRET not in (secret_inside("uri", uri) or "")
    assert SECRET not in (secret_inside("spark.driver.extraJavaOptions", f"'-Dpassword:{SECRET}=1'") or "")
