"""What a report means: what is wrong, what to do, and what is nobody's fault."""

import pytest

from llmlat_otel.doctor.findings import advice_on, findings
from llmlat_otel.doctor.text import Style, finding_lines, process_lines

PLAIN = Style(has_color=False)


def target(name, state, **more):
    return {"target": name, "state": state, **more}


def instrumentors(*targets, libraries=None, is_disabled=False):
    each = {"is_disabled": is_disabled, "libraries": libraries or {}, "targets": list(targets)}
    return {"openai": each}


def of(*targets, **more):
    return {"is_loaded": True, "instrumentors": instrumentors(*targets, **more)}


def destination(**counts):
    return {"name": "otlp", "endpoint": "host:4317", "ended": 5, "sent": 0, **counts}


FINE = {
    "wrapped": of(target("openai.A.create", "wrapped")),
    "not imported yet": of(target("openai.A.create", "waiting")),
    "one method that this version lacks": {
        **of(target("openai.A.create", "wrapped"), target("openai.A.parse", "missing")),
        "faults": {"openai.A.parse": {"count": 1, "first": "TargetError: ..."}},
    },
    "switched off": of(target("openai.A.create", "off"), is_disabled=True),
    "all sent": {"spans": {"made": 5, "destinations": [destination(failed=0, dropped=0)]}},
    "written by another version": {},
}
WRONG = {
    "nobody has asked for it": (
        of(target("openai.A.create", "off")),
        "nobody has asked for it",
        "import llmlat_otel.auto",
    ),
    "a target that failed": (
        of(target("openai.A.create", "failed")),
        "openai.A.create could not be wrapped",
        "faults",
    ),
    "a target that was replaced": (
        of(target("openai.A.create", "replaced")),
        "somebody has replaced openai.A.create",
        "reverse order",
    ),
    "a library without any of them": (
        of(target("openai.A.create", "missing"), libraries={"openai": "0.28"}),
        "openai 0.28 has none of the methods",
        "too old",
    ),
    "spans that failed": (
        {
            "spans": {
                "destinations": [
                    destination(failed=5, last_error={"what": "Connection refused", "at": "noon"})
                ]
            }
        },
        "5 spans failed, otlp at host:4317, at last noon: Connection refused",
        "nothing listens there",
    ),
    "spans that were rejected": (
        {
            "spans": {
                "destinations": [
                    destination(rejected=2, last_error={"what": "too old", "at": "noon"})
                ]
            }
        },
        "2 spans rejected",
        "",
    ),
    "spans that were dropped": (
        {"spans": {"destinations": [destination(dropped=3)]}},
        "3 spans dropped, otlp at host:4317, the queue was full",
        "OTEL_BSP_MAX_QUEUE_SIZE",
    ),
    "a setting": (
        {"settings": {"in_force": {}, "refused": ["LLMLAT_PHASES='span' is not ..."]}},
        "LLMLAT_PHASES='span'",
        "correct or unset it",
    ),
    "a fault": (
        {"faults": {"openai A.create": {"count": 2, "first": "TypeError: ... (core.call:7)"}}},
        "a fault of ours, 2 times, in openai A.create: TypeError: ... (core.call:7)",
        "report it",
    ),
    "an SDK that could not be imported": (
        {"is_loaded": False, "faults": {"import": {"count": 1, "first": "ImportError: no wrapt"}}},
        "llmlat_otel could not be imported and does nothing: ImportError: no wrapt",
        "pip install",
    ),
}


@pytest.mark.parametrize("report", FINE.values(), ids=FINE)
def test_nothing_is_wrong(report):
    assert [each for each in findings(report) if each.is_wrong] == []
    assert list(process_lines(report, PLAIN))


@pytest.mark.parametrize(("report", "what", "advice"), WRONG.values(), ids=WRONG)
def test_something_is_wrong_and_there_is_something_to_do(report, what, advice):
    (finding,) = findings(report)
    assert finding.is_wrong
    assert what in finding.what
    assert advice in finding.advice


ERRORS = {
    "StatusCode.UNAVAILABLE ... Connection refused": "nothing listens there",
    "DNS resolution failed for nowhere:4317": "no address",
    "[Errno -2] Name or service not known": "no address",
    "StatusCode.UNAUTHENTICATED": "OTEL_EXPORTER_OTLP_HEADERS",
    "batch code: 403, reason: Forbidden": "OTEL_EXPORTER_OTLP_HEADERS",
    "StatusCode.UNIMPLEMENTED": "OTEL_EXPORTER_OTLP_PROTOCOL",
    "batch code: 404, reason: Not Found": "OTEL_EXPORTER_OTLP_PROTOCOL",
    "SSL: WRONG_VERSION_NUMBER": "https",
    "StatusCode.DEADLINE_EXCEEDED": "firewall",
    "Read timed out. (read timeout=3)": "firewall",
    "StatusCode.RESOURCE_EXHAUSTED": "too much to do",
    "something that nobody has seen": "",
}


@pytest.mark.parametrize(("error", "advice"), ERRORS.items())
def test_an_error_of_an_exporter_has_its_advice(error, advice):
    said = advice_on(error)
    assert (advice in said) if advice else said == ""


def test_the_text_says_who_else_has_wrapped_and_what_is_missing():
    report = of(
        target("openai.A.create", "wrapped", others=["openinference.instrumentation"]),
        target("openai.A.parse", "missing"),
        target("openai.B.create", "waiting"),
        libraries={"openai": "3.57"},
    )
    text = "\n".join(process_lines(report, PLAIN))
    assert "✓ openai 3.57: 1 wrapped, 1 missing" in text
    assert "also wrapped by openinference.instrumentation" in text
    assert "missing: openai.A.parse" in text


def test_a_finding_is_shown_with_its_advice_and_colour_only_where_it_may_be():
    (finding,) = findings(of(target("openai.A.create", "failed")))
    plain = "\n".join(finding_lines("findings", [finding], PLAIN))
    assert plain == "findings\n  ✗ openai.A.create could not be wrapped\n    → see the faults"
    coloured = "\n".join(finding_lines("findings", [finding], Style(has_color=True)))
    assert "\x1b[31m✗\x1b[0m" in coloured
