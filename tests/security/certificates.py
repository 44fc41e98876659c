"""A certificate authority of a test's own, and a server's certificate for one address. None of it is a secret."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """PEM files. `ca`: what clients trust. `server`: the broker's key and certificate. `stranger`: another one."""

    ca: Path
    server: Path
    stranger: Path


def make_certificates(folder: Path, *, address: str) -> Certificates:
    """The server's certificate names `address` (an IP address or a host) and nothing else: it is no other server."""
    ca_key, ca = _authority("wavestitch test authority")
    _, stranger = _authority("an authority that nobody named")
    key = ec.generate_private_key(ec.SECP256R1())
    server = (
        _builder("broker", ca.subject, key)
        .add_extension(x509.SubjectAlternativeName([_name(address)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "stranger.pem")
    files.ca.write_bytes(_pem(ca))
    files.stranger.write_bytes(_pem(stranger))
    files.server.touch(mode=0o600)
    plain = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files.server.write_bytes(plain + _pem(server) + _pem(ca))
    return files


def _name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _authority(name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    found = (
        _builder(name, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key, found


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
