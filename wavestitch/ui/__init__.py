"""The page "Wavestitch" in Airflow's UI, and the batches' Data Docs behind the same login. Read only."""
