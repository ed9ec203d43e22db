"""The one entrance of the vault: charge, then draw, then give the noisy value and a receipt."""

from fractions import Fraction

import numpy as np

from kveil.arrays import Words
from kveil.kernel.exact import entropy
from kveil.kernel.ledger import Ledger, Ticket
from kveil.kernel.loss import Measurement, Noisy, Plan, Receipt, Secret


def run(measurement: Measurement[Secret, Noisy], secret: Secret, account: Ledger | Ticket) -> tuple[Noisy, Receipt]:
    """`measurement` of `secret`, paid from a reservation (or from a ledger, which reserves this one charge).

    The charge is durable before entropy is read; a crash in between leaves it spent and nothing drawn.
    """
    if isinstance(account, Ledger):
        delta = Fraction(0) if measurement.charge.rho is None else account.delta  # only a Gaussian needs one of the ledger's
        with account.reserve(Plan((measurement.charge,), account.relation, account.unit, delta)) as ticket:
            return run(measurement, secret, ticket)
    index = account.take(measurement.charge)
    with np.errstate(all="ignore"):  # settings of the caller must not turn a draw into an error
        noisy = measurement.draw(source := entropy(), secret)
    receipt = Receipt(account.token, index, measurement.charge, source.secure)
    account.receipts.append(receipt)
    return noisy, receipt


def secret_words(n: int) -> Words:
    """`n` uniform 64-bit words that stay in the house, for choices that nobody should foresee, such as a row's block.

    They cost nothing, because nothing of the data is in them; what is later released with their help is charged there.
    """
    return entropy().words(n)
