"""The hosts: a network namespace and a link to us for each, and clocks of its own for its programs.

    us 198.18.77.1 ── .2 app        198.18.77.5 ── .6 gateway        ... 9 ── 10, 13 ── 14

No host sees another one: all that they say to each other goes through wires of ours.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.truth.scenarios import Clock

NEEDED: Final[Mapping[str, str]] = {
    "ip": "iproute2",
    "unshare": "util-linux",
    "faketime": "faketime",
}
"""Programs, and Debian's packages that have them."""

_NETWORK: Final = "198.18.77"
"""Of the block that is set aside for measurements (RFC 2544)."""


_PREFIX: Final = "llmlat-truth-"


class RigError(Exception):
    """The rig cannot be set up here; the message says why, and what to do about it."""


class Host(NamedTuple):
    """A network namespace, its own address, and ours on the link to it."""

    name: str
    namespace: str
    address: str
    ours: str

    def command(self, program: Sequence[str], clock: Clock, faked: Mapping[str, str]) -> list[str]:
        """What starts a program there, with clocks of its own.

        Args:
            program: and its arguments.
            clock: how far ahead its monotonic clock is.
            faked: environment that makes its wall clock another one; none of it is for `ip`.
        """
        return [
            *("ip", "netns", "exec", self.namespace),
            *("unshare", "--time", "--monotonic", str(clock.monotonic_s)),
            *("--boottime", str(clock.monotonic_s), "--"),
            *("env", *(f"{name}={value}" for name, value in faked.items())),
            *program,
        ]


def obstacle() -> str | None:
    """Why the rig cannot be set up here; None where it can."""
    if os.geteuid():
        return "the truth test needs root: it makes network and time namespaces (sudo make truth)"
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        packages = " ".join(NEEDED[program] for program in missing)
        return f"the truth test needs {', '.join(missing)} (Debian: apt-get install {packages})"
    return None


def versions() -> dict[str, str]:
    """Name to version of what the rig is made of."""
    return {
        "linux": platform.release(),
        "iproute2": _ask("ip", "-V").strip().rpartition("-")[2].split(",")[0],
        "util-linux": _ask("unshare", "--version").split()[-1],
        "faketime": _ask("faketime", "--version").split()[2],
    }


@contextmanager
def hosts(names: Sequence[str]) -> Iterator[Mapping[str, Host]]:
    """Set up the hosts, and take them down whatever happens.

    Raises:
        RigError: the kernel does not let us.
    """
    _check_free()
    with ExitStack() as stack:
        made: dict[str, Host] = {}
        for number, name in enumerate(names):
            host = Host(
                name,
                f"{_PREFIX}{os.getpid()}-{name}",
                f"{_NETWORK}.{4 * number + 2}",
                f"{_NETWORK}.{4 * number + 1}",
            )
            link = f"lt{number}-{os.getpid()}"
            stack.callback(_ask, "ip", "netns", "delete", host.namespace)
            _set_up(host, link)
            made[name] = host
        _check_time_namespaces(made[names[0]])
        yield made


def faking(clock: Clock, file: str = "") -> dict[str, str]:
    """The environment in which a program sees another wall clock, and its monotonic one as it is.

    Args:
        clock: how its wall clock differs.
        file: read again at each reading of the clock, in the place of that; empty for none.
    """
    library = _ask("faketime", "-f", "+0", "printenv", "LD_PRELOAD").strip()
    wall = (
        {"FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1"}
        if file
        else {"FAKETIME": clock.wall}
    )
    return {"LD_PRELOAD": library, "FAKETIME_DONT_FAKE_MONOTONIC": "1", **wall}


def _set_up(host: Host, link: str) -> None:
    inside = ("ip", "-n", host.namespace)
    _do("ip", "netns", "add", host.namespace)
    _do("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
    _do("ip", "address", "add", f"{host.ours}/30", "dev", link)
    _do("ip", "link", "set", link, "up")
    _do(*inside, "address", "add", f"{host.address}/30", "dev", "eth0")
    _do(*inside, "link", "set", "lo", "up")
    _do(*inside, "link", "set", "eth0", "up")
    _do(*inside, "route", "add", "default", "via", host.ours)


def _check_free() -> None:
    """Remove what a run left behind that was killed; nobody else's."""
    for line in _ask("ip", "netns", "list").splitlines():
        name = line.split()[0]
        owner = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and not Path("/proc", owner).exists():
            _ask("ip", "netns", "delete", name)
    if _ask("ip", "-oneline", "address", "show", "to", f"{_NETWORK}.0/24").strip():
        raise RigError(f"{_NETWORK}.0/24 is in use on this machine: is another truth test running?")


def _check_time_namespaces(host: Host) -> None:
    _do(*host.command(["true"], Clock(1), {}))


def _do(*command: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip() or f"status {done.returncode}"
        raise RigError(f"this machine allows no namespaces: `{' '.join(command)}`: {said}")


def _ask(*command: str) -> str:
    """What a program says; nothing where it fails."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    ).stdout
