"""Spark's Python daemon with our code loaded: the workers that it forks begin with their work.

For a Spark that stays (`spark.python.daemon.module`): each worker would import for half a second of CPU otherwise.
"""

from __future__ import annotations

from pyspark.daemon import manager

from spark_apps import remote_task

__all__ = ["remote_task"]

if __name__ == "__main__":
    manager()
