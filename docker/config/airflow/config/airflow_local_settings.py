"""Airflow imports this in each of its processes: tasks are forked from the scheduler, with what they need imported."""

import sys

__all__ = []

if "scheduler" in sys.argv:
    from wavestitch.batch.preload import preload

    preload()
