"""What the terminal says of clocks: the map, proofs, other paths, both observers."""

from __future__ import annotations

from dataclasses import replace

from llmlat_processor.model import Alternative
from llmlat_processor.pipeline import process
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import span
from tests.llmlat_processor.test_terminal import adviser, drawn


def test_one_clock_needs_no_map() -> None:
    assert "Clocks" not in drawn(clocked.one_clock())
    assert "Clocks" not in drawn(process([span(1, 0, "root", 0, 100)]))
    assert "millionths" not in drawn(clocked.one_clock())


def test_each_clock_is_a_line_with_what_is_known_of_it() -> None:
    lines = drawn(clocked.adviser()).splitlines()

    assert "  adviser (laptop)  the root's clock    2 messages" in lines
    assert "  vllm (gpu-1)      +6.70 s .. +6.78 s  80.0 ms wide · 2 messages" in lines


def test_a_finding_that_concerns_a_clock_stands_below_it() -> None:
    lines = drawn(clocked.adviser(clocked.contradiction())).splitlines()

    at = next(number for number, line in enumerate(lines) if line.startswith("  vllm (gpu-1)"))
    assert lines[at + 1] == "    ▲ infeasible_offset"


def test_a_violation_is_told_with_its_certificate() -> None:
    said = " ".join(drawn(clocked.adviser(clocked.contradiction())).split())

    assert (
        "by chat gemma (adviser) to engine chat (vllm): "
        "vllm is ahead of adviser by at most +6.750102 s"
    ) in said
    assert (
        "by engine chat (vllm) to chat gemma (adviser): "
        "vllm is ahead of adviser by at least +6.874798 s"
    ) in said
    assert "together: 125 ms are missing, though 5.30 ms were granted" in said


def test_a_certificate_that_goes_round_many_clocks_is_cut() -> None:
    proof = (clocked.request(7_000),) * 9
    long = replace(clocked.contradiction(FindingKind.OFFSET_CYCLE), proof=proof)

    assert drawn(clocked.adviser(long)).count("by chat gemma (adviser)") == 6
    assert "and 3 more" in drawn(clocked.adviser(long))
    assert drawn(clocked.adviser(long), everything=True).count("by chat gemma (adviser)") == 9


def test_clocks_over_the_limit_are_counted() -> None:
    many = clocked.clocks({f"host-{n}": clocked.between(0, n) for n in range(1, 20)}, left_out=7)
    explained = clocked.adviser(known=many)

    assert "  and 8 more" in drawn(explained).splitlines()
    assert "nothing is said of 7 clocks beyond these" in drawn(explained)
    assert "and 8 more" not in drawn(explained, everything=True)


def test_another_path_that_the_clocks_allow_is_told_below_the_path() -> None:
    found = clocked.ambiguous(clocked.adviser(), *[Alternative(clocked.CHAT, clocked.OTHER)] * 5)
    picture = drawn(found)

    told = "  ambiguous: the clocks allow retrieval account in place of chat gemma"
    assert picture.splitlines().count(told) == 2 * 3
    assert picture.count("  ambiguous in 2 more places") == 2
    assert drawn(found, everything=True).splitlines().count(told) == 2 * 5


def test_both_observers_of_a_first_content_stand_side_by_side() -> None:
    assert (
        "  chat gemma: vllm 330 ms · adviser 380 ms · both ways between them 50.0 ms"
        in drawn(adviser()).splitlines()
    )


def test_first_contents_over_the_limit_are_counted() -> None:
    explained = adviser()
    many = replace(explained.paths, first_contents=explained.paths.first_contents * 15)
    found = replace(explained, paths=many)

    assert "  and 3 more" in drawn(found).splitlines()
    assert drawn(found, everything=True).count("both ways between them") == 15
