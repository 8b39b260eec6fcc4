"""The public functions: ours, or where they cannot be imported stand-ins that do nothing."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from llmlat_otel.core.guard import guarded

API: Final = "llmlat_otel.api"
STAND_INS: Final = "llmlat_otel.stand_ins"

if TYPE_CHECKING:
    from llmlat_otel.api import *  # noqa: F403 - its names are what it offers
else:
    # A library that we need may be missing, too old or broken: the application is to run all the
    # same, and the count of faults says why nothing is timed.
    _found = guarded("import", import_module, API) or import_module(STAND_INS)
    __all__ = _found.__all__
    globals().update({name: getattr(_found, name) for name in __all__})
