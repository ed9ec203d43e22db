"""A stream whose process is killed goes on from its last checkpoint, and ends as if nothing had happened."""

import os
import signal
import sys
from contextlib import closing

import numpy as np
import pytest

import warm
from kveil import StreamKMeans

pytestmark = pytest.mark.journey

READER = """
import sys
import numpy as np
from kveil import StreamKMeans

folder, epsilon = sys.argv[1], float(sys.argv[2]) or None
try:
    model = StreamKMeans.resume(folder + "/state")
    start = model.taken_["river"][-1][1] + 1
except ValueError:
    model, start = StreamKMeans(4, memory=200, epsilon=epsilon, bounds=(-5, 5)), 0
for seq in range(start, 40):
    model.partial_fit(np.load(f"{folder}/{seq}.npy"), source="river", seq=seq)
    model.save(folder + "/state")
    print(seq, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_killed_stream_ends_with_the_same_state(epsilon, tmp_path):
    rng = np.random.default_rng(2)
    batches = [rng.normal(rng.integers(-3, 4), 0.5, (300, 3)) for _ in range(40)]
    for seq, batch in enumerate(batches):
        np.save(tmp_path / f"{seq}.npy", batch)
    command = (READER, tmp_path, epsilon or 0)
    with open(tmp_path / "errors.txt", "w") as errors, closing(warm.Started(*command, cwd=tmp_path, stderr=errors)) as reader:
        for line in reader.stdout:
            if int(line) >= 17:  # it dies in the middle of a later batch, or of its checkpoint
                os.kill(reader.pid, signal.SIGKILL)
                break
        assert reader.wait(60) == -signal.SIGKILL
    assert warm.run(*command, cwd=tmp_path).returncode == 0
    resumed = StreamKMeans.resume(tmp_path / "state")
    twin = StreamKMeans(4, memory=200, epsilon=epsilon, bounds=(-5, 5))
    for seq, batch in enumerate(batches):
        twin.partial_fit(batch, source="river", seq=seq)
    assert resumed.taken_ == twin.taken_ == {"river": ((0, 39),)}
    kept, other = resumed._flow.kept.arrays(), twin._flow.kept.arrays()
    assert all(kept[name].tobytes() == other[name].tobytes() for name in kept)
