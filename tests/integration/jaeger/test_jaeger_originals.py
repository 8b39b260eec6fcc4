"""What was sent arrives in a real Jaeger as it was: annotations are appended, nothing else."""

from __future__ import annotations

import pytest

from llmlat_semconv import attributes as names
from tests.integration.jaeger.lanes import check_only_appended_to, originals, said
from tests.integration.jaeger.loop import Loop
from tests.integration.jaeger.sending import Sent, sent_as
from tests.integration.jaeger.storage import Stored, unpack

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def sent() -> Sent:
    return sent_as("call_worked_adviser")


@pytest.fixture(scope="module")
def stored(shared_loop: Loop, sent: Sent) -> list[Stored]:
    shared_loop.send(sent.request)
    return shared_loop.stored(sent.trace_id)


def test_every_span_is_the_same_bytes_but_for_what_is_appended(
    sent: Sent, stored: list[Stored]
) -> None:
    before = {each.span.span_id: each for each in unpack(sent.request)}
    after = originals(stored)
    assert sorted(each.span.span_id for each in after) == sorted(before)
    for each in after:
        check_only_appended_to(each, before[each.span.span_id])


def test_an_operation_on_the_path_says_so_and_a_phase_says_nothing(
    sent: Sent, stored: list[Stored]
) -> None:
    on_path = {
        sent.names[each.span.span_id]
        for each in originals(stored)
        if said(each.span.attributes).get(names.LLMLAT_CRITICAL_PATH_IS_ON_PATH)
    }
    assert on_path == {each["of"] for each in sent.case.expected["e2e"]} | {"R"}
