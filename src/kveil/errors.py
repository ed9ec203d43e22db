"""Every error kveil raises on purpose. A message may quote parameters, never rows, row counts or indices.

This file imports nothing, so that the vault may raise from it without leaning on another room.
"""


class KveilError(Exception):
    """The root: `except KveilError` catches whatever kveil refuses."""


class InvalidValue(KveilError, ValueError):
    """A parameter, shape or schema that cannot be used."""


class InvalidType(KveilError, TypeError):
    """A value of a type that cannot be used."""


class BoundsRequired(InvalidValue):
    """No public domain was given, and taking one from the data would publish its extremes."""


class BoundsNotFound(InvalidValue):
    """A private search for bounds found no range that stands out. Its charge stays spent."""


class GridOverflow(InvalidValue):
    """The fixed-point grid is too fine for exact sums; decided from public parameters before a row is read."""


class InexactProducts(KveilError):
    """This machine multiplies matrices of whole numbers inexactly, on which exact labels rest. Nothing was charged."""


class SourceError(InvalidValue):
    """A file or table that cannot be read as rows of numbers."""


class ReleaseError(InvalidValue):
    """A saved release that is damaged, unknown, or in the way."""


class NotVerified(ReleaseError):
    """A saved release that fails a check of `kveil verify`: it was changed, or contradicts itself."""


class ManifestError(InvalidValue):
    """What a collector asks is unsigned, damaged, unknown or not allowed. No point was read and nothing was charged."""


class BudgetError(KveilError):
    """The budget says no. Nothing was drawn."""


class BudgetExceeded(BudgetError):
    """The ledger has too little left. Nothing was drawn and nothing was charged."""


class LedgerMismatch(BudgetError, ValueError):
    """The ledger counts another relation, unit or kind of loss than the plan. Nothing was charged."""


class TicketError(BudgetError):
    """A reservation was used twice, outside its process, or for something it does not hold."""


class FederationError(KveilError):
    """Parties do not answer, refuse, or do not fit together. What was drawn before stays charged at its party."""


class StorageUnavailable(KveilError):
    """A collector's storage is locked, full or out of reach. This step was undone: try it again. A service answers 503.

    is_passing: a lock, a conflict or a lost connection, so that trying again at once may help; not a full disk.
    """

    status = 503

    def __init__(self, message: str = "", *, is_passing: bool = False) -> None:
        super().__init__(message)
        self.is_passing = is_passing


class MissingExtra(KveilError, ImportError):
    """An optional dependency is needed and not installed."""


class NoisyResultWarning(UserWarning):
    """A result that is mostly noise, by its own released values. It was paid for and is kept."""


class FewerDistinctPoints(UserWarning):
    """Public points with fewer distinct places than clusters: some centres are copies. Never given in a private path."""


class ScaleWarning(UserWarning):
    """One column is far wider than another and decides every distance. Widths are public; given before anything is charged."""
