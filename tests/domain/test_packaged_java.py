"""Where no Java is installed: the one that comes with the Python packages trusts whom the machine trusts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.domain.inspecting_proxy import inspecting_proxy
from tests.security.certificates import Certificates, make_certificates
from wavestitch.local.jars import proxy_options
from wavestitch.local.java_trust import trusted_authorities

MAVEN = "repo1.maven.org"
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>a</artifactId>
<version>1</version></project>"""
FILES = {
    "/maven2/org/example/a/1/a-1.pom": POM.encode(),
    "/maven2/org/example/a/1/a-1.jar": b"a jar",
}
FETCH = """
import sys
from pathlib import Path
from wavestitch.contracts.errors import Transient
from wavestitch.local.jars import Dependency, JarSet, fetch_jars
from wavestitch.local.java import find_java
cache = Path(sys.argv[1])
java = find_java(cache)
assert java.is_relative_to(cache), f"a Java was found: {java}"
(cache / "jars").mkdir()
wanted = JarSet("test", "a test", (Dependency("org.example", "a", "1"),))
try:
    fetch_jars(wanted, into=cache / "jars", java_home=java, say=print)
except Transient as error:
    sys.exit(error.message)
"""


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path, address=MAVEN)


def fetch(folder: Path, port: int, **environ: str) -> subprocess.CompletedProcess[str]:
    """Without any Java on PATH, and with a home where pip has no settings."""
    (folder / "home").mkdir()
    env = {"PATH": str(folder), "HOME": str(folder / "home"), "HTTPS_PROXY": f"http://127.0.0.1:{port}", **environ}
    argv = [sys.executable, "-c", FETCH, str(folder / "cache")]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"])
def test_jars_come_through_a_proxy_that_the_machine_trusts(
    tmp_path: Path, certificates: Certificates, variable: str
) -> None:
    with inspecting_proxy(certificates.server, FILES) as (port, asked):
        done = fetch(tmp_path, port, **{variable: str(certificates.ca)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "cache" / "jars" / "a-1.jar").read_bytes() == b"a jar"
    assert "/maven2/org/example/a/1/a-1.jar" in asked


def test_one_that_nobody_trusts_is_not_spoken_to_and_the_cause_is_said(
    tmp_path: Path, certificates: Certificates
) -> None:
    with inspecting_proxy(certificates.server, FILES) as (port, asked):
        done = fetch(tmp_path, port, SSL_CERT_FILE=str(certificates.stranger))
    assert done.returncode == 1
    assert asked == []
    assert "PKIX path building failed" in done.stderr
    assert "name its certificate authority in SSL_CERT_FILE" in done.stderr


def test_what_pip_was_told_to_trust_counts_too(tmp_path: Path, certificates: Certificates) -> None:
    before = trusted_authorities({"HOME": str(tmp_path)})
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text(f"[global]\ncert = {certificates.ca}\n")
    found = trusted_authorities({"HOME": str(tmp_path)})
    assert len(found) == len(before) + 1


def test_a_folder_of_certificates_counts_and_what_cannot_be_read_is_passed_over(
    tmp_path: Path, certificates: Certificates
) -> None:
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "one.pem").write_bytes(certificates.ca.read_bytes())
    (folder / "two.pem").write_text("-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n")
    (folder / "three.pem").symlink_to(tmp_path / "gone.pem")
    before = trusted_authorities({"HOME": str(tmp_path)})
    found = trusted_authorities({"HOME": str(tmp_path), "SSL_CERT_DIR": f"{folder}{os.pathsep}{tmp_path / 'no'}"})
    assert len(found) == len(before) + 1


def test_the_proxy_that_the_environment_names_is_named_to_java() -> None:
    named = {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "localhost, .example"}
    assert proxy_options(named) == [
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.example",
    ]
    assert proxy_options({"https_proxy": "proxy.example:3128"})[0] == "-Dhttps.proxyHost=proxy.example"
    assert proxy_options({}) == []
    assert proxy_options({"HTTPS_PROXY": "http://ada:hush-1@proxy.example:3128"}) == []
