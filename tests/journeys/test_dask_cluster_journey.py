"""A cluster of two worker processes gives the bytes that NumPy gives, also when a worker is killed in the middle of a fit."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

import kveil
import warm
from kveil import Ledger, PrivacyUnit, PrivateKMeans
from kveil.progress import listen
from kveil.testing import scripted

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.journey

NAMES = ["a", "b", "c"]
N_STEPS, N_PARTS = 6, 7
LIMIT = 120.0  # seconds; nothing is measured by it


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(9).normal(scale=2.0, size=(7000, 3))


@pytest.fixture(scope="module")
def parquet(rows, tmp_path_factory):
    """The rows in a folder of Parquet files, with the ids of people who have five rows each."""
    folder = tmp_path_factory.mktemp("parquet")
    frame = pd.DataFrame(rows, columns=NAMES).assign(id=np.arange(len(rows)) % (len(rows) // 5))
    for number, part in enumerate(np.array_split(np.arange(len(rows)), N_PARTS)):
        frame.iloc[part].to_parquet(folder / f"{number}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    warm.begin()
    forked = dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    with forked, distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", memory_limit=0,
        local_directory=str(tmp_path_factory.mktemp("workers")),
    ) as running:  # fmt: skip
        yield running


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        connected.wait_for_workers(2, timeout=LIMIT)  # a killed one is started anew by its nanny
        yield connected


def fitted(X, **parameters):
    """The fit that every test compares, charged to a ledger of its own."""
    ledger = Ledger.memory("clinic", 2.0, relation="add-remove", unit=kveil.read(X).unit)
    with scripted(3):
        model = PrivateKMeans(4, bounds=(-5, 5), random_state=1, n_steps=N_STEPS, ledger=ledger, **parameters).fit(X)
    return model, ledger


def is_the_same_fit(found, expected):
    """Identical bytes, the same guarantee, and one charge of the whole of it."""
    model, ledger = found
    same = expected[0]
    assert model.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()
    assert model.cluster_weights_.tobytes() == same.cluster_weights_.tobytes()
    assert model.guarantee_ == same.guarantee_
    assert model.guarantee_.epsilon == 1.0
    assert [(entry.amount.epsilon, entry.committed) for entry in ledger.charges()] == [(1.0, True)]
    assert ledger.remaining().epsilon == 1.0
    assert model.release_.receipt["charges"] == 2 * N_STEPS, "no step was drawn twice"
    return True


@pytest.fixture(scope="module")
def expected(rows):
    return fitted(rows)


@pytest.fixture(scope="module")
def expected_of_people(parquet):
    return fitted(kveil.read(parquet, person="id", max_rows_per_person=2))


def test_a_frame_on_a_cluster_gives_the_bytes_of_numpy(client, parquet, expected):
    frame = dd.read_parquet(parquet, columns=NAMES)
    assert frame.npartitions > 1
    assert is_the_same_fit(fitted(frame), expected)


def test_an_array_on_a_cluster_gives_the_bytes_of_numpy(client, rows, expected):
    assert is_the_same_fit(fitted(da.from_array(rows, chunks=(1000, 2))), expected)


def test_people_on_a_cluster_are_bounded_as_on_one_machine(client, parquet, expected_of_people):
    source = kveil.read(dd.read_parquet(parquet), person="id", max_rows_per_person=2)
    found = fitted(source)
    assert is_the_same_fit(found, expected_of_people)
    assert found[0].guarantee_.unit == PrivacyUnit("person", 2, "id")


def test_a_fit_on_a_cluster_with_real_noise_is_valid(client, parquet):
    model = PrivateKMeans(4, bounds=(-5, 5), n_steps=2).fit(dd.read_parquet(parquet, columns=NAMES))
    assert model.guarantee_.valid
    assert model.guarantee_ == model.guarantee(n_features=3)


class Trap:
    """Makes one task of a fit wait inside a worker until that worker has been killed.

    From the moment the trap is set, the first task to come through `hold` leaves its process id in a file and waits for
    another file, which appears only after its process is gone. So the worker dies with this task running, whatever the
    speed of the machine. The task that replaces it leaves a trace.
    """

    def __init__(self, folder: Path, client, until) -> None:
        self.folder, self.client, self.until = folder, client, until
        self.before = set(client.run(os.getpid).values())
        self.ran_again = False

    def set(self) -> None:
        (self.folder / "set").touch()

    def hold(self):
        """A function for map_partitions and map_blocks; nested, so that it travels to the workers by value."""
        folder, limit = self.folder, LIMIT

        def wait_if_caught(part):
            values = np.asarray(part)
            if not (folder / "set").exists() or not len(values):
                return part
            which = repr(float(values[0].sum()))  # tells partitions apart
            try:
                (folder / "taken").touch(exist_ok=False)  # by one task only
            except FileExistsError:
                caught = (folder / "caught").read_text().split() if (folder / "caught").exists() else ["", ""]
                if caught[1] == which and caught[0] != str(os.getpid()):
                    (folder / "again").touch()
                return part
            (folder / "caught.new").write_text(f"{os.getpid()} {which}")
            (folder / "caught.new").rename(folder / "caught")  # now it is whole
            end = time.monotonic() + limit
            while not (folder / "killed").exists() and time.monotonic() < end:
                time.sleep(0.01)
            (folder / "survived").touch()
            return part

        return wait_if_caught

    def kill(self) -> int:
        """Wait until a task is caught, and kill the worker it runs in."""
        self.until((self.folder / "caught").exists, "no task came into the trap")
        victim = int((self.folder / "caught").read_text().split()[0])
        assert victim in self.before, "not a worker of this cluster"
        kill_and_wait(victim, self.until)
        (self.folder / "killed").touch()
        return victim

    def look(self) -> None:
        """Called when the step after the kill begins: later steps come through here as well and would leave traces too."""
        self.ran_again = (self.folder / "again").exists()

    def check(self, victim: int) -> None:
        """The task died with its worker, and ran again in another."""
        assert self.ran_again
        assert not (self.folder / "survived").exists()
        self.client.wait_for_workers(2, timeout=LIMIT)
        assert victim not in self.client.run(os.getpid).values()


def kill_and_wait(pid, until):
    process = psutil.Process(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_dead(process), f"process {pid} did not die")


def is_dead(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # its nanny may bury it at any moment
        return True


@pytest.fixture
def trap(tmp_path, client, until):
    return Trap(tmp_path, client, until)


def fitted_while_killing(X, trap, at_step):
    """Fit X; the trap is set when step `at_step` begins, and a worker is killed in it before the next one can begin."""

    def step_begins(label, step, total):
        if step == at_step:
            trap.set()
        elif step == at_step + 1:
            trap.look()

    with ThreadPoolExecutor(1) as thread, listen(step_begins):
        victim = thread.submit(trap.kill)
        found = fitted(X)
        trap.check(victim.result())
    return found


def test_a_worker_killed_with_its_task_running_changes_no_byte_of_a_frame(trap, parquet, expected):
    frame = dd.read_parquet(parquet, columns=NAMES).map_partitions(trap.hold(), meta=dict.fromkeys(NAMES, float))
    assert is_the_same_fit(fitted_while_killing(frame, trap, 3), expected)


def test_a_worker_killed_with_its_task_running_changes_no_byte_of_an_array(trap, rows, expected):
    array = da.from_array(rows, chunks=(1000, 3)).map_blocks(trap.hold(), dtype=float, meta=np.empty((0, 0)))
    assert is_the_same_fit(fitted_while_killing(array, trap, 3), expected)


def test_a_worker_killed_while_people_are_bounded_changes_nobody(trap, parquet, expected_of_people):
    frame = dd.read_parquet(parquet).map_partitions(trap.hold(), meta={**dict.fromkeys(NAMES, float), "id": int})
    source = kveil.read(frame, person="id", max_rows_per_person=2)
    assert is_the_same_fit(fitted_while_killing(source, trap, 1), expected_of_people)


def test_a_worker_killed_between_two_steps_changes_nothing(client, parquet, expected, until):
    killed = []

    def kill_one(label, step, total):
        if step == 3:
            killed.append(min(client.run(os.getpid).values()))
            kill_and_wait(killed[0], until)

    with listen(kill_one):
        found = fitted(dd.read_parquet(parquet, columns=NAMES))
    assert is_the_same_fit(found, expected)
    assert len(killed) == 1


def test_progress_on_a_cluster_counts_steps_and_nothing_else(client, parquet):
    told = []
    with listen(lambda *step: told.append(step)):
        fitted(dd.read_parquet(parquet, columns=NAMES))
    assert told == [("Lloyd step", step, N_STEPS) for step in range(1, N_STEPS + 1)]
