# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts objects into a bucket of an S3 server on loopback, with boto3, or reads some.

s3_client.py URL put BUCKET KEY FILE [KEY FILE]...   makes the bucket if it is not there
s3_client.py URL get BUCKET KEY FILE [KEY FILE]...
s3_client.py URL list BUCKET                         prints the keys
s3_client.py URL digests BUCKET                      prints the SHA-256, the time of change and the key of each object
s3_client.py URL uploads BUCKET                      prints the keys of unfinished uploads
s3_client.py URL serve ANSWER                        puts what lines of the input say, BUCKET KEY FILE [KEY FILE]...
                                                     with tabs between; after each, the file ANSWER appears
Key and secret are in the environment.
"""

import hashlib
import os
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError


def put(client, bucket, rest):
    try:
        client.create_bucket(Bucket=bucket)
    except ClientError as e:
        if e.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            raise
    for key, file in zip(rest[::2], rest[1::2]):
        with open(file, "rb") as body:
            client.put_object(Bucket=bucket, Key=key, Body=body)


def serve(client, answer):
    for line in sys.stdin:
        bucket, *rest = line.rstrip("\n").split("\t")
        text = "put"
        try:
            put(client, bucket, rest)
        except Exception as e:  # pylint: disable=broad-except
            text = repr(e)
        with open(answer + ".fresh", "w", encoding="utf-8") as out:
            out.write(text)
        os.rename(answer + ".fresh", answer)


def main():
    url, action, bucket, *rest = sys.argv[1:]
    # Newer versions add checksums that other servers do not know.
    wanted = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
    options = {"s3": {"addressing_style": "path"}, "proxies": {}, "retries": {"max_attempts": 5}}
    try:
        config = Config(**options, **wanted)
    except TypeError:
        config = Config(**options)
    client = boto3.client("s3", endpoint_url=url, config=config)
    if action == "put":
        put(client, bucket, rest)
    elif action == "serve":
        serve(client, bucket)
    elif action == "get":
        for key, file in zip(rest[::2], rest[1::2]):
            with open(file, "wb") as out:
                out.write(client.get_object(Bucket=bucket, Key=key)["Body"].read())
    elif action == "list":
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for one in page.get("Contents", ()):
                print(one["Key"])
    elif action == "digests":
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for one in page.get("Contents", ()):
                body = client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
                print(hashlib.sha256(body).hexdigest(), one["LastModified"].timestamp(), one["Key"])
    elif action == "uploads":
        for one in client.list_multipart_uploads(Bucket=bucket).get("Uploads", ()):
            print(one["Key"])
    else:
        sys.exit(f"no action {action}")


if __name__ == "__main__":
    main()
