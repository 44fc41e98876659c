"""Where a Spark that is there already may be, and what of its token is shown."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wavestitch.contracts.spark_address import DEFAULT_PORT, SparkAddress, read_spark_address
from wavestitch.settings_sections import Spark


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("sc://127.0.0.1:15902", SparkAddress("127.0.0.1", 15902, tls=False)),
        ("sc://localhost", SparkAddress("127.0.0.1", DEFAULT_PORT, tls=False)),
        ("sc://LOCALHOST:7", SparkAddress("127.0.0.1", 7, tls=False)),
        ("sc://localhost:7/;use_ssl=true", SparkAddress("localhost", 7, tls=True)),
        ("sc://[::1]:7/", SparkAddress("::1", 7, tls=False)),
        ("sc://spark.example:443/;use_ssl=true", SparkAddress("spark.example", 443, tls=True)),
    ],
)
def test_an_address_is_read_and_said_as_it_was_meant(text: str, address: SparkAddress) -> None:
    assert read_spark_address(text) == address
    assert read_spark_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sc://spark.example:15002", "leads beyond this machine without TLS"),
        ("sc://10.0.0.7", "leads beyond this machine without TLS"),
        ("sc://127.0.0.1/;token=hunter2", "holds a login"),
        ("sc://me:hunter2@127.0.0.1", "holds a login"),
        ("sc://127.0.0.1/;use_ssl=false", "is not the address of a Spark Connect server"),
        ("sc://127.0.0.1/;user_id=x", "is not the address of a Spark Connect server"),
        ("spark://m:7077", "is not the address of a Spark Connect server"),
        ("sc://", "is not the address of a Spark Connect server"),
        ("sc://127.0.0.1:port", "is no address"),
        ("sc://127.0.0.1 :1", "has characters that no address has|is no address"),
    ],
)
def test_what_is_no_safe_address_is_refused_without_saying_its_secret(text: str, why: str) -> None:
    with pytest.raises(ValidationError, match=f"remote\n.* it ({why}).*write sc://HOST:PORT") as refused:
        Spark(remote=text, token="env:T")
    assert "hunter2" not in str(refused.value.errors(include_input=False)[0]["msg"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"remote": "sc://127.0.0.1"}, "remote and token go together"),
        ({"token": "env:T"}, "remote and token go together"),
        ({"remote": "sc://127.0.0.1", "token": "hunter2"}, "holds the secret itself"),
    ],
)
def test_a_spark_without_a_token_or_with_a_written_one_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Spark.model_validate(given)
