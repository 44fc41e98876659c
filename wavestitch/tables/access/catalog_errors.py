"""What the errors of catalogs, files and their libraries mean, in the words of the error tree. One list for all.

Never decides what became of a commit (`one_commit`). An error of a library that is not in the list is `Terminal`, with
its name; what our own mistakes raise (a wrong type, a missing key) stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pyarrow as pa
from pydantic import ValidationError as InvalidModel
from pyiceberg import exceptions as iceberg
from sqlalchemy import exc as sql

from wavestitch.contracts.errors import Altered, BadInput, Terminal, Transient, WavestitchError
from wavestitch.tables.access.database_answers import Refusal, refusal_of
from wavestitch.tables.access.unsaid import without_secrets

_DENIED = re.compile(
    r"AWS Error (ACCESS_DENIED|INVALID_(ACCESS_KEY|CLIENT_TOKEN)_ID|SIGNATURE_DOES_NOT_MATCH|UNRECOGNIZED_CLIENT)"
)
"""Nothing is gained by trying again, and pyarrow has no class for it."""
_Meaning = Callable[[str, str], WavestitchError]


def _away(name: str, why: str) -> WavestitchError:
    return Transient(f"{name}: the catalog did not answer ({why}); try again")


def _busy(name: str, why: str) -> WavestitchError:
    return Transient(f"{name}: others are changing it ({why}); try again")


def _login(name: str, why: str) -> WavestitchError:
    return BadInput(
        f"{name}: the catalog refuses the login or the right to do this ({why}); see [tables] in the settings"
    )


def _settings(name: str, why: str) -> WavestitchError:
    return BadInput(f"{name}: the catalog cannot be used as it is set up ({why}); see [tables] in the settings")


def _read_only(name: str, why: str) -> WavestitchError:
    return Transient(
        f"{name}: the catalog takes no changes ({why}); let it take them, or its address ask for a server that does "
        "(`target_session_attrs=read-write`), then try again"
    )


def _full(name: str, why: str) -> WavestitchError:
    return Transient(
        f"{name}: the catalog's disk, memory or connections are used up ({why}); make room, then try again"
    )


def _locked(name: str, why: str) -> WavestitchError:
    return Transient(
        f"{name}: the catalog was waited for as long as the settings allow ({why}); look for who has locked it, or why "
        "it is slow, then try again"
    )


def _not_there(name: str, why: str) -> WavestitchError:
    return Terminal(f"{name}: the catalog has no such thing ({why}); look whether it was dropped or renamed")


def _there(name: str, why: str) -> WavestitchError:
    return Terminal(f"{name}: the catalog has another thing of this name ({why}); rename or drop it")


def _gone(name: str, why: str) -> WavestitchError:
    return Altered(f"{name}: a file that should be there is not ({why}); restore it, or look for what removed it")


def _unreadable(name: str, why: str) -> WavestitchError:
    return Altered(f"{name}: what is there cannot be read ({why}); restore it, or look for what changed it")


def _file(name: str, why: str) -> WavestitchError:
    if _DENIED.search(why):
        return BadInput(
            f"{name}: the object store refuses the login or the right to do this ({why}); see [tables.properties] in "
            "the settings"
        )
    return Transient(f"{name}: a file could not be read or written ({why}); try again")


_MEANINGS: dict[type[Exception], _Meaning] = {
    iceberg.TableAlreadyExistsError: _there,
    iceberg.ViewAlreadyExistsError: _there,
    iceberg.NamespaceAlreadyExistsError: _there,
    iceberg.NamespaceNotEmptyError: _there,
    iceberg.NoSuchTableError: _not_there,
    iceberg.NoSuchIcebergTableError: _not_there,
    iceberg.NoSuchViewError: _not_there,
    iceberg.NoSuchIdentifierError: _not_there,
    iceberg.NoSuchNamespaceError: _not_there,
    iceberg.NoSuchPropertyException: _not_there,
    iceberg.NoSuchPlanTaskError: _away,
    iceberg.ValidationError: _unreadable,
    iceberg.ValidationException: _busy,
    iceberg.ResolveError: _unreadable,
    iceberg.RESTError: _away,
    iceberg.ServiceUnavailableError: _away,
    iceberg.ServerError: _away,
    iceberg.TooManyRequestsError: _away,
    iceberg.CommitStateUnknownException: _away,
    iceberg.BadRequestError: _settings,
    iceberg.UnauthorizedError: _login,
    iceberg.ForbiddenError: _login,
    iceberg.AuthorizationExpiredError: _login,
    iceberg.OAuthError: _login,
    iceberg.SignError: _login,
    iceberg.NotInstalledError: _settings,
    iceberg.DynamoDbError: _away,
    iceberg.GenericDynamoDbError: _away,
    iceberg.ConditionalCheckFailedException: _busy,
    iceberg.CommitFailedException: _busy,
    iceberg.WaitingForLockException: _busy,
    sql.ArgumentError: _settings,
    sql.NoSuchModuleError: _settings,
    sql.SQLAlchemyError: _away,
    InvalidModel: _unreadable,
    pa.ArrowException: _unreadable,
    FileNotFoundError: _gone,
    OSError: _file,
    EOFError: _unreadable,
    NotImplementedError: _settings,
    ImportError: _settings,
    ValueError: _unreadable,
}
_OF_DATABASES: dict[Refusal, _Meaning] = {
    Refusal.LOGIN: _login,
    Refusal.SETTINGS: _settings,
    Refusal.READ_ONLY: _read_only,
    Refusal.FULL: _full,
    Refusal.LOCKED: _locked,
    Refusal.OTHERS: _busy,
}


@cache
def meanings() -> dict[type[Exception], _Meaning]:
    """By class; of an error's classes the most special one that stands here counts."""
    from requests import exceptions as http  # noqa: PLC0415 - a SQL catalog does without; a sixth of a second

    set_up: dict[type[Exception], _Meaning] = dict.fromkeys(
        (http.InvalidURL, http.MissingSchema, http.InvalidSchema, http.SSLError), _settings
    )
    return {**_MEANINGS, http.RequestException: _away, **set_up}


def meaning_of(error: Exception, *, name: str) -> WavestitchError | None:
    """Our error for it; None for what only a mistake of ours raises. `name`: of the table or catalog."""
    if isinstance(error, WavestitchError):
        return error
    refusal = refusal_of(error)
    if refusal is not None:
        return _OF_DATABASES[refusal](name, brief(error))
    for kind in type(error).__mro__:
        if kind in meanings():
            return meanings()[kind](name, brief(error))
    if type(error).__module__ == "builtins":
        return None
    return Terminal(f"{name}: {brief(error)}")


def brief(error: Exception) -> str:
    """The first line, without secrets: what follows can be a whole SQL statement with its values."""
    lines = without_secrets(str(error)).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"
