"""The embedded default: a real one-node Kafka and Airflow, their start and stop."""
