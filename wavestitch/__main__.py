"""`wavestitch` and `python -m wavestitch`: the command line, imported without looking for garbage meanwhile."""

from __future__ import annotations

from wavestitch.garbage_collection import imports_that_stay


def main() -> None:
    with imports_that_stay():
        from wavestitch import cli  # noqa: PLC0415 - in the pause
    cli.main()


if __name__ == "__main__":
    main()
