"""`wavestitch` and `python -m wavestitch`: the command line, imported and left without looking for garbage."""

from __future__ import annotations

from wavestitch.garbage_collection import imports_that_stay, nothing_looked_through_at_the_end


def main() -> None:
    with imports_that_stay():
        from wavestitch import cli  # noqa: PLC0415 - in the pause
    with nothing_looked_through_at_the_end():
        cli.main()


if __name__ == "__main__":
    main()
