"""Memory of this process, in MB. Linux only, where benchmarks run: elsewhere a process is said to begin at its parent's peak."""

from pathlib import Path


def now() -> float:
    return _of("VmRSS")


def own() -> float:
    """Without pages of files."""
    return _of("RssAnon")


def peak() -> float:
    """The most since the process began, or since `reset`."""
    return max(_of("VmHWM"), _of("VmRSS"))  # the peak is written down later than what is there now


def reset() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _of(name: str) -> float:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024
