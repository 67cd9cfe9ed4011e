#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_python.py: imports the package penstock_loader, and compares what it gives with what is in the files that
this script writes; as NumPy's arrays, and as PyTorch's if that is here."""

import gc
import io
import os
import pathlib
import struct
import tarfile
import tempfile
import threading
import zlib

import numpy as np

from penstock_loader import Loader, first

SHARDS, EACH, LENGTH = 3, 100, 256


def member(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def write_shards(folder):
    for shard in range(SHARDS):
        with tarfile.open(folder / f"numbers-{shard:04}.tar", "w") as tar:
            for i in range(EACH):
                number = shard * EACH + i
                array = io.BytesIO()
                np.save(array, np.arange(LENGTH, dtype=np.float32) + number)
                member(tar, f"{number:06}.npy", array.getvalue())
                member(tar, f"{number:06}.cls", str(number % 10).encode())
    return str(folder / f"numbers-{{0000..{SHARDS - 1:04}}}.tar")


def arrays(batch):
    return np.from_dlpack(batch["x"]), np.from_dlpack(batch["y"])


def check_epoch(loader):
    order = []
    for batch in loader:
        x, y = arrays(batch)
        assert x.dtype == np.float32 and y.dtype == np.int64 and x.shape[1:] == (LENGTH,)
        assert (x == x[:, :1] + np.arange(LENGTH, dtype=np.float32)).all()
        assert (y == x[:, 0].astype(np.int64) % 10).all()
        order += x[:, 0].astype(int).tolist()
    return order


def check_order(shards):
    loader = Loader("webdataset", shards, batch=32, seed=7)
    assert len(loader) == 10
    one, two = check_epoch(loader), check_epoch(loader)
    assert loader.epoch == 2
    assert len(one) == len(two) == SHARDS * EACH and one != two
    assert len(set(one)) == len(one)
    alone = Loader("webdataset", shards, batch=32, seed=7, workers=0)
    alone.set_epoch(1)
    assert check_epoch(alone) == two
    ranks = [Loader("webdataset", shards, batch=16, seed=7, rank=rank, world=2) for rank in range(2)]
    assert sorted(sum((check_epoch(rank) for rank in ranks), [])) == sorted(one)
    return two


def check_resume(shards, two):
    loader = Loader("webdataset", shards, batch=32, seed=7)
    loader.set_epoch(1)
    seen = []
    for step, batch in enumerate(loader):
        seen += arrays(batch)[0][:, 0].astype(int).tolist()
        if step == 3:
            break
    state = loader.state_dict()
    assert state["epoch"] == 1
    other = Loader("webdataset", shards, batch=32, seed=7, workers=1)
    other.load_state_dict(state)
    assert seen + check_epoch(other) == two and other.epoch == 2
    try:
        Loader("webdataset", shards, batch=32, seed=8).load_state_dict(state)
        raise AssertionError("a state of another seed was taken")
    except RuntimeError as e:
        assert "penstock" in str(e)


def check_lifetime(shards):
    loader = Loader("webdataset", shards, batch=32, seed=7)
    kept = [arrays(batch)[0] for batch, _ in zip(loader, range(2))]
    copies = [x.copy() for x in kept]
    if kept[0].flags.writeable:  # the memory is the consumer's; NumPy before 2 does not write to it
        kept[0][0, 0] = copies[0][0, 0] = -1
    del loader
    gc.collect()
    assert all((a == b).all() for a, b in zip(kept, copies))
    threading.Thread(target=kept.clear).start()
    loader = Loader("webdataset", shards, batch=8, seed=7)
    try:
        hoard = [arrays(batch) for batch in loader]
        raise AssertionError(f"{len(hoard)} batches were given at once")
    except RuntimeError as e:
        assert "you hold" in str(e), e


def check_capsules(shards):
    batch = next(iter(Loader("webdataset", shards, batch=4)))
    x = batch["x"]
    assert x.__dlpack_device__() == (1, 0)
    x.__dlpack__()  # nobody takes it
    x.__dlpack__(max_version=(1, 0))
    a, b = np.from_dlpack(x), np.from_dlpack(x)  # a consumer each
    assert a.ctypes.data == b.ctypes.data
    for wrong in ({"copy": True}, {"stream": 1}, {"dl_device": (2, 0)}):
        try:
            x.__dlpack__(**wrong)
            raise AssertionError(f"{wrong} was taken")
        except BufferError:
            pass


def png(width, height):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"\0" * (width + 1) * height)) + chunk(b"IEND", b""))


def check_other_kinds(folder):
    for name in ("cat", "dog"):
        (folder / "images" / name).mkdir(parents=True)
        for i in range(4):
            (folder / "images" / name / f"{i}.png").write_bytes(png(40, 30 + i))
    for batch in Loader("images", folder / "images", batch=4, size=32):
        x, y = arrays(batch)
        assert x.shape == (4, 3, 32, 32) and x.dtype == np.float32 and set(y.tolist()) <= {0, 1}
    np.arange(1000, dtype="<u2").tofile(folder / "train.bin")
    rows = [np.from_dlpack(batch["tokens"]) for batch in Loader("tokens", folder / "train.bin", batch=3, window=16)]
    assert len(rows) == 20 and all(row.shape == (3, 17) and (np.diff(row.astype(int)) == 1).all() for row in rows)
    try:
        Loader("parquet", folder / "none.parquet")
        raise AssertionError("a file that is not there was read")
    except RuntimeError as e:  # of Penstock, or that the package was built without Arrow
        assert "none.parquet" in str(e) or "PENSTOCK_ENABLE_ARROW" in str(e), e
    try:
        Loader("csv", "x")
        raise AssertionError("a loader that is not there was made")
    except ValueError as e:
        assert "webdataset, images, tokens or parquet" in str(e)


def check_torch(shards):
    try:
        import torch
    except ImportError:
        print("PyTorch is not here; its tensors were not compared")
        return
    from torch.utils.data import DataLoader

    from penstock_loader.torch import PenstockDataset

    for batch in Loader("webdataset", shards, batch=32):
        x, y = torch.from_dlpack(batch["x"]), torch.from_dlpack(batch["y"])
        assert x.data_ptr() == arrays(batch)[0].ctypes.data
        assert bool((x[:, 1] == y % 10 + x[:, 0] - y % 10 + 1).all())
    seen = []
    for options in ({"batch_size": None}, {"batch_size": 1, "collate_fn": first}):
        data = PenstockDataset("webdataset", shards, batch=32, seed=7)
        loader = DataLoader(data, **options)
        assert len(loader) == 10
        seen.append([batch["x"][:, 0].tolist() for batch in loader])
        assert all(isinstance(batch["y"], torch.Tensor) for batch in loader)  # of the next epoch
    assert seen[0] == seen[1]
    # As StatefulDataLoader does: the state of the dataset goes with its own.
    data = PenstockDataset("webdataset", shards, batch=32, seed=7)
    begun = iter(data)
    for _ in range(4):
        next(begun)
    other = PenstockDataset("webdataset", shards, batch=32, seed=7)
    other.load_state_dict(data.state_dict())
    assert [batch["x"][:, 0].tolist() for batch in other] == seen[0][4:]
    try:
        list(DataLoader(PenstockDataset("webdataset", shards), batch_size=None, num_workers=1))
        raise AssertionError("worker processes were taken")
    except RuntimeError as e:
        assert "num_workers=0" in str(e)


def main():
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        folder = pathlib.Path(name)
        shards = write_shards(folder)
        two = check_order(shards)
        check_resume(shards, two)
        check_lifetime(shards)
        check_capsules(shards)
        check_other_kinds(folder)
        check_torch(shards)
        try:
            Loader("webdataset", str(folder / "missing.tar"))
            raise AssertionError("a shard that is not there was opened")
        except RuntimeError as e:
            assert "missing.tar" in str(e)
    print("checked")


if __name__ == "__main__":
    main()
