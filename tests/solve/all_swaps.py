"""The costs of all swaps of a demand, by the kernel that searches use, with the finest loss that cannot overflow."""

from kveil.solve.demand import Demand
from kveil.solve.local_search import Swaps
from kveil.solve.loss import Loss


def swap_costs(space, centers, indices, weights=None, *, objective="k-median"):
    demand = Demand.of(indices, weights)
    return Swaps(space, demand, Loss.within(space.diameter, objective, demand.total)).costs(centers)
