"""The TLS that a client's options ask for, as Python's own: the same authorities, certificate, key and ciphers.

An option that Python cannot keep is refused by name: a connection that is checked less than its settings say is none.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from wavestitch.contracts.errors import BadInput

_NOT_KEPT = ("ssl.sigalgs.list",)
# Words that do without the server's certificate, or that switch off what refuses such; ! and - only take away.
_NO_CERTIFICATE = re.compile(r"NULL|ANON|SECLEVEL|PSK|SRP|COMPLEMENTOF|(^|[+-])(ADH|AECDH)([+-]|$)")
_SUITES = "ssl.cipher.suites"


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """A context that checks the server's name and certificate. Raises `BadInput` naming the option."""
    unkept = next((key for key in _NOT_KEPT if key in options), None)
    if unkept is not None:
        raise BadInput(
            f"Kafka option {unkept!r} cannot be kept by the connection that reads the broker's raw record batches; "
            "remove it",
            key=unkept,
        )
    try:
        return _context(options)
    except (OSError, ValueError) as error:
        # ssl.SSLError is an OSError. Neither names a secret.
        raise BadInput(f"the ssl. options of Kafka are not usable: {error}; correct them in the settings") from None


def connect_tls(plain: socket.socket, options: Mapping[str, str], *, host: str) -> ssl.SSLSocket:
    """The connection over TLS, to a server that has shown a certificate for `host`; otherwise raises `OSError`."""
    found = tls_context(options).wrap_socket(plain, server_hostname=host)
    if not found.getpeercert(binary_form=True):
        found.close()
        raise ssl.SSLCertVerificationError(f"{host} has shown no certificate")
    return found


def check_ciphers(suites: str) -> None:
    """Raises `BadInput` for cipher suites among which there is one without a certificate of the server: nobody's name
    is checked then, and the login goes to whoever answers."""
    for word in re.split(r"[:,;\s]+", suites):
        if not word.startswith(("!", "-")) and _NO_CERTIFICATE.search(word.upper()):
            raise _without_certificate(ascii(word)[:80])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.set_ciphers(suites)
    except (ssl.SSLError, ValueError):
        raise BadInput(f"Kafka option {_SUITES!r} names no suite that there is; correct it", key=_SUITES) from None
    taken_in = [c["name"] for c in context.get_ciphers() if c.get("auth") == "auth-null"]
    if taken_in:
        raise _without_certificate(taken_in[0])


def _without_certificate(what: str) -> BadInput:
    return BadInput(
        f"Kafka option {_SUITES!r} takes in {what}, with which a broker shows no certificate and is sent the login; "
        "add :!aNULL:!eNULL, take @SECLEVEL out, or name suites like ECDHE+AESGCM",
        key=_SUITES,
    )


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    place = options.get("ssl.ca.location")
    is_folder = place is not None and os.path.isdir(place)
    context = ssl.create_default_context(
        cafile=place if not is_folder else None,
        capath=place if is_folder else None,
        cadata=options.get("ssl.ca.pem"),
    )
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if _SUITES in options:
        check_ciphers(options[_SUITES])
        context.set_ciphers(options[_SUITES])
    curves = options.get("ssl.curves.list")
    if curves is not None:
        if ":" in curves:
            raise BadInput("Kafka option 'ssl.curves.list' names several curves; name one", key="ssl.curves.list")
        context.set_ecdh_curve(curves)
    password = options.get("ssl.key.password")
    with ExitStack() as files:
        pair = _pair(options, files)
        if pair is not None:
            # Without a password the library would ask a terminal for one.
            context.load_cert_chain(*pair, password=password or "")
    return context


def _pair(options: Mapping[str, str], files: ExitStack) -> tuple[str, str | None] | None:
    """Where certificate and key lie; what the settings hold as text is lent to the library as a file in memory."""
    if "ssl.keystore.location" in options:
        # Nine MiB that no other reader needs.
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )

        secret = options.get("ssl.keystore.password", "").encode()
        key, own, others = pkcs12.load_key_and_certificates(
            Path(options["ssl.keystore.location"]).read_bytes(), secret or None
        )
        if key is None or own is None:
            raise ValueError("the keystore has no key with a certificate")
        chain = b"".join(c.public_bytes(Encoding.PEM) for c in (own, *others))
        # In the clear, in memory that is this process's alone: there its key is anyway.
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path = files.enter_context(_in_memory(chain + text))
        return path, None
    own_text, key_text = options.get("ssl.certificate.pem"), options.get("ssl.key.pem")
    own_path = options.get("ssl.certificate.location")
    if own_text is not None:
        own_path = files.enter_context(_in_memory(own_text.encode()))
    if own_path is None:
        return None
    key_path = options.get("ssl.key.location")
    if key_text is not None:
        key_path = files.enter_context(_in_memory(key_text.encode()))
    return own_path, key_path


@contextmanager
def _in_memory(text: bytes) -> Iterator[str]:
    """A file that no disk ever has and no other user may open."""
    handle = os.memfd_create("wavestitch-tls", os.MFD_CLOEXEC)
    try:
        os.write(handle, text)
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
