#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Penstock from Python: the module of examples/python, whose NumPy arrays of float32 are looked at as bytes."""

import io
import os
import pathlib
import sys
import tarfile

import common
import numpy

sys.path.insert(0, os.environ["PENSTOCK_BENCH_MODULE"])
SHARDS = 4


def shards(work):
    """The names of shards with an npy array and a class for each sample."""

    def write(path):
        pathlib.Path(path).mkdir()
        for shard in range(SHARDS):
            with tarfile.open(f"{path}/{shard:04}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                for place in range(shard * work.samples // SHARDS, (shard + 1) * work.samples // SHARDS):
                    array = io.BytesIO()
                    numpy.save(array, work.row(place).view(numpy.float32))
                    for name, content in ((f"{place:09}.npy", array.getvalue()), (f"{place:09}.cls", b"1")):
                        info = tarfile.TarInfo(name)
                        info.size = len(content)
                        tar.addfile(info, io.BytesIO(content))

    return work.once("npy-shards", write) + f"/{{0000..{SHARDS - 1:04}}}.tar"


def raw(work):
    names = shards(work)
    os.environ["XDG_CACHE_HOME"] = str(work.folder.resolve())
    import penstock_loader

    def open_loader():
        loader = penstock_loader.Loader("webdataset", names, batch=work.batch, seed=common.SEED,
                                        workers=max(work.workers, 1))
        return lambda: (numpy.from_dlpack(batch["x"]).view(numpy.uint8) for batch in loader)

    return open_loader


SETTINGS = {"raw": "the module of examples/python: 4 tar shards, an npy array and a class per sample, full shuffle"}

if __name__ == "__main__":
    common.main(["numpy", "nanobind"], SETTINGS, raw)
