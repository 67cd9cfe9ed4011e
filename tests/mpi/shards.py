# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small shards of made-up images, as pack_webdataset writes them."""

import io
import random
import struct
import tarfile


def npy(image):
    """A NumPy file, version 1.0, of 28 x 28 bytes."""
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }"
    head += " " * (64 - (10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + image


def make(folder, counts, seed=1):
    """A shard for each count of samples; the keys of all samples. Ten classes of noise with a bright square."""
    source, keys = random.Random(seed), []
    for number, count in enumerate(counts):
        with tarfile.open(folder / f"train-{number:06d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for _ in range(count):
                label, key = source.randrange(10), f"{len(keys):06d}"
                image = bytearray(source.randrange(100) for _ in range(784))
                for row in range(4):
                    at = (label // 5 * 12 + row + 4) * 28 + label % 5 * 5 + 1
                    image[at:at + 4] = b"\xf0" * 4
                keys.append(key)
                for suffix, content in (("npy", npy(bytes(image))), ("cls", str(label).encode())):
                    member = tarfile.TarInfo(f"{key}.{suffix}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return keys
