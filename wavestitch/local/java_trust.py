"""Which certificate authorities this machine trusts, as a store that a Java can read.

A Java that was installed here knows them from whoever installed it; the one that comes with the Python packages knows
only those that it was built with, and behind a proxy that inspects TLS it reaches nothing. Decides where to look: what
the environment and pip's settings name, and the system's own bundle, all together. Adds nobody of its own choosing.
"""

from __future__ import annotations

import configparser
import re
import ssl
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning

_FILE_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_FOLDERS_VARIABLE = "SSL_CERT_DIR"
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_PIP_SETTINGS = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def trusted_authorities(environ: Mapping[str, str]) -> list[bytes]:
    """The certificates (DER), each once, in an order that depends on nothing else."""
    found: set[bytes] = set()
    for bundle in sorted(set(_bundles(environ))):
        try:
            content = bundle.read_bytes()
        except OSError:
            continue  # a place that is not there, or not for us, names nobody
        for pem in _PEM.findall(content):
            try:
                der = ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))
                _certificate(der)
            except ValueError:
                continue  # old bundles hold certificates that nobody can read any more
            found.add(der)
    return sorted(found)


def java_trust_store(authorities: list[bytes]) -> bytes:
    """A PKCS#12 store that a Java 17 or 21 opens without a password: who is trusted is no secret."""
    entries = [
        pkcs12.PKCS12Certificate(_certificate(der), f"authority-{number}".encode())
        for number, der in enumerate(authorities)
    ]
    return pkcs12.serialize_java_truststore(entries, NoEncryption())


def _certificate(der: bytes) -> x509.Certificate:
    with warnings.catch_warnings():
        # Of authorities older than the rules; whether to trust them was decided when the bundle was made.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        return x509.load_der_x509_certificate(der)


def _bundles(environ: Mapping[str, str]) -> Iterator[Path]:
    for name in _FILE_VARIABLES:
        place = Path(environ.get(name) or "/nonexistent")
        yield from place.iterdir() if place.is_dir() else (place,)
    for name in filter(None, environ.get(_FOLDERS_VARIABLE, "").split(":")):
        if Path(name).is_dir():
            yield from Path(name).iterdir()
    yield from _named_by_pip(environ)
    yield from map(Path, _SYSTEM_BUNDLES)


def _named_by_pip(environ: Mapping[str, str]) -> Iterator[Path]:
    named = environ.get("PIP_CONFIG_FILE")
    home = environ.get("HOME", "/nonexistent")
    for place in (named, *_PIP_SETTINGS) if named else _PIP_SETTINGS:
        settings = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            settings.read(place.replace("~", home, 1))
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself will say so
        for section in ("global", "install"):
            cert = settings.get(section, "cert", fallback="")
            if cert:
                yield Path(cert)
