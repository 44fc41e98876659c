"""The demo: real recordings through real Kafka, Airflow, Spark, Great Expectations and Iceberg, checked bit for bit."""
