"""The protocol classes of kafka-python: their import is quiet, and hides nothing else."""

from __future__ import annotations

import subprocess
import sys

USE = (
    "import wavestitch.kafka.raw_log, consumers.batch_scan\n"
    "from wavestitch.kafka.kafka_python import metadata\n"
    "metadata.MetadataRequest[9](topics=[], allow_auto_topic_creation=False).encode()\n"
)


def test_importing_and_using_them_warns_of_nothing_where_warnings_are_errors() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", USE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_warning_of_the_same_kind_is_an_error_again_afterwards() -> None:
    again = f"{USE}import warnings; warnings.warn('read_text is deprecated', DeprecationWarning)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", again], capture_output=True, text=True, check=False)
    assert "DeprecationWarning: read_text is deprecated" in done.stderr
