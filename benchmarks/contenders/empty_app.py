"""The least that a Spark app in Python can be: a session, and with `--python` one Python task."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
if "--python" in sys.argv:
    spark.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id long").collect()
spark.stop()
