#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexes shards in a store on loopback that serve_s3.py starts, and those of a web server into a folder.

check_index_shards_s3.py <pack_webdataset> <index_shards>

What is in the store is read by boto3.
"""

import functools
import http.server
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading

from drawn_shards import make_split
from stored_data import check, client, inside_store

inside_store("data")
pack, index = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])


def run(*command, expect=0, **variables):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **variables})
    if done.returncode != expect or (expect and len(done.stderr.splitlines()) != 1):
        sys.exit(f"{command} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def totals(said):
    built, there = re.search(r": (\d+) indexes built, (\d+) were there", said).groups()
    return int(built), int(there)


class folder_server(http.server.SimpleHTTPRequestHandler):
    """Answers ranges, which Python's own server does not."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = pathlib.Path(self.translate_path(self.path.split("?")[0]))
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        part = body[int(wanted[1]):int(wanted[2]) + 1] if wanted else body
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {wanted[1]}-{int(wanted[1]) + len(part) - 1}/{len(body)}")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(part)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


with tempfile.TemporaryDirectory() as folder:
    place = pathlib.Path(folder)
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    source = random.Random(3)
    (place / "input").mkdir()
    make_split(place / "input", "train", 2500, source)
    make_split(place / "input", "t10k", 10, source)
    run(pack, "--input", place / "input", "--output", place / "shards")
    shards = sorted(path.name for path in (place / "shards").glob("*train*.tar"))
    check(len(shards) > 1, f"shards: {shards}")
    pattern = re.sub(r"\d+[.]tar$", "{" + ",".join(re.search(r"(\d+)[.]tar$", s)[1] for s in shards) + "}.tar", shards[0])
    put = [part for name in shards for part in (f"train/{name}", place / "shards" / name)]
    client("put", "data", *put)

    said = run(index, "--shards", f"s3://data/train/{pattern}")
    check(totals(said) == (len(shards), 0), "each shard in the store is indexed")
    keys = client("list", "data")
    check(sorted(keys) == sorted(f"train/{s}{e}" for s in shards for e in ("", ".penstock-index")),
          "and the indexes are beside them")
    said = run(index, "--shards", f"s3://data/train/{pattern}", XDG_CACHE_HOME=str(place / "other"))
    check(totals(said) == (0, len(shards)), "another start, on another machine, leaves them alone")

    # A process that was killed left one, and one shard was replaced.
    client("put", "data", f"train/{shards[0]}", place / "shards" / shards[1])
    client("put", "data", f"train/{shards[1]}.penstock-index", place / "shards" / shards[1])
    array = {"SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "1",
             "SLURM_ARRAY_TASK_STEP": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    done = [totals(run(index, "--shards", f"s3://data/train/{pattern}", SLURM_ARRAY_TASK_ID=str(rank), **array))
            for rank in range(2)]
    check(sum(b for b, _ in done) == 2 and sum(t for _, t in done) == len(shards) - 2, f"two processes share: {done}")

    # A web server takes no indexes: they go elsewhere.
    for path in (place / "shards").glob("*.penstock-index"):
        path.unlink()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(folder_server,
                                                                                 directory=place / "shards"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/{pattern}?token=SECRET"
    error = run(index, "--shards", url, expect=1)
    check("--to" in error and "SECRET" not in error, f"refused: {error.strip()}")
    said = run(index, "--shards", url, "--to", place / "indexes")
    check(totals(said) == (len(shards), 0) and "SECRET" not in said, "shards of a web server")
    found = sorted(path.name for path in (place / "indexes").iterdir())
    check(found == [f"{s}.penstock-index" for s in shards], "their indexes are in the folder")
    run(index, "--shards", url, "--to", "s3://data/collected")
    check(sorted(k for k in client("list", "data") if k.startswith("collected/"))
          == [f"collected/{s}.penstock-index" for s in shards], "or in the store")
    server.shutdown()

    error = run(index, "--shards", "s3://data/none.tar", expect=1)
    check("NoSuchKey" in error, f"refused: {error.strip()}")
    error = run(index, "--shards", place / "shards" / pattern, "--to", "x", expect=1)
    check("--to" in error, f"refused: {error.strip()}")
