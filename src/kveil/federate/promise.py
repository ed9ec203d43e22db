"""What a run promises: the cost of its plan at one party, which is the cost of the whole run for a record at one party."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kveil.desk.law import Law
from kveil.errors import InvalidValue
from kveil.federate.kinds import QUESTIONS
from kveil.federate.layout import Layout
from kveil.federate.plan import Round, RunPlan
from kveil.federate.policy import Policy
from kveil.federate.questions import Terms
from kveil.kernel.loss import Charge, Guarantee, Plan, guarantee, no_guarantee

FEDERATION = (
    "nobody has records at more than one party; with records at q parties the loss is q times as large",
    "a party's own machine is not read by others, and its ledger and journal are never copied or taken back",
    "noise is drawn by each party for itself: other parties and the coordinator may do and share what they like",
)


def law_of(plan: RunPlan, layout: Layout) -> Law | None:
    """How answers are made noisy under a plan; None without noise."""
    return None if plan.loss == "none" else Law(plan.loss, "add-remove", layout.unit)


def charges_of(plan: RunPlan, layout: Layout) -> Plan | None:
    """All charges of a plan at one party."""
    law = law_of(plan, layout)
    if law is None:
        return None
    charges = []
    for part in plan.rounds:
        terms = Terms(layout, part, plan.n_clusters, Policy(), law)
        charges += [replace(charge, times=part.times) for charge in QUESTIONS[part.kind].blank(terms).charges(terms)]
    return Plan(tuple(charges), "add-remove", layout.unit, plan.delta)


def check_cost(charges: Iterable[Charge], plan: RunPlan, part: Round) -> None:
    """Refuse an answer that would cost more than its part of the plan: by construction it costs as much, exactly."""
    cost = sum((charge.zcdp() if plan.loss == "zcdp" else charge.pure()) or 0 for charge in charges)
    if cost != part.budget:
        raise InvalidValue("an answer does not cost what the plan says.")


def promised(plan: RunPlan, layout: Layout, sources: Iterable[str] = ("system",)) -> Guarantee:
    """The guarantee of a run. A record sits at one party, every other party's replies depend on public messages and its own
    rows, so under add-remove the run costs what its plan costs at that one party.

    sources: where parties say that their noise came from.
    """
    charges = charges_of(plan, layout)
    if charges is None:
        return no_guarantee("add-remove", layout.unit, "federation")
    is_scripted = set(sources) - {"system"}
    reasons = ("a party drew scripted noise, which hides nothing",) if is_scripted else ()
    return guarantee(charges, trust="federation", reasons=reasons, assumptions=FEDERATION)
