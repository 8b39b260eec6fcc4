"""`python -m checks [RULE ...]`: runs the rules over the tree that it is called in."""

import argparse
import sys
from pathlib import Path

from checks.rules import RULES


def main(arguments: list[str] | None = None) -> int:
    """Prints every violation as `file:line: what`, why, how to fix; 1 if there is any, else 0."""
    parser = argparse.ArgumentParser(prog="python -m checks", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help=", ".join(RULES))
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="tree to check (default: .)")
    options = parser.parse_args(arguments)
    if unknown := set(options.rules) - set(RULES):
        parser.error(f"no rule named {', '.join(sorted(unknown))}; there are {', '.join(RULES)}")
    broken = sum(_report(name, options.root) for name in options.rules or RULES)
    return 1 if broken else 0


def _report(name: str, root: Path) -> int:
    """Prints one rule's result; the number of its violations."""
    found = sorted(RULES[name](root))
    print(f"{name}: {f'{len(found)} violations' if found else 'ok'}")
    for violation in found:
        print(violation)
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
