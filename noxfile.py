"""The suite on every Python that kveil is meant for, and with the oldest libraries that it allows: `make matrix`.

A Python that is not installed is skipped and said to be; `nox --list` shows the sessions. Nothing is claimed of what did not run.
"""

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, with the libraries of the lock file, which holds for all of these versions."""
    session.install("--require-hashes", "-r", "requirements/dev.txt")
    session.install("--no-deps", "--no-build-isolation", "-e", ".")
    _run(session)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """All tests, with the lowest version of each library that pyproject.toml allows, or the lowest that others then allow."""
    session.install("--require-hashes", "-r", "requirements/lowest.txt")
    session.install("--no-deps", "--no-build-isolation", "-e", ".")
    _run(session)


def _run(session: nox.Session) -> None:
    # python -m: tests of benchmarks and pages import what lies beside them, not only what is installed.
    which = ["tests", "src/kveil", "-m", "not research", "--doctest-modules"]
    session.run("python", "-m", "pytest", *which, "-n2", *session.posargs)
