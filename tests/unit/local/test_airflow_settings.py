"""What the local Airflow is told, and what it is kept from hearing."""

from __future__ import annotations

from pathlib import Path

from wavestitch.local.airflow_settings import AirflowFolders, airflow_environment

FOLDERS = AirflowFolders(
    home=Path("/h"),
    commands=Path("/h/bin"),
    environment_bin=Path("/venv/bin"),
    dags=Path("/d"),
    plugins=Path("/p"),
    passwords=Path("/h/passwords.json"),
)


def environment(inherited: dict[str, str], **extra: str) -> dict[str, str]:
    return airflow_environment(inherited=inherited, folders=FOLDERS, port=4242, extra=extra)


def test_settings_of_another_airflow_do_not_reach_this_one() -> None:
    told = environment(
        {"AIRFLOW_HOME": "/theirs", "AIRFLOW__CORE__EXECUTOR": "X", "AIRFLOW_CONN_DB": "x", "HOME": "/me"}
    )
    assert told["AIRFLOW_HOME"] == "/h"
    assert "AIRFLOW__CORE__EXECUTOR" not in told
    assert "AIRFLOW_CONN_DB" not in told
    assert told["HOME"] == "/me"


def test_every_address_is_on_loopback_and_the_proxy_is_passed_by() -> None:
    told = environment({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "corp.example"})
    assert told["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert told["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:4242"
    assert told["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:4242/execution/"
    assert told["NO_PROXY"] == told["no_proxy"] == "corp.example,127.0.0.1,localhost"


def test_our_commands_come_first_on_path_and_bytecode_is_kept() -> None:
    told = environment({"PATH": "/usr/bin", "PYTHONDONTWRITEBYTECODE": "1"})
    assert told["PATH"] == "/h/bin:/venv/bin:/usr/bin"
    assert "PYTHONDONTWRITEBYTECODE" not in told


def test_what_the_starter_gives_wins() -> None:
    assert environment({}, AIRFLOW__CORE__PARALLELISM="2")["AIRFLOW__CORE__PARALLELISM"] == "2"


def test_whoever_waits_for_the_database_of_a_busy_machine_waits_for_minutes() -> None:
    told = environment({"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://theirs"})
    assert told["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == "sqlite:////h/airflow.db?timeout=120"
