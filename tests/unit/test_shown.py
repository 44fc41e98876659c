"""What was shown before somebody answered is shown again as it was: tables as tables, and nothing in it obeyed."""

from __future__ import annotations

from tests.security.seen_tags import tags_and_links
from wavestitch.contracts.harmless import for_markdown
from wavestitch.ui.pages import BatchOfRun, run_page
from wavestitch.ui.run_story import RunFacts, Story
from wavestitch.ui.shown import Block, blocks

HOSTILE = "</code><script>alert(1)</script> | **x** \u202e"
PREVIEW = f"""**{for_markdown("op")}** asks to rewind **ecg** to {for_markdown(HOSTILE)}

1 of 2 partitions move (needs *accept skip*).

- 0:[3, 9) (6 offsets)
- and 2 ranges more

| partition | now |
|---:|---:|
| 0 | 4 |
| 1 | 7 |"""


def plain(block: Block) -> tuple[str, list[list[str]]]:
    return block.kind, [[str(cell) for cell in row] for row in block.rows]


def test_a_preview_is_paragraphs_lists_and_tables() -> None:
    who, moves, skipped, table = blocks(PREVIEW.splitlines())
    assert str(who.rows[0][0]).startswith(
        "<strong><code>op</code></strong> asks to rewind <strong>ecg</strong> to <code>"
    )
    assert str(moves.rows[0][0]) == "1 of 2 partitions move (needs <em>accept skip</em>)."
    assert plain(skipped) == ("list", [["0:[3, 9) (6 offsets)"], ["and 2 ranges more"]])
    assert plain(table) == ("table", [["partition", "now"], ["0", "4"], ["1", "7"]])


def test_what_others_wrote_in_it_is_shown_and_not_obeyed() -> None:
    run = RunFacts("rewind_ecg", "r", "running")
    html = run_page(
        "rewind", "ecg", run, Story("reported", "It waits.", shown=tuple(PREVIEW.splitlines())), BatchOfRun()
    )
    assert "script" not in tags_and_links(html)[0]
    assert "&lt;script&gt;alert(1)&lt;/script&gt; | **x**" in html
    assert "\u202e" not in html
    assert '<th scope="col">partition</th>' in html


def test_what_is_no_markdown_of_ours_is_shown_as_it_is() -> None:
    for text in ("2 * 3 * 4", "a ` b", "**", "[x](http://y)", "# no heading", "-"):
        assert [plain(block) for block in blocks([text])] == [("text", [[text]])]
    assert blocks(["|---|", "", "   "]) == ()
