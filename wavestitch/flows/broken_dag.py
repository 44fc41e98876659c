"""In place of a stream's DAG: shows what is wrong with its file, and fails with that when it is triggered."""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, task

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import for_markdown, harmless
from wavestitch.flows.batch_tasks import OWNER


def make_broken_dag(dag_id: str, sentence: str) -> DAG:
    """A DAG of no schedule with this id, the sentence in its description and its page."""
    with DAG(
        dag_id,
        description=f"Broken: {harmless(sentence)}",
        doc_md=f"# Broken\n\n{for_markdown(sentence)}\n\nNothing runs here until the stream's file is put right; "
        "`wavestitch check` tests it. The other streams go on.",
        schedule=None,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=timedelta(minutes=5),
        tags=[OWNER, "broken"],
        default_args={"owner": OWNER, "retries": 0},
    ) as dag:

        @task(execution_timeout=timedelta(minutes=1))
        def explain() -> None:
            """Fails with the sentence that says what is wrong with the stream's file."""
            raise BadInput(sentence)

        explain()
    return dag
