"""What pyiceberg is told of an object store beside what the settings say: as long as for the catalog, it is waited for.

Asks nobody: without a region pyiceberg would ask Amazon where a bucket of this name is, whoever's it may be.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.io import S3_CONNECT_TIMEOUT, S3_REGION, S3_REQUEST_TIMEOUT, S3_RESOLVE_REGION

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.warehouse import is_stored
from wavestitch.tables.access.time_outs import TimeOuts


def store_properties(warehouse: str, said: Mapping[str, str], time_outs: TimeOuts) -> dict[str, str]:
    """None for a local warehouse. `said`: by the settings. Raises `BadInput` where they lack what it takes."""
    if not is_stored(warehouse):
        return {}
    if not (said.get(S3_REGION) or said.get("client.region")):
        raise BadInput(
            f"the warehouse {warehouse} is in an object store, and [tables.properties] does not say its "
            f'"{S3_REGION}"; write it, e.g. "us-east-1" where the store has none'
        )
    return {
        S3_CONNECT_TIMEOUT: str(time_outs.connect),
        S3_REQUEST_TIMEOUT: str(time_outs.answer),
        S3_RESOLVE_REGION: "false",
    }
