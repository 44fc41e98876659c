"""What of the settings may be shown, and what may stand in them at all.

Shown are values of keys that are known to be no secrets; all others are masked, because nobody knows every catalog's
and every object store's words for a password. Refused is what is known to be a secret and stands there itself, also
inside an address or among a JVM's options. A reference (`env:NAME`, `file:PATH`) is never refused, and never shown.
Never says a value, only where it stands. The same list is what Spark hides by in its logs (`spark_redaction`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote

MASK = "…"

_KEYS_OF = ("access", "account", "api", "private", "storage", "shared", "signing", "encryption", "master")
KINDS_OF_SECRETS = (
    *("passw", "pwd", "passphrase", "secret", "token", "credential", "jaas", "authorization", "signature", "cookie"),
    *("connection-?string", r"key[._]pem$", r"(^|[._-])sas([._-]|$)"),
    *(f"{what}[._-]?key" for what in _KEYS_OF),
)
"""Patterns of what such a key has in it, in small letters. Both Python's and Java's."""
_SECRET = re.compile("|".join(KINDS_OF_SECRETS))
_FINDS_A_SECRET = ("file", "location", "path", "enabled", "provider", "class", "length", "server-uri", "expires-at-ms")
"""A key that ends so says where a secret is, who has it, or how long it is."""
_SECRET_PARAMETER = re.compile(
    r"passw|pwd|passphrase|secret|token|credential|authorization|signature|(^|[._-])(sig|key|sas)$|apikey"
)

_SHOWN = re.compile(
    r"|".join(
        (
            # Kafka
            r"broker\.address\.family|client\.(id|rack)|security\.protocol|sasl\.(mechanisms?|username)",
            r"ssl\.(ca|certificate|key|keystore)\.location|ssl\.(cipher\.suites|curves\.list|sigalgs\.list)",
            r"(connections|metadata|reconnect|retry|socket)\.[a-z.]+",
            # pyiceberg
            r"type|uri|warehouse|prefix|scope|audience|echo|pool_pre_ping|init_catalog_tables|py-(io|catalog)-impl",
            r"oauth2-server-uri|rest\.(sigv4-enabled|signing-region|signing-name)|header\.x-iceberg-access-delegation",
            r"(s3|gcs|adls|hdfs|glue|client)\.(endpoint|region|path-style-access|force-virtual-addressing|project-id)",
            r"(commit|write|downcast)[a-z0-9.-]+",
            # Spark
            r"spark\.(app\.name|master|submit\.deploymode|jars|jars\.packages|local\.dir|cores\.max|default\.parallelism)",
            r"spark\.(driver|executor)\.(memory|memoryoverhead|cores|instances|maxresultsize|host|port|bindaddress)",
            r"spark\.authenticate|spark\.network\.crypto\.[a-z.]+|spark\.(ui|master\.rest)\.(enabled|port)",
            r"spark\.(eventlog|dynamicallocation|memory|shuffle|speculation|task|locality|scheduler|serializer)(\.[a-z.]+)?",
            r"spark\.sql\.(adaptive|shuffle|session|files|parquet|execution|sources)\.[a-z.]+",
            r"spark\.sql\.catalog\.[a-z0-9_]+(\.(type|catalog-impl|io-impl|uri|warehouse))?",
            r"spark\.kubernetes\.(namespace|container\.image)",
        )
    )
)
_HAS_A_COMMAND = re.compile(r"-XX:On[A-Za-z]*=")
_PLAIN_OPTION = re.compile(r"-D[A-Za-z][A-Za-z0-9_.-]{0,63}|-(?!D)[A-Za-z0-9+:._/*,-]{1,200}")
_PLAIN_VALUE = re.compile(r"-XX:[A-Za-z0-9]{1,80}=[A-Za-z0-9._/,+%-]{1,200}")
_JVM_OPTIONS = re.compile(r"spark\.(driver|executor|yarn\.am)\.(extra|default)javaoptions")
SHOWN_PARAMETERS = frozenset(
    {
        "user",
        "host",
        "port",
        "dbname",
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "sslcrl",
        "ssl_ca",
        "ssl_cert",
        "ssl_min_protocol_version",
        "timeout",
        "connect_timeout",
        "busy_timeout",
        "application_name",
        "target_session_attrs",
        "channel_binding",
        "gssencmode",
        "charset",
        "mode",
    }
)
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z_.-]{0,63}")
# Where a user ends nobody knows: some are `ada@server`, some `DOMAIN/ada`, and a password may have any of these, too.
_USER_AND_PASSWORD = re.compile(r"//[^?#]*:.*@")
# Somebody has left out the slashes.
_WITHOUT_SLASHES = re.compile(r"(?:^|[\s=])(?![-/.]|jdbc:oracle:|[a-z][a-z0-9+.:-]*://)[^?#:\s=]*:.+@", re.IGNORECASE)
_HOLDS_AN_ADDRESS = re.compile(
    r"(^|[._-])(uri|url|endpoint|place|warehouse|bootstrap|proxy|host|server|address|dir|location|path|jar|webhook|otlp)s?$"
)
"""Elsewhere what looks like one without its slashes may be anything: a rule, a version, a mail's address."""
# A name alone before the @ is a token, except where a user or a container is usual: databases, Azure's stores.
_NAME_ALONE = re.compile(r"(?i)(?:^|[:\s])([a-z][a-z0-9+.-]*)://[^/?#\s]*@")
_NAMES_A_USER = re.compile(
    r"(postgres(ql)?|mysql|mariadb|mssql|sqlserver|oracle|sqlite|cockroachdb|redshift|trino|db2)(\+[a-z0-9_]+)?|abfss?|wasbs?"
)
_ORACLE_LOGIN = re.compile(r"jdbc:oracle:[a-z0-9]+:[^/@\s]*/[^@\s]*@", re.IGNORECASE)
# Outside a query, too: libpq's `host=h password=…`, MySQL's `address=(host=h)(password=…)`, a command in an option.
_ASSIGNED = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)\s*=\s*[^\s=]")
_READ_OTHERWISE = str.maketrans("\\", "/", "\r\n\t")
_SCHEME_OF_A_LOGIN = re.compile(r"(?i)(bearer|basic|sharedkey|negotiate)\s+\S")


def is_reference(value: str) -> bool:
    """Whether it says where a secret is, instead of being one."""
    return value.startswith(("env:", "file:"))


def is_secret(key: str) -> bool:
    """Whether what such a key holds is a secret: not where a file with one is, nor what finds one."""
    lower = key.lower()
    return _SECRET.search(lower) is not None and not lower.endswith(_FINDS_A_SECRET)


def spark_redaction(also: Iterable[str] = ()) -> str:
    """Java's regular expression for Spark, which shows no value whose key has it, or that has it itself. Every key that
    is a secret to us, headers, addresses with a login, and the keys of `also`."""
    named = "|".join(re.escape(key) for key in sorted(also))
    addresses = (_USER_AND_PASSWORD.pattern, _WITHOUT_SLASHES.pattern, _ORACLE_LOGIN.pattern)
    found = (*KINDS_OF_SECRETS, "sasl", "[.]header[.]", *addresses)
    ours = f"(?i:{'|'.join(found)})"
    return f"{ours}|^({named})$" if named else ours


def secret_inside(key: str, value: str) -> str | None:
    """What of this entry is a secret that stands there itself; None where nothing is known to be."""
    if is_reference(value) and not value.startswith("file://"):
        return None
    if is_secret(key) and not value.startswith("file:"):
        return "a secret itself"
    if _SCHEME_OF_A_LOGIN.match(value):
        return "a login itself"
    if _JVM_OPTIONS.fullmatch(key.lower()):
        names = [word[2:].partition("=")[0] for word in _words(value) if word.startswith("-D") and "=" in word]
        named = next((name for name in names if is_secret(name)), None)
        if named is None and _HAS_A_COMMAND.search(value):
            return "a command, which may have a login in it, itself"
        if named is None and any(_WITHOUT_SLASHES.search(word.partition("=")[2]) for word in _words(value)):
            return "a password itself"
        return f"the secret option {_named(named)} itself" if named else _secret_in_address(value)
    if _HOLDS_AN_ADDRESS.search(key.lower()) and _WITHOUT_SLASHES.search(_as_read(value)):
        return "a password itself"
    return _secret_in_address(value)


def _as_read(address: str) -> str:
    """As many a parser of addresses takes it: without line breaks and tabs, and `\\` for `/`."""
    return address.translate(_READ_OTHERWISE)


def _secret_in_address(said: str) -> str | None:
    value = _as_read(said)
    if _USER_AND_PASSWORD.search(value) or _ORACLE_LOGIN.search(value):
        return "a password itself"
    for name, found in parameters(value):
        if found and _SECRET_PARAMETER.search(name.lower()):
            return f"the secret parameter {_named(name)} itself"
    return _secret_in_words(value)


def _secret_in_words(value: str) -> str | None:
    """What an address has beside a user with a password and a query; masked whole, since nobody knows where it ends."""
    if any(not _NAMES_A_USER.fullmatch(found[1].lower()) for found in _NAME_ALONE.finditer(value)):
        return "a login without a password, which may be a token, itself"
    for name in _ASSIGNED.findall(value):
        if _SECRET_PARAMETER.search(name.lower()) and not name.lower().endswith(_FINDS_A_SECRET):
            return f"the secret parameter {_named(name)} itself"
    return MASK if _ORACLE_LOGIN.search(value) else None


def _named(name: str) -> str:
    """A name, where it is no more than one: what somebody mistyped may have the secret in its name."""
    return name if _PLAIN_NAME.fullmatch(name) else MASK


def shown_section(section: Mapping[str, str]) -> dict[str, str]:
    """A section of free keys, as it may be printed."""
    return {key: shown(key, value) for key, value in section.items()}


def shown(key: str, value: str) -> str:
    """One value, as it may be printed."""
    lower = key.lower()
    if is_secret(key) or (is_reference(value) and not value.startswith("file://")):
        return MASK
    if _JVM_OPTIONS.fullmatch(lower):
        return " ".join(_shown_option(word) for word in _words(value))
    if not _SHOWN.fullmatch(lower) and not (_SECRET.search(lower) and lower.endswith(_FINDS_A_SECRET)):
        return MASK
    return shown_address(value) if _HOLDS_AN_ADDRESS.search(lower) else _shown_address(value)


def shown_address(value: str) -> str:
    """An address without password, and of its parameters only the values that are known to be no secrets."""
    return MASK if _WITHOUT_SLASHES.search(_as_read(value)) else _shown_address(value)


def _shown_address(value: str) -> str:
    if is_reference(value) and not value.startswith("file://"):
        return MASK
    value = _as_read(value)
    plain = _USER_AND_PASSWORD.sub("", value)
    if _secret_in_words(plain.partition("?")[0].partition(";")[0]):
        return MASK
    if "://" not in value and not value.startswith("jdbc:"):
        return value if plain == value else MASK
    mark = "?" if "?" in value else ";"
    head, more, _ = value.partition(mark)[0].partition(";")
    head += f";{MASK}" if more else ""
    head = _USER_AND_PASSWORD.sub(lambda found: f"{found[0].partition(':')[0]}:{MASK}@", head.partition("#")[0])
    if mark not in value:
        return head
    pairs = [
        f"{name}={quote(found, safe='/:,.-_')}" if name.lower() in SHOWN_PARAMETERS else f"{_named(name)}={MASK}"
        for name, found in parameters(value)
    ]
    return f"{head}{mark}{'&'.join(pairs)}"


def parameters(address: str) -> list[tuple[str, str]]:
    """Of an address's query; some drivers' addresses have no query, but parameters after semicolons."""
    if "://" not in address and not address.startswith("jdbc:"):
        return []
    _, _, query = address.partition("?" if "?" in address else ";")
    return parse_qsl(query.partition("#")[0].replace(";", "&"), keep_blank_values=True)


def _words(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError:
        return options.split()


def _shown_option(word: str) -> str:
    name, mark, _ = word.partition("=")
    if _PLAIN_OPTION.fullmatch(word) or (_PLAIN_VALUE.fullmatch(word) and not _HAS_A_COMMAND.match(word)):
        return word
    return f"{name}={MASK}" if mark and _PLAIN_OPTION.fullmatch(name) else MASK
