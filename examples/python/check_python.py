#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_python.py: imports the module penstock_loader, which must be on PYTHONPATH, and compares what it gives
with what is in the shards that this script writes; as NumPy's arrays, and as PyTorch's if that is here."""

import gc
import io
import os
import pathlib
import tarfile
import tempfile
import threading

import numpy as np

import penstock_loader

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


def check_epoch(loader, epoch):
    order = []
    for batch in loader.epoch(epoch):
        x, y = arrays(batch)
        assert x.dtype == np.float32 and y.dtype == np.int64 and x.shape[1:] == (LENGTH,)
        assert (x == x[:, :1] + np.arange(LENGTH, dtype=np.float32)).all()
        assert (y == x[:, 0].astype(np.int64) % 10).all()
        order += x[:, 0].astype(int).tolist()
    return order


def check_order(shards):
    loader = penstock_loader.Loader(shards, batch=32, seed=7)
    first, second = check_epoch(loader, 0), check_epoch(loader, 1)
    assert len(first) == len(second) == SHARDS * EACH and first != second
    assert len(set(first)) == len(first)
    assert check_epoch(penstock_loader.Loader(shards, batch=32, seed=7, workers=0), 1) == second
    return second


def check_resume(shards, second):
    loader = penstock_loader.Loader(shards, batch=32, seed=7)
    seen = []
    for step, batch in enumerate(loader.epoch(1)):
        seen += arrays(batch)[0][:, 0].astype(int).tolist()
        if step == 3:
            break
    state = loader.state_dict()
    assert state["epoch"] == 1
    other = penstock_loader.Loader(shards, batch=32, seed=7, workers=1)
    other.load_state_dict(state)
    assert seen + check_epoch(other, 1) == second
    try:
        penstock_loader.Loader(shards, batch=32, seed=8).load_state_dict(state)
        raise AssertionError("a state of another seed was taken")
    except RuntimeError as e:
        assert "penstock" in str(e)


def check_lifetime(shards):
    loader = penstock_loader.Loader(shards, batch=32, seed=7)
    kept = [arrays(batch)[0] for batch, _ in zip(loader.epoch(0), range(2))]
    copies = [x.copy() for x in kept]
    if kept[0].flags.writeable:  # the memory is the consumer's; NumPy before 2 does not write to it
        kept[0][0, 0] = copies[0][0, 0] = -1
    del loader
    gc.collect()
    assert all((a == b).all() for a, b in zip(kept, copies))
    threading.Thread(target=kept.clear).start()
    loader = penstock_loader.Loader(shards, batch=8, seed=7)
    try:
        hoard = [arrays(batch) for batch in loader.epoch(0)]
        raise AssertionError(f"{len(hoard)} batches were given at once")
    except RuntimeError as e:
        assert "you hold" in str(e), e


def check_capsules(shards):
    batch = next(iter(penstock_loader.Loader(shards, batch=4).epoch(0)))
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


def check_torch(shards):
    try:
        import torch
    except ImportError:
        print("PyTorch is not here; its tensors were not compared")
        return
    for batch in penstock_loader.Loader(shards, batch=32).epoch(0):
        x, y = torch.from_dlpack(batch["x"]), torch.from_dlpack(batch["y"])
        assert x.data_ptr() == arrays(batch)[0].ctypes.data
        assert bool((x[:, 1] == y % 10 + x[:, 0] - y % 10 + 1).all())


def main():
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        folder = pathlib.Path(name)
        shards = write_shards(folder)
        second = check_order(shards)
        check_resume(shards, second)
        check_lifetime(shards)
        check_capsules(shards)
        check_torch(shards)
        try:
            penstock_loader.Loader(str(folder / "missing.tar"))
            raise AssertionError("a shard that is not there was opened")
        except RuntimeError as e:
            assert "missing.tar" in str(e)
    print("checked")


if __name__ == "__main__":
    main()
