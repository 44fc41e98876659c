"""No error of a catalog says a secret, whatever a library puts into its own: neither as a sentence nor as its cause."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.builders.stranger import stranger
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import WavestitchError
from wavestitch.settings import load_settings
from wavestitch.tables.access import unsaid
from wavestitch.tables.access.unsaid import leave_unsaid, without_secrets
from wavestitch.tables.catalog import CatalogSettings, open_catalog

CANARY = "S3CRET/välue+of=theirs"
AWAY = "https://127.0.0.1:1"
CASES = {
    "a header of two lines": ("https://127.0.0.1:1/x", {"header.x-api-key": f"# made on monday\n{CANARY}\n"}),
    "a login of two lines": ("https://127.0.0.1:1/x", {"header.authorization": f"Bearer\r\n{CANARY}\r\n"}),
    "a token of two lines": (AWAY, {"token": f"a\n{CANARY}"}),
    "another scheme": (f"htps://user:{quote(CANARY, safe='')}@catalog.example/x", {}),
    "no scheme": (f"user:{CANARY}", {}),
    "a parameter of a server that is away": (f"{AWAY}/x?token={CANARY}", {}),
    "a path of a server that is away": (f"{AWAY}/{CANARY}/x", {}),
    "a login of a server that is away": (f"https://user:{quote(CANARY, safe='')}@127.0.0.1:1/x", {}),
    "the token server is away": (AWAY, {"oauth2-server-uri": f"{AWAY}/t?api-key={CANARY}", "credential": "i:d"}),
    "the token server, its path": (AWAY, {"oauth2-server-uri": f"{AWAY}/{CANARY}", "credential": f"i:{CANARY}"}),
    "a port that is none": (f"https://user:{quote(CANARY, safe='')}@127.0.0.1:x/", {}),
    "an address that is none": (f"https://[{CANARY}", {}),
}


@pytest.fixture(autouse=True)
def _nothing_is_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsaid, "_unsaid", set())


def opened(folder: Path, uri: str, properties: dict[str, str]) -> WavestitchError:
    """What opening it ends with; everything stands by reference, as the settings ask for."""
    (folder / "uri").write_text(uri)
    said = ""
    for n, (key, value) in enumerate(properties.items()):
        (folder / f"property-{n}").write_text(value)
        said += f'"{key}" = "file:{folder}/property-{n}"\n'
    config = folder / "wavestitch.toml"
    config.write_text(
        f'landing = "{folder}/l"\n'
        f'docs = "{folder}/d"\ncache = "{folder}/c"\nstreams = "{folder}"\n[kafka]\nbootstrap = "127.0.0.1:1"\n'
        f'[tables]\nuri = "file:{folder}/uri"\n'
        f'warehouse = "file://{folder}/w"\n[tables.properties]\ntype = "rest"\n{said}'
    )
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(config)}))
    with pytest.raises(WavestitchError) as ended:
        deployment.tables("ecg").head()
    return ended.value


@pytest.mark.parametrize("case", CASES)
def test_what_opening_a_catalog_ends_with_says_no_secret(case: str, tmp_path: Path) -> None:
    error = opened(tmp_path, *CASES[case])
    shown = "".join(traceback.format_exception(error))
    assert "wavestitch" in error.message
    for form in ("S3CRET", "välue", "v%C3%A4lue", "theirs"):
        assert form not in error.message
        assert form not in shown.replace(f"{__file__}", "")


@pytest.mark.parametrize("path", ["/{}/x", "/x?token={}", "/oauth?api-key={}"])
def test_what_the_http_client_logs_of_a_catalog_that_answers_says_no_secret(
    path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a process that logs all."""
    caplog.set_level(logging.DEBUG)
    secret = quote(CANARY, safe="")
    with stranger() as (server, seen):
        where, properties = f"{server}{path.format(secret)}", dict[str, str]()
        if path.startswith("/oauth"):
            where, properties = server, {"oauth2-server-uri": where, "credential": f"i:{CANARY}"}
        opened(tmp_path, where, properties)
    assert any(secret in one for one in seen), "it was sent where it belongs"
    assert "urllib3.connectionpool" in {r.name for r in caplog.records}
    for form in ("S3CRET", "välue", "v%C3%A4lue", "theirs"):
        assert form not in caplog.text.replace(f"{__file__}", "")


@pytest.mark.parametrize(
    "key",
    [
        "s3.secret-access-key",
        "s3.session-token",
        "adls.sas-token",
        "gcs.oauth2.token",
        "header.x-anything",
        "of-a-plugin",
    ],
)
def test_every_value_that_is_not_known_to_be_no_secret_is_left_unsaid(key: str) -> None:
    canary = f"of {key}: ä/+b c"
    leave_unsaid("sqlite:///x.db", {key: canary})
    for form in (canary, quote(canary), quote(canary, safe=""), repr(canary)):
        assert "…" in without_secrets(f"HTTP 400 for {form}, try again")
        assert form not in without_secrets(f"HTTP 400 for {form}, try again")


def test_a_database_s_password_is_left_unsaid_and_its_name_is_not() -> None:
    leave_unsaid("postgresql+psycopg2://wave:p4ssw0rd@db.example/catalog?sslmode=require&key=0ther", {})
    said = without_secrets("FATAL: wave@db.example/catalog p4ssw0rd sslmode=require 0ther")
    assert said == "FATAL: wave@db.example/catalog … sslmode=require …"


def test_an_error_without_a_secret_keeps_its_cause(tmp_path: Path) -> None:
    settings = CatalogSettings("wavestitch", f"{AWAY}/x", f"file://{tmp_path}/w", {"type": "rest"})
    with pytest.raises(WavestitchError, match="did not answer") as ended:
        open_catalog(settings)
    assert ended.value.__cause__ is not None
