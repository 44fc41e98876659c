"""Where payload is in memory, a crash leaves no core file: it would hold the samples."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

_SPARK_TASK = """
    from spark_apps import reassemble
    from wavestitch.contracts.stitch_job import StitchJob

    class HereAndNow:
        def parallelize(self, numbers, tasks):
            self.numbers = numbers
            return self
        def map(self, run):
            self.run = run
            return self
        def collect(self):
            return [self.run(n) for n in self.numbers]

    job = StitchJob("p", "t", "/nowhere", "/nowhere", "int", "fast", (), ("assignment-1.arrow",))
    try:
        reassemble.stitch_on_spark(HereAndNow(), job)
    except Exception as error:
        assert "assignment" in str(error)
"""
_READER = """
    import sys, threading
    from consumers import unit_process

    class Ended(Exception):
        pass
    class Jobs:
        def get(self):
            raise Ended
    unit_process.SimpleQueue = Jobs
    unit_process._follow_parent = lambda jobs: None
    try:
        unit_process.main()
    except Ended:
        pass
"""


@pytest.mark.parametrize("what", [_SPARK_TASK, _READER], ids=["a Spark task", "a reader"])
def test_a_process_with_payload_in_memory_leaves_no_core_file(what: str) -> None:
    code = "import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(4)[1],) * 2)\n"
    code += textwrap.dedent(what)
    code += "\nos.write(2, b'limit %d %d' % resource.getrlimit(resource.RLIMIT_CORE))\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "limit 0 0" in done.stderr, done.stderr


def test_whoever_opens_a_deployment_leaves_none_either() -> None:
    """It carries batches, with samples and passwords in its memory; the bound that it may raise itself to stays."""
    code = (
        "import os, resource\nfrom wavestitch.batch.deployment import Deployment\n"
        "most = resource.getrlimit(resource.RLIMIT_CORE)[1]\nresource.setrlimit(resource.RLIMIT_CORE, (most, most))\n"
        "Deployment(None)\nos.write(2, b'limit %d' % resource.getrlimit(resource.RLIMIT_CORE)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.endswith("limit 0"), done.stderr
