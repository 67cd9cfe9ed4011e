#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peers.py FOLDER [--quick] [--works 1k,jpeg] [--peers torch,dali] [--rounds N] [--photos FOLDER]

Runs Penstock and every peer of an environment below FOLDER on the same works, in turn, several rounds, and writes
FOLDER/peers.json after each measurement, and after each work FOLDER/peers.md and a bar chart. First it finds each peer's
best number of workers for samples of a size; the measurement of the best one is the peer's first round of that work.
bench/peers/run.sh makes the environments and calls this."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import table

HERE = pathlib.Path(__file__).resolve().parent
RAW = ("1k", "10k", "110k", "1k_shuffled", "10k_shuffled", "110k_shuffled")
ALL = RAW + ("jpeg",)
# script and environment of a peer, its works, and the numbers of workers that are tried
PEERS = {
    "penstock": ("main", ALL + ("resume",), (0,)),
    "penstock_python": ("main", ("1k_shuffled",), (1, 2)),
    "torch": ("main", ALL + ("resume",), (0, 1, 2)),
    "torch_io": ("main", ("jpeg",), (0, 1, 2)),
    "webdataset": ("main", ALL, (0, 1, 2)),
    "streaming": ("streaming", ALL + ("resume",), (0, 1, 2)),
    "litdata": ("main", ALL, (0, 1, 2)),
    "dali": ("main", ALL, (1, 2)),
    "ffcv": ("main", ALL, (1, 2)),
    "spdl": ("main", ALL, (1, 2)),
    "tf": ("main", ALL, (1, 2)),
    "grain": ("main", ALL, (0, 1, 2)),
    "mlx": ("main", ALL, (1, 2)),
    "hf": ("main", ALL, (0, 1, 2)),
    "lance": ("main", ALL, (0, 1, 2)),
    "datago": ("main", ("jpeg",), (1, 2)),
    "libtorch": ("main", RAW, (0, 1, 2)),
    "dataloader_rs": ("py313", RAW, (0, 1, 2)),
    # No loader: what copying alone takes.
    "bare": ("main", ("1k", "10k", "110k"), (1, 2)),
}


def one(given, peer, work, workers):
    """One measurement; a text where there is none."""
    environment = PEERS[peer][0]
    python = given.folder / environment / "bin" / "python"
    if not python.exists():
        return f"there is no environment {environment}"
    command = [str(python), str(HERE / f"peer_{peer}.py"), work, str(given.folder / "data" / peer), "--photos",
               str(given.photos), "--workers", str(workers)] + (["--quick"] if given.quick else [])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=given.limit, check=False,
                              env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
        return json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return f"took longer than {given.limit} s"
    except (IndexError, ValueError):
        return (done.stderr.strip().splitlines() or ["ended without a word"])[-1]


def cost(result, work):
    """What the best number of workers makes small."""
    return result["first_batch_seconds"] if work == "resume" else result["seconds"] / result["samples"]


def best_of_all(given, peer, work):
    """The measurement with the best number of workers, or why there is none."""
    found, why = [], ""
    for workers in PEERS[peer][2]:
        result = one(given, peer, work, workers)
        if isinstance(result, str):
            why = result
        else:
            found.append(result)
    return min(found, key=lambda result: cost(result, work)) if found else why


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="small data and one round: the figures are noise")
    parser.add_argument("--works", type=lambda text: text.split(","), default=list(ALL + ("resume",)))
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=900, help="seconds after which a measurement is given up")
    parser.add_argument("--photos", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("PENSTOCK_TEST_DATA", "../shared/data")) / "photos")
    given = parser.parse_args()
    given.photos = given.photos.resolve()
    rounds = 1 if given.quick else given.rounds
    results, missing, workers, where = {}, {}, {}, table.machine()
    for work in given.works:
        if work == "jpeg" and not given.photos.is_dir():
            print(f"there is no folder {given.photos}: no photos", file=sys.stderr)
            continue
        results[work], missing[work] = {}, {}
        for number in range(rounds):
            for peer in (peer for peer in given.peers if work in PEERS[peer][1] and peer not in missing[work]):
                kind = work.removesuffix("_shuffled"), peer
                first = kind not in workers
                result = best_of_all(given, peer, work) if first else one(given, peer, work, workers[kind])
                if not isinstance(result, str):
                    workers[kind] = result["workers"]
                    results[work].setdefault(peer, []).append(result | {"round": number})
                elif number == 0:
                    missing[work][peer] = result
                (given.folder / "peers.json").write_text(
                    json.dumps({"machine": where, "results": results, "missing": missing}))
                if first:
                    print(f"{work} {peer}: {workers.get(kind, result)}", file=sys.stderr, flush=True)
        table.write(given.folder, results, missing, where)
    print((given.folder / "peers.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
