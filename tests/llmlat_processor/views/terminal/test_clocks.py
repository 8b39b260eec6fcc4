"""What the terminal says of clocks: the map, proofs, other paths, both observers."""

from __future__ import annotations

from dataclasses import replace

from llmlat_processor.model import Alternative
from llmlat_processor.pipeline import process
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import MS, adviser_spans, resource, span
from tests.llmlat_processor.test_terminal import adviser, drawn


def test_one_clock_needs_no_map() -> None:
    assert "Clocks" not in drawn(clocked.one_clock())
    assert "Clocks" not in drawn(process([span(1, 0, "root", 0, 100)]))
    assert "millionths" not in drawn(clocked.one_clock())


def test_each_clock_is_a_line_with_what_is_known_of_it() -> None:
    lines = drawn(clocked.adviser()).splitlines()

    assert "  adviser (laptop)  the root's clock    2 messages" in lines
    assert "  vllm (gpu-1)      +6.70 s .. +6.78 s  80.0 ms wide · 2 messages" in lines


def test_a_finding_that_concerns_a_clock_stands_beside_it_or_below_where_there_is_no_room() -> None:
    lines = drawn(clocked.adviser(clocked.contradiction())).splitlines()

    at = next(number for number, line in enumerate(lines) if line.startswith("  vllm (gpu-1)"))
    assert lines[at + 1] == "    ▲ infeasible_offset"
    assert (
        lines[at - 1] == "  adviser (laptop)  the root's clock    2 messages  ▲ infeasible_offset"
    )


def test_a_violation_is_told_with_its_certificate() -> None:
    said = " ".join(drawn(clocked.adviser(clocked.contradiction())).split())

    assert (
        "from chat gemma (adviser) to engine chat (vllm): vllm is at most 6.751 s ahead of adviser"
    ) in said
    assert (
        "from engine chat (vllm) to chat gemma (adviser): vllm is at least 6.874 s ahead of adviser"
    ) in said
    assert "both cannot be true: 125 ms are missing, though 5.30 ms were granted" in said


def test_a_certificate_that_goes_round_many_clocks_is_cut() -> None:
    proof = (clocked.request(7_000),) * 9
    long = replace(clocked.contradiction(FindingKind.OFFSET_CYCLE), proof=proof)

    assert drawn(clocked.adviser(long)).count("from chat gemma (adviser)") == 6
    assert "and 3 more" in drawn(clocked.adviser(long))
    assert drawn(clocked.adviser(long), everything=True).count("from chat gemma (adviser)") == 9


def test_clocks_over_the_limit_are_counted() -> None:
    many = clocked.clocks(
        {f"host-{n}": clocked.between(n, n + 1) for n in range(1, 20)}, left_out=7
    )
    explained = clocked.adviser(known=many)

    assert "  and 8 more" in drawn(explained).splitlines()
    assert "nothing is said of 7 clocks beyond these" in drawn(explained)
    assert "and 8 more" not in drawn(explained, everything=True)
    assert [f"  +{n} ms .. +{n + 1} ms" in drawn(explained) for n in range(1, 20)] == [
        False
    ] * 8 + [True] * 11, "those that are farthest off are shown"


def test_a_clock_whose_name_is_long_has_it_on_a_line_of_its_own() -> None:
    spans = [*adviser_spans(), span(50, 1, "x", 0, 1, resource("s" * 50, "h" * 50))]
    known = clocked.clocks({"h" * 50: clocked.between(1, 2), clocked.GPU: clocked.between(0, 1)})
    lines = drawn(clocked.with_clocks(process(spans), known)).splitlines()

    at = lines.index(f"  {'s' * 39}…")
    assert lines[at + 1 : at + 3] == [
        f"  ({'h' * 39}…)",
        "    +1 ms .. +2 ms · 1.00 ms wide · 2 messages",
    ]


def test_one_clock_that_is_off_is_one_finding_however_many_calls_show_it() -> None:
    one, worse = clocked.apparent(), replace(clocked.apparent(), amount_ns=9_000 * MS)
    picture = drawn(clocked.adviser(one, worse, one))

    assert picture.count("▲ apparent_negative_network") == 2, "on the map, and below it"
    assert "apparent_negative_network 9.00 s" in picture
    assert "    2 more calls show the same of these clocks" in picture.splitlines()
    assert "1 more call shows the same" in drawn(clocked.adviser(one, worse))
    everything = drawn(clocked.adviser(one, worse, one), everything=True)
    assert everything.count("▲ apparent_negative_network") == 4


def test_an_offset_that_does_not_fit_the_others_is_a_finding_of_its_own() -> None:
    stepped = replace(clocked.apparent(), interval=clocked.between(8_700, 8_760))
    turned = replace(clocked.apparent(), witnesses=clocked.apparent().witnesses[::-1])
    unknown = replace(clocked.apparent(), interval=None)
    for other in (stepped, turned, unknown):
        picture = drawn(clocked.adviser(clocked.apparent(), other))
        assert "more call" not in picture
        assert picture.count("▲ apparent_negative_network 6.16 s") == 2
    half = replace(clocked.apparent(), interval=clocked.between(None, 6_750))
    assert "1 more call" in drawn(clocked.adviser(clocked.apparent(), half))


def test_a_few_proofs_are_enough() -> None:
    explained = clocked.adviser(*[clocked.contradiction()] * 6)

    assert drawn(explained).count("both cannot be true") == 4
    assert "  the proofs of 2 are left out" in drawn(explained).splitlines()
    assert drawn(explained, everything=True).count("both cannot be true") == 6
    assert "left out" not in drawn(explained, everything=True)


def test_another_path_that_the_clocks_allow_is_told_below_the_path() -> None:
    found = clocked.ambiguous(clocked.adviser(), *[Alternative(clocked.CHAT, clocked.OTHER)] * 5)
    picture = drawn(found)

    told = (
        "ambiguous: the clocks allow retrieval account (adviser) in place of chat gemma (adviser)"
    )
    assert " ".join(picture.split()).count(told) == 2 * 3
    assert picture.count("  ambiguous in 2 more places") == 2
    assert " ".join(drawn(found, everything=True).split()).count(told) == 2 * 5


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
