"""Libraries that run threads of their own, BLAS and OpenMP, and how they are kept from it where there is little work."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

SMALL = 2**16  # numbers; threads of OpenMP that wait for each other take a hundred times as long over fewer


def found() -> Any:
    """The libraries in this process. Finding them takes milliseconds, so it is done again only when modules were imported."""
    return _found(len(sys.modules))


def few_threads(n_numbers: int) -> AbstractContextManager[object]:
    """One thread of OpenMP for what this thread computes inside, if there are few numbers."""
    return one_thread() if n_numbers <= SMALL else nullcontext()


def one_thread() -> AbstractContextManager[object]:
    """One thread of OpenMP for what this thread computes inside: for boosted trees of few numbers, and beside busy processes."""
    limited: AbstractContextManager[object] = found().limit(limits=1, user_api="openmp")
    return limited


@lru_cache(maxsize=1)
def _found(n_modules: int) -> Any:
    from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn

    return ThreadpoolController()
