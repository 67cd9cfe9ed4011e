#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies files of a server on loopback, and checks that killing changes nothing.

check_copy.py <copy>

The server is made here, and answers slowly, so that the copies are killed while they are in progress. Whatever is under
its own name in the folder must be whole, after each kill.
"""

import hashlib
import http.server
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

copy = str(pathlib.Path(sys.argv[1]).resolve())
objects = {}
slowness = 0.0
asked = []


class handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = objects.get(self.path.split("?")[0])
        if body is None:
            self.send_error(404)
            return
        tag = '"' + hashlib.md5(body).hexdigest() + '"'
        if self.headers.get("If-Match") not in (None, tag):
            self.send_error(412)
            return
        part, status = body, 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted and self.command == "GET":
            first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
            part, status = body[first:last + 1], 206
            asked.append((self.path, first))
            time.sleep(slowness)
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(part)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class quiet_server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # clients that were killed
        pass


def run(*command, expect=0):
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run([copy, *map(str, command)], capture_output=True, text=True, env=clean)
    if done.returncode != expect:
        sys.exit(f"{command} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    if expect != 0 and len(done.stderr.splitlines()) != 1:
        sys.exit(f"{command} did not say in one line what is wrong:\n{done.stderr}")
    return done.stdout + done.stderr


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def files_of(folder):
    found = folder.iterdir() if folder.exists() else ()
    return {p.name: p.read_bytes() for p in found if p.is_file() and not p.name.startswith(".")}


server = quiet_server(("127.0.0.1", 0), handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_address[1]}"
draw = random.Random(1)
for number, size in enumerate((300_000, 100_000, 70_001, 0, 10_000)):
    objects[f"/data/a-{number}.bin"] = draw.randbytes(size)
wanted = {pathlib.Path(name).name: body for name, body in objects.items()}

with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    url = base + "/data/a-{0..4}.bin?signature=SECRET"
    given = ["--from", url, "--part-size", 10_000, "--parallel", 3]

    said = run(*given, "--to", folder / "whole")
    check(files_of(folder / "whole") == wanted, "all objects are copied")
    check("5 of 5 objects" in said and "SECRET" not in said, "and the last line says how many")
    asked.clear()
    said = run(*given, "--to", folder / "whole")
    check(not asked and "0.0 MB copied" in said, "another start copies nothing")
    check(sorted(p.name for p in (folder / "whole").iterdir() if p.name.startswith(".")) == [".penstock-copy"],
          "nothing is left but the note of what was finished")
    for name, body in wanted.items():
        (folder / name).write_bytes(body)
    run("--from", folder / "a-*.bin", "--to", folder / "by-path")
    check(files_of(folder / "by-path") == wanted, "files are copied, too")

    # Killed at any moment, it goes on, and what is under its own name is whole.
    slowness = 0.02
    for round in range(3):
        out = folder / f"killed-{round}"
        kills, resumed, pause = 0, 0, 0.08
        while True:
            process = subprocess.Popen([copy, *map(str, given), "--to", out], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
            time.sleep(pause * draw.uniform(0.5, 1.5))
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            said = process.communicate()[0]
            for name, body in files_of(out).items():
                if body != wanted[name]:
                    sys.exit(f"failed: {name} was half written after kill {kills}")
            resumed += "continuing what was begun" in said
            if process.returncode != -signal.SIGKILL:
                break
            pause *= 1.3
        check(process.returncode == 0, f"it ends, after {kills} kills\n{said}")
        check(kills > 0 and files_of(out) == wanted, "with the same bytes")
        check(not [p for p in out.iterdir() if p.name.startswith(".a-")], "and with no other file")
    slowness = 0

    # What was begun is used, unless it was damaged or is of another object.
    def begun(name, size=30_000):
        """A folder in which an object's first parts are there."""
        global slowness
        out, slowness = folder / name, 0.1
        process = subprocess.Popen([copy, "--from", base + "/data/a-0.bin", "--to", out, "--part-size", "10000",
                                    "--ahead", "1"], stdout=subprocess.DEVNULL)
        while not any(p.stat().st_size >= size for p in out.glob(".a-0.bin.*.partial")):
            time.sleep(0.005)
        process.kill()
        process.wait()
        slowness = 0
        return out, next(out.glob(".a-0.bin.*.partial"))

    one = ["--from", base + "/data/a-0.bin", "--part-size", 10_000]
    out, partial = begun("resumed")
    asked.clear()
    check("continuing what was begun" in run(*one, "--to", out), "it goes on after the last whole part")
    check(min(first for _, first in asked) >= 20_000 and files_of(out)["a-0.bin"] == wanted["a-0.bin"], "and only then")
    out, partial = begun("damaged")
    with open(partial, "r+b") as file:
        file.seek(10_007)
        file.write(b"damage")
    asked.clear()
    run(*one, "--to", out)
    check(min(first for _, first in asked) == 10_000 and files_of(out)["a-0.bin"] == wanted["a-0.bin"],
          "a part that was damaged is copied again")
    out, partial = begun("replaced")
    objects["/data/a-0.bin"] = draw.randbytes(50_000)
    run(*one, "--to", out)
    check(files_of(out)["a-0.bin"] == objects["/data/a-0.bin"] and not partial.exists(),
          "an object that was replaced is copied anew")
    objects["/data/a-0.bin"] = draw.randbytes(50_000)
    run(*one, "--to", out)
    check(files_of(out)["a-0.bin"] == objects["/data/a-0.bin"], "also if it was finished")

    # One clear sentence for each mistake.
    def refused(what, *words):
        error = run(*what, expect=1)
        check(all(word in error for word in words) and "SECRET" not in error, f"refused: {error.strip()}")

    refused(["--from", base + "/data/none?SECRET", "--to", folder / "x"], "(404)", "/data/none?...")
    refused(["--from", "gopher://h/x", "--to", folder / "x"], "gopher")
    refused(["--from", folder / "none-*", "--to", folder / "x"], "none-")
    refused(["--from", base + "/data/", "--to", folder / "x"], "needs a name")
    refused(["--from", folder / "{a-1.bin,by-path/a-1.bin}", "--to", folder / "x"], "two objects would be a-1.bin")
    refused([*given, "--to", folder / "a-1.bin"], "a-1.bin")
    refused([*given, "--to", folder], "was not copied by this program")
    check(files_of(folder)["a-1.bin"] == wanted["a-1.bin"], "and what was there stays")
    refused([*given, "--to", folder / "x", "--parallel", 0], "at least 1")
    refused([*given, "--to", folder / "x", "--part-size", "many"], "'many' is none")
    refused(["--to", folder / "x"], "--from is missing")
    slowness = 0.2
    first = subprocess.Popen([copy, *map(str, one), "--to", folder / "busy"], stdout=subprocess.DEVNULL)
    while not list((folder / "busy").glob(".*.partial")):
        time.sleep(0.005)
    refused([*one, "--to", folder / "busy"], "another process is copying")
    first.kill()
    first.wait()
server.shutdown()
