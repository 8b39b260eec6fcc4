"""Two critical paths per root: to the first useful content and to the end.

In the order in which they are read best:

    tree, facts              operations as nodes, and what each says of itself
    calls                    who calls whom; transports, attempts, hops
    reports                  what an engine says of itself, told of the call that it answered
    joins, predecessors      who waited for whom
    walk, labels, account    from the end backwards; what the time is called; the rope it is kept in
    exchange                 a caller's waiting for its callee's work (offer, envelope, held)
    accounts                 all of that for every call, the innermost first
    paths                    both paths of each root (sink, slack, ledger)
    schedules, what_if       the same operations, scheduled anew
"""

from llmlat_processor.stages.critical_path.paths import critical_paths

__all__ = ["critical_paths"]
