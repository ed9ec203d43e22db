"""Senders for the collector's benchmarks: raw HTTP on a few sockets, in a process of their own."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import time

LAYOUT = struct.Struct("<BBH16sH")


def body_of(n: int, values: int) -> bytes:
    """n reports of nobody."""
    ids = os.urandom(16 * n)
    return b"".join(LAYOUT.pack(1, 0, 0, ids[16 * i : 16 * i + 16], ids[16 * i] % values) for i in range(n))


async def sender(port: int, path: str, per_body: int, n_bodies: int, values: int, told: dict[str, list[float]]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    size = 22 * per_body
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/vnd.kveil.collect;message=upload-req\r\n"
        f"content-length: {size}\r\n\r\n"
    ).encode()
    for _ in range(n_bodies):
        body = body_of(per_body, values)
        began = time.perf_counter()
        writer.write(head + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if length:
            await reader.readexactly(length)
        is_stored = answer.startswith(b"HTTP/1.1 200") and not length
        told["stored" if is_stored else "refused"].append(time.perf_counter() - began)
    writer.close()


async def load(port: int, path: str, per_body: int, connections: int, bodies: int, values: int) -> dict[str, float]:
    told: dict[str, list[float]] = {"stored": [], "refused": []}
    each = max(1, bodies // connections)
    began = time.perf_counter()
    await asyncio.gather(*(sender(port, path, per_body, each, values, told) for _ in range(connections)))
    seconds = time.perf_counter() - began
    times = sorted(told["stored"]) or [float("nan")]
    return {
        "stored": per_body * len(told["stored"]), "refused": per_body * len(told["refused"]), "seconds": seconds,
        "p50": 1000 * times[len(times) // 2], "p99": 1000 * times[min(len(times) - 1, int(0.99 * len(times)))],
    }  # fmt: skip


if __name__ == "__main__":
    import uvloop

    asked = json.loads(sys.argv[1])
    print(json.dumps(uvloop.run(load(**asked))))
