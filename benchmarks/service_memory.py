"""A service that makes a million decisions, none of them rewarded: its memory must not grow with them.

python benchmarks/service_memory.py --decisions 1e6

Prints resident memory on the way. With --wait every decision gets its default later, which is written meanwhile."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path


def resident_mb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024.0


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=float, default=1e6)
    parser.add_argument("--wait", help='such as "10 s"')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "driftbandit", "serve", f"{folder}/journal.db", "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        url = re.search(r"at (http://\S+)/ ", process.stdout.readline())[1]
        new = {"name": "b", "policy": "ds-ts", "arms": ["x", "y", "z"], "half_life": "1 h", "wait": args.wait}
        post(f"{url}/v1/bandits", {name: value for name, value in new.items() if value is not None})
        calls = int(args.decisions / 1000)
        seen = {}
        began = time.monotonic()
        for call in range(calls):
            post(f"{url}/v1/bandits/b/decisions/batch", {"count": 1000})
            if call in (calls // 20, calls // 4, calls // 2, calls - 1):
                seen[(call + 1) * 1000] = resident_mb(process.pid)
                print(f"{(call + 1) * 1000:>9} decisions: {seen[(call + 1) * 1000]:.1f} MB", flush=True)
        print(f"{time.monotonic() - began:.0f} s; add_arm_to by {max(seen.values()) - min(seen.values()):.1f} MB")
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    main()
