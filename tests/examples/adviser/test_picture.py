"""The picture is found in what `llmlat watch` prints, coloured or not, and read for its verdict."""

from __future__ import annotations

import pytest

from picture import picture_in, verdict

ABOVE = (
    "Receiving OTLP on 127.0.0.1:4317.\n\nA trace is drawn a few seconds after its last span.\n\n"
)
PICTURE = """\
trace 305302a4a34956077207f94d9838a3f9
invoke_agent adviser  adviser  5.74 s

● The path to the end: 5.74 s
  queue adviser 1.31 s (23 %), decode adviser 1.28 s (22 %), ...
        +0  retrieval   adviser     431 ms    8 %

◆ The path to the first useful content: 4.74 s
  prefill adviser 981 ms (21 %)
"""
BELOW = "\n44 spans received: 44 in 1 traces\nwrote report.html (1 trace, 152 kB)\n"
VERDICT = [
    "To the end: 5.74 s, dominated by queue adviser 1.31 s (23 %).",
    "To the first useful content: 4.74 s, dominated by prefill adviser 981 ms (21 %).",
]


def coloured(picture: str) -> str:
    lines = (f"\x1b[1;36m{line}\x1b[0m" for line in picture.splitlines())
    return "\x1b[?25l" + "\n".join(lines) + "\n\x1b[?25h"


@pytest.mark.parametrize("picture", [PICTURE, coloured(PICTURE)], ids=["plain", "coloured"])
def test_the_picture_is_cut_out_and_read(picture: str) -> None:
    found = picture_in(ABOVE + picture + BELOW)
    assert found == picture.removeprefix("\x1b[?25l") + "\n"
    assert list(verdict(found)) == VERDICT


def test_an_output_without_a_picture_is_left_alone() -> None:
    assert picture_in(ABOVE) == ABOVE
    assert list(verdict(ABOVE)) == []


def test_a_path_that_is_absent_has_no_verdict() -> None:
    assert list(verdict(PICTURE.partition("◆")[0])) == VERDICT[:1]
