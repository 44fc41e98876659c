"""Registers the page "Wavestitch", the tab "Batch" of each run, what makes our pools, and what lets old runs go.

A plugin. Where the package is installed, Airflow finds it by itself (the entry point `airflow.plugins`); in a
checkout by `plugins/`, too. Airflow takes a plugin's name once. Decides nothing of what the pages show.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from wavestitch.flows import old_runs, pools
from wavestitch.flows.backfill_intervals import BackfillIntervals
from wavestitch.flows.priorities import ByHeadroom
from wavestitch.ui.lazy_app import LazyApp, make_pages

# Airflow's page takes an address as it is, from the root of the server; what lies before Airflow there is `base_url`'s.
_BELOW = urlsplit(str(conf.get("api", "base_url", fallback=""))).path.rstrip("/")


class WavestitchPlugin(AirflowPlugin):
    name = "wavestitch"
    timetables = [BackfillIntervals]  # noqa: RUF012
    listeners = [old_runs, pools]  # noqa: RUF012
    priority_weight_strategies = [ByHeadroom]  # noqa: RUF012
    fastapi_apps = [{"app": LazyApp(make_pages), "url_prefix": "/wavestitch", "name": "wavestitch"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Wavestitch",
            "href": f"{_BELOW}/wavestitch/",
            "destination": "nav",
            "url_route": "wavestitch",
            "nav_top_level": True,
        },
        {
            "name": "Batch",
            "href": _BELOW + "/wavestitch/run/{DAG_ID}?run_id={RUN_ID}",
            "destination": "dag_run",
            "url_route": "wavestitch_batch",
        },
    ]
