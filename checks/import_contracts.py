"""The import-linter contract type `only`: names all that a set of modules may import."""

import sys
from collections.abc import Iterator

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

from checks.syntax import is_within


class OnlyContract(Contract):
    """The modules import what is listed and nothing else; a new file is covered at once.

    Options:
        modules: Each is a unit, with all below it. `package.*` makes every child a unit, and
            units do not know each other. Imports inside a unit are free.
        except_modules: Units left out.
        may_import: Modules, with all below them; `stdlib` is the whole standard library.
        never: Modules refused although `may_import` has them.
        exceptions: `unit -> module` pairs allowed on top.
    """

    type_name = "only"

    modules = fields.ListField(subfield=fields.StringField())
    except_modules = fields.ListField(subfield=fields.StringField(), required=False)
    may_import = fields.ListField(subfield=fields.StringField())
    never = fields.ListField(subfield=fields.StringField(), required=False)
    exceptions = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Kept if every direct import of every unit is allowed."""
        del verbose
        broken = sorted(line for unit in self._units(graph) for line in self._broken(graph, unit))
        return ContractCheck(kept=not broken, metadata={"imports": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints one line an import that is not allowed."""
        for line in check.metadata["imports"]:
            output.print_error(f"- {line}", bold=False)
        output.new_line()
        output.print(f"May import: {', '.join(_listed(self.may_import))}.")
        if never := _listed(self.never):
            output.print(f"Never: {', '.join(never)}.")
        output.new_line()

    def _units(self, graph: ImportGraph) -> Iterator[str]:
        left_out = set(_listed(self.except_modules))
        for expression in _listed(self.modules):
            package = expression.removesuffix(".*")
            if package in graph.modules:
                units = {package} if package == expression else graph.find_children(package)
                yield from units - left_out

    def _broken(self, graph: ImportGraph, unit: str) -> Iterator[str]:
        for importer in {unit} | graph.find_descendants(unit):
            for imported in graph.find_modules_directly_imported_by(importer):
                if not is_within(imported, unit) and not self._allows(unit, imported):
                    yield f"{importer} -> {imported} (line {_lines(graph, importer, imported)})"

    def _allows(self, unit: str, imported: str) -> bool:
        pairs = (tuple(pair.split(" -> ")) for pair in _listed(self.exceptions))
        if any(is_within(unit, who) and is_within(imported, what) for who, what in pairs):
            return True
        if any(is_within(imported, refused) for refused in _listed(self.never)):
            return False
        return any(_covers(allowed, imported) for allowed in _listed(self.may_import))


def _listed(field: object) -> list[str]:
    """A field's value: import-linter replaces the declared field by it, or by nothing."""
    return list(field) if isinstance(field, list) else []


def _covers(allowed: str, imported: str) -> bool:
    if allowed == "stdlib":
        return imported.partition(".")[0] in sys.stdlib_module_names
    return is_within(imported, allowed)


def _lines(graph: ImportGraph, importer: str, imported: str) -> str:
    details = graph.get_import_details(importer=importer, imported=imported)
    return ", ".join(str(detail["line_number"]) for detail in details)
