"""The plugin for an Airflow that is given this folder, without the package installed. It is made elsewhere."""

from __future__ import annotations

from wavestitch.ui.airflow_plugin import WavestitchPlugin

__all__ = ["WavestitchPlugin"]
