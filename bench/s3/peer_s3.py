#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peer_s3.py boto3|obstore|s3torchconnector ENDPOINT BUCKET OBJECTS BYTES: reads OBJECTS objects of BYTES bytes each,
shard-0000.tar and so on, four at a time, whole, and throws them away. The best of three rounds counts, after one that
connects. Prints processor seconds per GB (10^9 bytes), GB per second, and the version. Keys come from the environment.

Each is set up as its documentation advises for reading whole objects. boto3: one client, four threads, get_object.
obstore: one store, four threads, get(...).bytes(). s3torchconnector: its iterable dataset, whose client (the AWS
CRT) fetches parts of 8 MB in parallel; the sequential reader."""

import concurrent.futures
import importlib.metadata
import resource
import sys
import time

PEER, ENDPOINT, BUCKET = sys.argv[1:4]
OBJECTS, BYTES = int(sys.argv[4]), int(sys.argv[5])
AT_ONCE = 4
names = [f"shard-{number:04}.tar" for number in range(OBJECTS)]


def in_threads(read_one):
    """Reads all objects with four threads; `read_one(name)` gives the number of bytes."""

    def read_all():
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            return sum(threads.map(read_one, names))

    return read_all


def boto3_reader():
    import boto3
    import botocore.config

    client = boto3.client("s3", endpoint_url=ENDPOINT, region_name="us-east-1", config=botocore.config.Config(
        max_pool_connections=AT_ONCE, s3={"addressing_style": "path"}))
    return in_threads(lambda name: len(client.get_object(Bucket=BUCKET, Key=name)["Body"].read()))


def obstore_reader():
    import obstore
    from obstore.store import S3Store

    store = S3Store(BUCKET, endpoint=ENDPOINT, region="us-east-1", virtual_hosted_style_request=False,
                    client_options={"allow_http": True})
    return in_threads(lambda name: len(obstore.get(store, name).bytes()))


def s3torchconnector_reader():
    from s3torchconnector import S3ClientConfig, S3IterableDataset

    config = S3ClientConfig(force_path_style=True, part_size=8 << 20)
    urls = [f"s3://{BUCKET}/{name}" for name in names]

    def read_all():
        dataset = S3IterableDataset.from_objects(urls, region="us-east-1", endpoint=ENDPOINT, s3client_config=config)
        return sum(len(one.read()) for one in dataset)

    return read_all


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    read_all = {"boto3": boto3_reader, "obstore": obstore_reader, "s3torchconnector": s3torchconnector_reader}[PEER]()
    read_all()
    cost, rate = float("inf"), 0.0
    for _ in range(3):
        used, begin = processor_seconds(), time.perf_counter()
        seen = read_all()
        seconds, used = time.perf_counter() - begin, processor_seconds() - used
        if seen != OBJECTS * BYTES:
            sys.exit(f"{seen} bytes instead of {OBJECTS * BYTES}")
        cost, rate = min(cost, used / seen * 1e9), max(rate, seen / seconds / 1e9)
    print(f"{cost:.4f} {rate:.4f} {PEER} {importlib.metadata.version(PEER)}")


if __name__ == "__main__":
    main()
