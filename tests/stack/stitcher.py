"""What stands in the place of spark-submit in the Airflow that tests share: no JVM, the Spark app's own tasks."""

from __future__ import annotations

import sys
from pathlib import Path

from spark_apps.in_process import stitch_here

if __name__ == "__main__":
    words = sys.argv
    stitch_here(Path(words[words.index("--job") + 1]), Path(words[words.index("--result") + 1]))
