"""All fault classes of one machine: its files, its processes, its races. What `tests.faults.campaign` runs of them."""

from __future__ import annotations

from tests.faults import (
    airflow_faults,
    catalog_faults_late,
    catalog_faults_line,
    file_faults,
    file_faults_full_disk,
    kill_faults,
    power_loss,
    race_faults,
    spark_faults,
    volume,
)
from tests.faults.fault_class import FaultClass

CLASSES: tuple[FaultClass, ...] = (
    *file_faults.CLASSES,
    *file_faults_full_disk.CLASSES,
    *kill_faults.CLASSES,
    *race_faults.CLASSES,
    *catalog_faults_late.CLASSES,
    *catalog_faults_line.CLASSES,
    *spark_faults.CLASSES,
    *airflow_faults.CLASSES,
    *power_loss.CLASSES,
    *volume.CLASSES,
)
