#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the programs of docs/tasks/ on small data that it makes, as the pages say.

check_tasks.py [--arrow PYTHON] NAME=PROGRAM...

PYTHON has pyarrow, which writes the Parquet files. The program of docs/tasks/object_store.md reads from a store
that serve_s3.py starts.
"""

import array
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from drawn_shards import picture, png, write_shard

HERE = pathlib.Path(__file__).resolve().parent
arguments = sys.argv[1:]
arrow = None
if arguments[:1] == ["--arrow"]:
    arrow, arguments = arguments[1], arguments[2:]
programs = dict(one.split("=", 1) for one in arguments)


def run(*command, **environment):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                          env={**os.environ, **{k: str(v) for k, v in environment.items()}})
    if done.returncode != 0:
        sys.exit(f"{command} gave {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(holds, what, output=""):
    if not holds:
        sys.exit(f"failed: {what}\n{output}")
    print(f"ok: {what}")


def image(source, label=0):
    return png(picture(source.randrange(70, 90), source.randrange(70, 90), label, source))


def images_from_folders(program, place, source):
    for label, name in enumerate(("cat", "dog")):
        (place / "train" / name).mkdir(parents=True)
        for i in range(5):
            (place / "train" / name / f"{i}.png").write_bytes(image(source, label))
    said = run(program, place / "train")
    check(said == "class cat\nclass dog\nepoch 0: 8 images\nepoch 1: 8 images\n", "images in folders", said)


def webdataset(program, place, source):
    for shard in range(2):
        write_shard(place / f"train-{shard:04}.tar",
                    [(f"{shard}{i}", {"png": image(source), "txt": b"x" * (i + 1), "json": b"{}"}) for i in range(5)])
    said = run(program, place / "train-{0000..0001}.tar")
    check(said == "10 images, captions of 30 characters\n", "WebDataset shards", said)


def pretraining(program, place, source):
    tokens = array.array("H", (source.randrange(50_000) for _ in range(64 * 100 + 1)))
    if sys.byteorder == "big":
        tokens.byteswap()
    (place / "train.bin").write_bytes(tokens.tobytes())
    first = run(program, place / "train.bin", place / "state.json")
    second = run(program, place / "train.bin", place / "state.json")
    check(first.startswith("stopped after 5 steps, sum "), "pretraining stops", first)
    check(second.startswith("finished after 7 more steps, sum "), "pretraining resumes", second)
    sums = [int(said.rsplit(" ", 1)[1]) for said in (first, second)]
    starts = sorted(tokens[64 * i] for i in range(100))
    check(sum(starts[:96]) <= sum(sums) <= sum(starts[4:]), "each window is read once", f"{sums}")


def masking(program, place, source):
    tokens = array.array("H", (source.randrange(200, 30_000) for _ in range(128 * 100)))
    if sys.byteorder == "big":
        tokens.byteswap()
    (place / "train.bin").write_bytes(tokens.tobytes())
    said = run(program, place / "train.bin")
    masked, spans, filled = said.splitlines()
    chosen, seen = int(masked.split()[1]), int(masked.split()[3])
    check(seen == 96 * 128 and 0.13 * seen < chosen < 0.17 * seen, "15 % of the tokens are masked", said)
    check(spans == "spans: inputs (8, 64), targets (8, 14)", "lengths of T5", said)
    check(25 < int(filled.split()[1]) < 70, "half of the windows are rearranged, unless their suffix is short", said)


def fine_tuning(program, place, _):
    lines = [{"prompt": "2+2=", "completion": "4"}, {"prompt": "Hello", "completion": ", world", "id": 7}]
    (place / "train.jsonl").write_text("".join(json.dumps(one) + "\n\n" for one in lines), encoding="utf-8")
    said = run(program, place / "train.jsonl")
    check(said == "2 samples, 17 tokens of 24 with padding\n", "fine-tuning on JSON lines", said)


def npy(shape, kind, values):
    order = "<" if sys.byteorder == "little" else ">"
    head = f"{{'descr': '{order}{kind[0]}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + array.array(kind[1], values).tobytes()


def time_series(program, place, _):
    lengths = (20, 5, 31)
    rows = sum(lengths)
    episodes = [e for e, length in enumerate(lengths) for _ in range(length)]
    (place / "episode.npy").write_bytes(npy((rows,), ("i8", "q"), episodes))
    (place / "state.npy").write_bytes(npy((rows, 2), ("f4", "f"), range(2 * rows)))
    (place / "action.npy").write_bytes(npy((rows, 3), ("f4", "f"), range(3 * rows)))
    said = run(program, place)
    whole = sum(len(range(0, length - 11, 4)) for length in lengths)
    padded = sum(max(0, step + 16 - length) for length in lengths for step in range(length))
    check(said == f"{whole} windows of 12 rows\n{rows} steps, {padded} actions behind the end of an episode\n",
          "time series", said)


def parquet_tables(program, place, _):
    (place / "table").mkdir()
    write = ("import sys, pyarrow as pa, pyarrow.parquet as pq\n"
             "for f in range(2):\n"
             "  pq.write_table(pa.table({'price': [float(i) for i in range(100)], 'label': [i % 10 for i in range(100)],\n"
             "                           'name': ['x'] * 100}), f'{sys.argv[1]}/part-{f}.parquet', row_group_size=50)\n")
    run(arrow, "-c", write, place / "table")
    said = run(program, place / "table")
    total = 2 * sum(i for i in range(100) if i % 10 < 5)
    check(said == f"100 rows, the sum of prices is {total}.0\n", "tables in Parquet", said)


def object_store(program, place, _):
    weed = os.environ.get("PENSTOCK_TEST_WEED") or "weed"
    if subprocess.run(["sh", "-c", f"'{weed}' version"], capture_output=True).returncode != 0:
        check(os.environ.get("CI") != "true", "there is a SeaweedFS, or this is not CI")
        print("not run: shards in S3; there is no SeaweedFS")
        return
    stand_in = place / "put_and_read.py"
    stand_in.write_text(
        "import os, subprocess, sys, urllib.request\n"
        "import boto3\n"
        "s3 = boto3.client('s3')\n"
        "for path in sys.argv[2:]: s3.upload_file(path, 'data', os.path.basename(path))\n"
        "sys.exit(subprocess.run([sys.argv[1], 's3://data/train-']).returncode)\n", encoding="utf-8")
    paths = []
    for shard in range(3):
        paths.append(place / f"train-{shard}.tar")
        write_shard(paths[-1], [(f"{shard}{i}", {"cls": b"%d" % i}) for i in range(10)])
    python = next((one for one in (sys.executable, "/usr/bin/python3")
                   if subprocess.run([one, "-c", "import boto3"], capture_output=True).returncode == 0), None)
    if python is None:
        check(os.environ.get("CI") != "true", "there is boto3, or this is not CI")
        print("not run: shards in S3; there is no boto3")
        return
    said = run(sys.executable, HERE / "serve_s3.py", "--weed", weed, "--bucket", "data", "--", python, stand_in,
               program, *paths)
    check("3 shards, 30 samples\n" in said, "shards in S3", said)


def several_processes(program, place, _):
    (place / "numbers.txt").write_text("".join(f"{i}\n" for i in range(30)))
    alone = run(program, place / "numbers.txt")
    steps = [sorted(map(int, line.split(":")[1].split())) for line in alone.splitlines()]
    check(len(steps) == 3 and sorted(sum(steps, [])) == list(range(30)), "one process has all samples", alone)
    both = [run(program, place / "numbers.txt", RANK=rank, WORLD_SIZE=2, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=2,
                GROUP_RANK=0, GROUP_WORLD_SIZE=1).splitlines() for rank in range(2)]
    check(len(both[0]) == len(both[1]) == 3, "two processes have as many batches", str(both))
    together = [sorted(int(n) for line in pair for n in line.split(":")[1].split()) for pair in zip(*both)]
    check(together == steps, "two processes share each global step", str(both))


for name, program in programs.items():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        globals()[name](str(pathlib.Path(program).resolve()), pathlib.Path(folder), random.Random(5))
