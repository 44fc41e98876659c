"""A Spark app with nothing to do: starts what our apps start (a context, Python workers, a SQL session), and ends."""

from __future__ import annotations

from pyspark.sql import SparkSession

if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.parallelize(range(2), 2).map(str).collect()
    spark.stop()
