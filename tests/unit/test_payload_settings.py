"""[payload]: off unless a place is named; what cannot be one is refused by a sentence, and no secret is in any."""

from __future__ import annotations

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.settings import parse_settings

BASE = (
    'landing = "/l"\ndocs = "/d"\n[kafka]\nbootstrap = "h:1"\n[tables]\nuri = "sqlite:///c"\nwarehouse = "file:///w"\n'
)
REGION = '[payload.properties]\n"s3.region" = "r"\n'


def said(payload: str) -> str:
    with pytest.raises(BadInput) as refused:
        parse_settings(BASE + payload, where="a test")
    assert "hunter2" not in refused.value.message
    return refused.value.message


def test_without_a_place_payload_lies_in_the_landing() -> None:
    assert parse_settings(BASE, where="a test").payload.at is None


def test_a_place_is_written_plainly_and_its_login_stays_a_reference() -> None:
    settings = parse_settings(
        BASE
        + '[payload]\nplace = "s3a://bucket//x/"\n'
        + REGION
        + '"s3.access-key-id" = "file:/a"\n"s3.secret-access-key" = "env:S"\n',
        where="a test",
    )
    found = settings.payload.at
    assert found is not None
    assert (found.place, found.properties["s3.access-key-id"]) == ("s3://bucket/x", "file:/a")
    assert "/a" not in str(settings.redacted()["payload"]["properties"])


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (f'[payload]\nplace = "/srv/x"\n{REGION}', "is no place in an object store"),
        (f'[payload]\nplace = "s3://bucket/../x"\n{REGION}', "has '..'"),
        ('[payload]\nplace = "s3://bucket/x"\n', 'does not say its "s3.region"'),
        (REGION, "properties are those of a place, and none is named"),
        (
            f'[payload]\nplace = "s3://bucket/x"\n{REGION}"s3.endpointt" = "x"\n',
            "there are s3.access-key-id, s3.endpoint",
        ),
        (f'[payload]\nplace = "s3://bucket/x"\n{REGION}"s3.access-key-id" = "file:/a"\n', "they go together"),
        (f'[payload]\nplace = "s3://bucket/x"\nattempts = 0\n{REGION}', "greater than or equal to 1"),
        (
            f'[payload]\nplace = "s3://bucket/x"\n{REGION}"s3.access-key-id" = "file:/a"\n'
            '"s3.secret-access-key" = "hunter2"\n',
            "write env:NAME or file:PATH instead",
        ),
        (
            f'[payload]\nplace = "s3://u:hunter2@bucket/x"\n{REGION}',
            r"leave it out, and name it by reference in [payload.",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(payload: str, says: str) -> None:
    assert says in said(payload)
