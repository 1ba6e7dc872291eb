"""Two hosts on one machine: namespaces joined by a wire that delays packets, and loses some.

python wire.py DELAY LOSS command words…

The kernel's own tool for that, netem, is in few kernels. Here packets of a TUN device on each side
go through this process. It takes root; the command runs on the first host, 10.77.0.1. As ``ssh``,
this file runs what it is given on the host that is named: ``wire.py -x HOST command words…``.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

HOSTS = ("10.77.0.1", "10.77.0.2")
_SET, _TUN = 0x400454CA, 0x1001  # TUNSETIFF; IFF_TUN | IFF_NO_PI


def namespace(host: str) -> str:
    return f"phlox-{host.rpartition('.')[2]}"


def side(host: str, other: str) -> int:
    """Make a host, and return its end of the wire."""
    name, device = namespace(host), f"wire{host[-1]}"
    subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["ip", "netns", "add", name], check=True)
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, _SET, struct.pack("16sH22s", device.encode(), _TUN, b""))
    subprocess.run(["ip", "link", "set", device, "netns", name], check=True)
    for words in (
        f"addr add {host} peer {other} dev {device}",
        f"link set {device} up",
        "link set lo up",
    ):
        subprocess.run(["ip", "-n", name, *words.split()], check=True)
    return end


def carry(ends: list[int], job: subprocess.Popen[bytes], delay: float, loss: float) -> None:
    """Carry packets as long as the job runs."""
    waiting: list[tuple[float, int, int, bytes]] = []
    count = lost = 0
    chance = random.Random(0)
    while job.poll() is None:
        while waiting and waiting[0][0] <= time.monotonic():
            *_, end, data = heapq.heappop(waiting)
            os.write(end, data)
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.05
        for end in select.select(ends, [], [], pause)[0]:
            data, count = os.read(end, 1 << 16), count + 1
            if chance.random() < loss:
                lost += 1
            else:
                item = time.monotonic() + delay, count, ends[1 - ends.index(end)], data
                heapq.heappush(waiting, item)
    print(f"{count} packets, {lost} lost", file=sys.stderr)


def main(delay: str, loss: str, *command: str) -> int:
    ends = [side(host, other) for host, other in (HOSTS, HOSTS[::-1])]
    job = subprocess.Popen(["ip", "netns", "exec", namespace(HOSTS[0]), *command])
    try:
        carry(ends, job, float(delay), float(loss))
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", namespace(host)], check=True)
    return job.wait()


if __name__ == "__main__":
    if sys.argv[1] == "-x":
        host, *words = sys.argv[2:]
        text = " ".join(words)
        os.execvp("ip", ["ip", "netns", "exec", namespace(host), "sh", "-c", text])
    sys.exit(main(*sys.argv[1:]))
