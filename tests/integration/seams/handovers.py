"""What a fault of ours can do in spite of everything, and why; whatever is not named here does not.

Each entry is needed: `test_seams` fails where one is not.
"""

from __future__ import annotations

from typing import Final

_IS_THEIRS = "it is the application's own, or the library's: what it raises is theirs to raise"
_LEADS_THERE = "it is all but the call of the application's own, and raises what that raises"
_IS_ASKED_FOR = "it makes what the application asks for, and does nothing else"

HANDOVERS: Final = {
    "wrapped": _IS_THEIRS,
    "original": _IS_THEIRS,
    "function": _IS_THEIRS,
    "step": _IS_THEIRS,
    "app": _IS_THEIRS,
    "self.theirs": _IS_THEIRS,
    "self._receive": _IS_THEIRS,
    "self._pass_on": _IS_THEIRS,
    "self.__wrapped__.parse": _IS_THEIRS,
    "self.__wrapped__.__iter__": _IS_THEIRS,
    "self.__wrapped__.__aiter__": _IS_THEIRS,
    "self.__wrapped__.__enter__": _IS_THEIRS,
    "self.__wrapped__.__aenter__": _IS_THEIRS,
    "self.__wrapped__.__exit__": _IS_THEIRS,
    "self.__wrapped__.__aexit__": _IS_THEIRS,
    "self.__wrapped__.__reduce_ex__": _IS_THEIRS,
    "getattr(self.__wrapped__, name)": _IS_THEIRS,
    "getattr(type(self.__wrapped__), name)": _IS_THEIRS,
    "copy.copy": _IS_THEIRS,
    "copy.deepcopy": _IS_THEIRS,
    "run_in": _LEADS_THERE,
    "exchange.run": _LEADS_THERE,
    "wrapper": _LEADS_THERE,
    "timing": _LEADS_THERE,
    "_run": _LEADS_THERE,
    "self._self_left": _LEADS_THERE,
    "self._self_read": _LEADS_THERE,
    "self._self_read_all": _LEADS_THERE,
    "self._watched": _LEADS_THERE,
    "Timed": _IS_ASKED_FOR,
}
"""By what is called: why its failing may be seen. No guard can stand around these calls."""

_ENDS = "a span may not end: what ends it has failed, and nobody else is there to do it"
_RESTORES = "a context may stay: what makes the one before current again has failed"
_IS_UNKNOWN = "a span may not end: what would have told of the end has failed"

LEFTOVERS: Final = {
    "core.attempt.Passage.failed self.returned": _RESTORES,
    "core.attempt.Passage.returned propagation.leave": _RESTORES,
    "core.call.Call.fail self.end": _ENDS,
    "core.call.Call.failed self.fail": _ENDS,
    "core.drops._follow_elsewhere _thread.start_new_thread": _IS_UNKNOWN,
    "core.emit._write_phase_span span.end": _ENDS,
    "core.exchanges.Exchange._leave propagation.leave": _RESTORES,
    "core.manual.Timed._leave self._left": _RESTORES,
    "core.manual.Timed._leave timing.end": _ENDS,
    "core.manual.Timed._leave timing.suspend": _RESTORES,
    "core.manual._Run._end self.timing.end": _ENDS,
    "core.manual._Run._end self.timing.suspend": _RESTORES,
    "core.manual._Run.completed self._end": _RESTORES,
    "core.manual._Run.failed self._end": _RESTORES,
    "core.manual._Run.received self.timing.suspend": _RESTORES,
    "core.manual._Run.returned self.timing.suspend": _RESTORES,
    "core.operations.Operation.suspend propagation.leave": _RESTORES,
    "core.propagation.leave contexts.attach": _RESTORES,
    "core.propagation.leave contexts.get_current": _RESTORES,
    "core.steps.stopped pull.failed": _RESTORES,
    "core.streams._Step.failed stopped": _RESTORES,
    "core.upstream.UpstreamCall.failed self._passage.failed": _RESTORES,
    "core.upstream.UpstreamCall.failed self.fail": _ENDS,
    "core.upstream.UpstreamCall.returned self._passage.returned": _RESTORES,
    "core.wrapping._followed inspect.isawaitable": _IS_UNKNOWN,
    "core.wrapping._followed scope.delivered": _IS_UNKNOWN,
}
"""By the function and what it calls: what may be left behind. The application goes on as ever."""
