"""Peak memory of a fit on a Parquet file larger than the limit: 20 000 000 x 16 float32, about 1.2 GB."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bar import Bar

ROWS, COLUMNS, GROUP = 20_000_000, 16, 500_000

FIT = """
import sys, time
from benchmarks import memory
from kveil import PrivateKMeans
start = time.perf_counter()
PrivateKMeans(8, method=sys.argv[2], bounds=(-6, 6)).fit(sys.argv[1])
print(memory.peak(), time.perf_counter() - start)
"""


def run() -> Iterator[Bar]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _write(path)
        for method in ("lloyd", "tree"):
            done = subprocess.run([sys.executable, "-c", FIT, str(path), method], check=True, capture_output=True, text=True)
            peak, seconds = map(float, done.stdout.split())
            note = f"({path.stat().st_size / 2**30:.2f} GB on disk, {seconds:.0f} s)"
            yield Bar(f"peak memory of a fit on 20 000 000 x 16 Parquet rows, {method}", peak, 1024, " MB", note=note)


def _write(path: Path) -> None:
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{i}", pa.float32()) for i in range(COLUMNS)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(ROWS // GROUP):
            block = rng.standard_normal((GROUP, COLUMNS), dtype=np.float32) + rng.integers(-2, 3, (GROUP, 1)).astype(np.float32)
            writer.write_table(pa.table(list(block.T), schema=schema), row_group_size=GROUP)
