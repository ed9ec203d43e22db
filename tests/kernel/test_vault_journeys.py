"""Processes that share one ledger, and processes that die: never more drawn than recorded, and the ledger goes on working."""

import subprocess
import sys
from fractions import Fraction

import pytest

from kveil.errors import BudgetExceeded
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Charge, Plan

pytestmark = [pytest.mark.journey, pytest.mark.skipif(sys.platform == "win32", reason="forks and kills by signal")]

PATIENCE = 60  # seconds until a child that hangs is given up; no test waits for it to pass


def laplace(epsilon):
    return Plan((Charge("discrete-laplace", "sums", 1, "l1", Fraction(epsilon)),), "add-remove")


FORTY = """
import os, sys
from fractions import Fraction
from kveil.errors import BudgetExceeded
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Charge, Plan

path, n = sys.argv[1], int(sys.argv[2])
plan = Plan((Charge("discrete-laplace", "sums", 1, "l1", Fraction(1)),), "add-remove")
start, go = os.pipe()

def ask():
    os.close(go)
    os.read(start, 1)  # returns when the last process has closed `go`: all ask at once
    try:
        with Ledger.open(path).reserve(plan):
            return "granted"
    except BudgetExceeded:
        return "refused"
    except BaseException as error:
        return repr(error)

children = []
for _ in range(n):
    child = os.fork()
    if child == 0:
        os.write(1, (ask() + "\\n").encode())
        os._exit(0)
    children.append(child)
os.close(start)
os.close(go)
for child in children:
    os.waitpid(child, 0)
"""


def test_forty_processes_asking_for_one_of_ten_get_exactly_ten(tmp_path):
    path = tmp_path / "clinic.db"
    ledger = Ledger.create(path, "clinic", 10.0, relation="add-remove")
    done = subprocess.run([sys.executable, "-c", FORTY, path, "40"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert sorted(done.stdout.split("\n")[:-1]) == ["granted"] * 10 + ["refused"] * 30
    assert ledger.spent().epsilon == 10.0
    assert len({entry.token for entry in ledger.charges()}) == 10
    assert all(entry.committed for entry in ledger.charges())


RELEASE = """
import os, signal, sqlite3, sys
from fractions import Fraction
import numpy as np

path, step = sys.argv[1:]

def reach(name):
    if name == step:
        os.write(1, b"reached\\n")
        while True:
            signal.pause()

class Watched(sqlite3.Connection):
    def execute(self, sql, *args):
        word = sql.split()[0]
        reach({"BEGIN": "before BEGIN", "INSERT": "before INSERT", "COMMIT": "before COMMIT", "UPDATE": "before close"}.get(word))
        result = super().execute(sql, *args)
        reach({"COMMIT": "after COMMIT", "UPDATE": "after close"}.get(word))
        return result

real = sqlite3.connect
sqlite3.connect = lambda *args, **more: real(*args, factory=Watched, **more)

from kveil.kernel import exact, gate
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Measurement
from kveil.kernel.noise import laplace_noise

class Watching(exact.SystemEntropy):
    def words(self, n):
        reach("before the first bit")
        return super().words(n)

exact._installed.set(Watching())
laplace = laplace_noise("sums", 1, Fraction(1, 4))

def draw(source, raw):
    noisy = laplace.draw(source, raw)
    os.write(1, f"drew {noisy.tolist()}\\n".encode())  # out of the process as soon as it exists
    reach("after the draw")
    return noisy

ledger = Ledger.open(path)
while step != "none":
    gate.run(Measurement(laplace.charge, draw), np.zeros(3, dtype=np.int64), ledger)
    if step != "at any moment":
        break
"""

STEPS = {
    "before BEGIN": 0, "before INSERT": 0, "before COMMIT": 0, "after COMMIT": 1, "before the first bit": 1, "after the draw": 1,
    "before close": 1, "after close": 1,
}  # fmt: skip
UNIT = Fraction(1, 4)


def start(path, step):
    return subprocess.Popen([sys.executable, "-c", RELEASE, path, step], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("step", "charged"), STEPS.items(), ids=STEPS)
def test_a_process_killed_at_any_step_has_paid_for_what_it_drew_and_the_ledger_goes_on(tmp_path, step, charged):
    """The child says that it stands at the step, waits there, and is killed with SIGKILL."""
    path = tmp_path / "clinic.db"
    Ledger.create(path, "clinic", 1.0, relation="add-remove")
    with start(path, step) as child:
        lines = []
        for line in child.stdout:
            lines.append(line.strip())
            if line == "reached\n":
                break
        child.kill()
        lines += [line.strip() for line in child.stdout]
    assert "reached" in lines, f"the child ended before it reached the step {step!r}"
    drawn = sum(line.startswith("drew") for line in lines)

    ledger = Ledger.open(path)
    assert Fraction(ledger.spent().epsilon) >= drawn * UNIT
    assert ledger.spent().epsilon == charged * UNIT
    assert [entry.committed for entry in ledger.charges()] == ([step == "after close"] if charged else [])
    ledger.reserve(laplace(1 - charged * UNIT)).close()
    with pytest.raises(BudgetExceeded):
        ledger.reserve(laplace(Fraction(1, 2**40)))


def test_processes_killed_in_the_midst_of_work_never_drew_more_than_was_recorded(tmp_path):
    """Three children draw as fast as they can on one ledger; each is killed while it runs, wherever it happens to be."""
    path = tmp_path / "clinic.db"
    Ledger.create(path, "clinic", 1000.0, relation="add-remove")
    children = [start(path, "at any moment") for _ in range(3)]
    seen = []
    for place, child in enumerate(children):
        with child:
            for _ in range(5 + place):
                seen.append(child.stdout.readline())
            child.kill()
            seen += child.stdout.readlines()
    drawn = sum(line.startswith("drew") for line in seen)
    assert drawn >= 5 + 6 + 7
    ledger = Ledger.open(path)
    assert ledger.spent().epsilon >= float(drawn * UNIT)
    assert len(ledger.charges()) <= drawn + len(children), "a process that dies wastes at most the charge it held"
    ledger.reserve(laplace(1)).close()
