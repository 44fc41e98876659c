"""All DAGs of the deployment, as in any Airflow in which the package is installed."""

from wavestitch.airflow import dags

globals().update(dags())
