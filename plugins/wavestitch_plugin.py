"""The plugin for an Airflow that is given this folder, where the package is on its path without being installed.

Installed, it has an entry point, by which Airflow finds the plugin itself; a second of that name is an error to it.
"""

from __future__ import annotations

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="wavestitch"):
    from wavestitch.ui.airflow_plugin import WavestitchPlugin

    __all__ = ["WavestitchPlugin"]
