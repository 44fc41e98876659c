"""Spark's Python daemon with our code loaded: the workers that it forks begin with their work.

For a Spark that stays (`spark.python.daemon.module`): each worker would import for half a second of CPU otherwise.
"""

from __future__ import annotations

import pandas
from pyspark.daemon import manager

from spark_apps import remote_task

__all__ = ["pandas", "remote_task"]  # Arrow imports pandas with the first array of numbers

if __name__ == "__main__":
    manager()
