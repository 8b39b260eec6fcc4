"""The list of rules: a name for each, and the function that finds its violations in a tree."""

from collections.abc import Callable, Mapping
from pathlib import Path

from checks import (
    any_crossings,
    bounds,
    contract_names,
    exports,
    guards,
    init_files,
    machine_paths,
    module_names,
    packaging_files,
    sdk_boundaries,
    sync_twins,
    tests_form,
    values,
)
from checks.violation import Violation

Rule = Callable[[Path], list[Violation]]

RULES: Mapping[str, Rule] = {
    "any-crossings": any_crossings.violations,
    "bounds": bounds.violations,
    "contract-names": contract_names.violations,
    "exports": exports.violations,
    "guards": guards.violations,
    "init-files": init_files.violations,
    "machine-paths": machine_paths.violations,
    "module-names": module_names.violations,
    "packaging-files": packaging_files.violations,
    "sdk-boundaries": sdk_boundaries.violations,
    "sync-twins": sync_twins.violations,
    "tests-form": tests_form.violations,
    "values": values.violations,
}
