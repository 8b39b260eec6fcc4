"""docs/metrics.md names every metric with its kind, unit and labels, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import yaml

from llmlat_processor.model.families import OVERFLOW, Family
from llmlat_processor.views.prometheus import exposition, name_of
from tests.llmlat_processor.metrics.samples import every_family

PAGE: Final = Path(__file__).parents[3] / "docs" / "metrics.md"

QUERIES: Final = re.compile(r"```(?:text|yaml)\n(.*?)```", re.DOTALL)


def row(family: Family) -> str:
    """A metric as a line of the table."""
    metric = family.metric
    labels = dict.fromkeys(name for point in family.points for name, _ in point.labels)
    ending = "_total" if metric.instrument == "counter" else ""
    cells = (
        f"`{metric.name}`",
        f"`{name_of(metric)}{ending}`",
        metric.instrument,
        f"`{metric.unit}`" if metric.unit else "",
        ", ".join(f"`{label}`" for label in labels),
        metric.description,
    )
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def test_the_tables_hold_every_metric_once_and_no_other() -> None:
    written = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert sorted(written) == sorted(row(family) for family in every_family())


def test_queries_and_rules_ask_for_metrics_that_there_are() -> None:
    text = exposition(every_family()).content.decode()
    samples = set(re.findall(r"^(\w+)[ {]", text, re.MULTILINE))
    queries = "\n".join(QUERIES.findall(PAGE.read_text()))
    asked = re.findall(
        r"\bllmlat_\w+(?=[\[{ )])", re.sub(r"by \(.*?\)|llmlat_section_label", "", queries)
    )

    assert len(asked) >= 10
    assert set(asked) <= samples


def test_the_rules_are_rules() -> None:
    (rules,) = (
        yaml.safe_load(block) for block in QUERIES.findall(PAGE.read_text()) if "alert:" in block
    )

    for rule in rules["groups"][0]["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "annotations"}
        assert rule["annotations"]["summary"]


def test_the_mark_of_what_is_over_is_named() -> None:
    assert f"`{OVERFLOW[0][0]}`" in PAGE.read_text()
