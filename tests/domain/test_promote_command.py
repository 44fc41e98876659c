"""`wavestitch promote` typed by people, over real tables: what somebody said no to is done by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domain.test_operations_by_task import ONE, TWO, Operator, declare

NO_ID = "0" * 32
FEWER = "limits: {max_clock_skew: 36500 d, max_chunks: 1}\n"


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Operator:
    return Operator(tmp_path, monkeypatch, capsys)


def test_a_promotion_that_somebody_rejected_is_shown_and_done_to_nobody_any_more(operator: Operator) -> None:
    operator.send("old", ONE, TWO)
    operator.ingest()
    declare(operator.whole, FEWER)
    shown = operator.type_line("wavestitch promote ecg --offsets 0:0-2 --why less")[1]
    kept = f"wavestitch promote ecg --preview {shown.partition('--preview ')[2].split()[0]}"
    for words in ("--apply", "--offsets 0:0-2"):
        code, said = operator.type_line(f"{kept} --reject {words}")
        assert code != 0
        assert "--reject goes with --preview ID" in said
    code, said = operator.type_line(f"{kept} --reject --why 'not today'")
    assert (code, ": nobody does it any more" in said) == (0, True), said
    for words in ("--apply", ""):
        code, said = operator.type_line(f"{kept} {words}")
        assert code != 0
        assert "(not today), which stands" in said
    assert operator.published() == ["old"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--reject", "--reject goes with --preview ID"),
        ("--preview ../x --reject", "is not the id of a preview"),
        (f"--preview {NO_ID} --reject", f"has no preview {NO_ID}"),
    ],
)
def test_what_was_never_shown_cannot_be_rejected(operator: Operator, words: str, says: str) -> None:
    code, said = operator.type_line(f"wavestitch promote ecg {words}")
    assert code != 0
    assert says in said
