"""The Airflow asset of each stream, `waveforms_NAME`, for the DAGs of others that are to run on its new data.

Updated by whatever publishes a waveform in Airflow: an ingest, a backfill, a decision about what is held. In the tasks'
outlets stands an alias of the same name, since Airflow updates an asset that stands there itself even where a batch
has published nothing. An event is a hint that Airflow may lose: what counts is the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from wavestitch.contracts.stream import asset_name

if TYPE_CHECKING:
    from wavestitch.batch.deployment_edges import DeploymentEdges

_MOST_DAYS = 400
"""An event is shown on pages, and kept in Airflow's database."""


def asset_outlet(stream: str) -> AssetAlias:
    """For tasks that publish."""
    return AssetAlias(asset_name(stream))


def update_asset(context: Any, edges: DeploymentEdges, plan_id: str) -> None:
    """One event with what a batch has published, also where an earlier try of the task has committed it."""
    extra = describe_published_batch(edges, plan_id)
    if extra is not None:
        context["outlet_events"][asset_outlet(edges.name)].add(Asset(asset_name(edges.name)), extra=extra)


def describe_published_batch(edges: DeploymentEdges, plan_id: str) -> dict[str, Any] | None:
    """None where it has published nothing. The id of the snapshot is a text: pages round large numbers; None where
    that snapshot has expired, and with it which days it added."""
    from wavestitch.batch.history import find_committed, history_of  # noqa: PLC0415

    done = find_committed(history_of(edges), plan_id)
    if done is None or not done.row.waveforms.get("published"):
        return None
    own = done.head.snapshot_id if done.head.plan_id == plan_id else None
    days = [] if own is None else edges.tables.days_added(own)
    return {
        "stream": edges.name,
        "snapshot_id": None if own is None else str(own),
        "batch": plan_id,
        "published": done.row.waveforms["published"],
        "days": days[:_MOST_DAYS],
        "days_left_out": max(0, len(days) - _MOST_DAYS),
    }
