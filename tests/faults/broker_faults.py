"""All fault classes that need Kafka: of the log, of runs, of nodes and of the network (docs/guarantees.md)."""

from __future__ import annotations

from tests.faults import (
    broker_faults_late,
    broker_faults_log,
    broker_faults_network,
    broker_faults_nodes,
    broker_faults_operator,
    broker_faults_runs,
)
from tests.faults.fault_class import FaultClass

CLASSES: tuple[FaultClass, ...] = (
    *broker_faults_log.CLASSES,
    *broker_faults_runs.CLASSES,
    *broker_faults_operator.CLASSES,
    *broker_faults_nodes.CLASSES,
    *broker_faults_network.CLASSES,
    *broker_faults_late.CLASSES,
)
