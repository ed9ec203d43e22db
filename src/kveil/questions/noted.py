"""What one question finds out about the rows of a block and the next one needs again: labels, cells. Secret, and kept on a page.

A note is found by all that it was made of: the frame, by identity, and the bytes of released arrays. So it is what would be
computed anew, and answers do not depend on whether it was there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.partition._cell_kernels import find_cells
from kveil.questions import _kernels
from kveil.questions.base import Page
from kveil.questions.frame import Frame, blocks
from kveil.space.euclidean import Centers, assign

PRODUCT = 3  # distances to all centres, in one product, take as long as so many times fewer one by one


class Labels:
    """The nearest centre of every row, a few rows after the other: noted before, or found now and kept in the end.

    Labels about earlier centres are a good guess: most rows are so near to the same one that few of the others can be nearer, and
    distances to all need not be computed.
    """

    def __init__(self, frame: Frame, by: str, centers: Centers, page: Page) -> None:
        self._centers, self._page = centers, page
        ratio = None if centers.ratio is None else centers.ratio.tobytes()
        self._key = (frame, by, centers.codes.tobytes(), ratio)
        self._noted, self._found, self._done = page.find(self._key), list[Any](), 0
        self._guess = page.guess((frame, by)) if self._noted is None and ratio is None else None

    def of(self, seen: Any) -> Any:
        """Labels (rows,) of the next rows, as the frame sees them."""
        start, self._done = self._done, self._done + seen.shape[0]
        if self._noted is not None:
            return self._noted[start : self._done].astype(np.int32)
        owner = assign(seen, self._centers)
        self._found.append(owner)
        return owner

    def with_squares(self, seen: Any) -> tuple[Any, Floats]:
        """The same for dense rows, with their squared distances (rows,) to these centres, which have no ratio."""
        bases, squares = self._centers.codes, np.empty(len(seen))
        if self._guess is None:
            owner = self.of(seen)
            _kernels.find_squares(seen, bases, owner, squares)
            return owner, squares
        start, self._done = self._done, self._done + len(seen)
        owner = np.minimum(self._guess[start : self._done].astype(np.int32), len(bases) - 1)
        n_tried = _kernels.correct(seen, bases, *self._centers.neighbours, owner, squares)
        if PRODUCT * n_tried > len(seen) * len(bases):
            self._guess = None
        self._found.append(owner)
        return owner, squares

    def keep(self) -> None:
        """For a question that another one about the same centres may follow."""
        if self._noted is None and self._found:
            self._page.keep(self._key, np.concatenate(self._found).astype(np.min_scalar_type(len(self._centers.codes))))


def cells_noted(rows: Any, frame: Frame, half: Integers, order: Integers, page: Page) -> Any:
    """The cell of every row by halvings of the axes in `order`, noted before or found now."""
    key = (frame, half.tobytes(), order.tobytes())
    noted = page.find(key)
    if noted is not None:
        return noted
    depth, codes, done = np.bincount(order, minlength=len(half)).astype(np.int64), np.empty(rows.shape[0], dtype=np.int64), 0
    for block in blocks(rows):
        seen = frame.projected(frame.centred(block))
        find_cells(seen, half, depth, order, codes[done : done + len(seen)])
        done += len(seen)
    narrow = codes.astype(np.min_scalar_type(2 ** len(order) - 1))
    page.keep(key, narrow)
    return narrow
