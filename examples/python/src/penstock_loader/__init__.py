# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loaders of C++ for training in Python: shuffled, decoded and batched by threads, resumable, without a copy.

    loader = Loader("webdataset", "train-{0000..0127}.tar", batch=256, seed=7)
    for epoch in range(loader.epoch, 90):
        for batch in loader:                      # the rest of an epoch after load_state_dict
            x = torch.from_dlpack(batch["x"])
    checkpoint = {"loader": loader.state_dict()}
"""

from . import _penstock

__all__ = ["Loader", "KINDS", "first"]
KINDS = ("webdataset", "images", "tokens", "parquet")


class Loader:
    """Batches as dictionaries of tensors, for `numpy.from_dlpack` and `torch.from_dlpack`.

    Each `for` over it is an epoch, and the next one the next epoch. What you leave with `break`, the next `for`
    begins anew, as with PyTorch's DataLoader; after `load_state_dict` it resumes.
    kind: one of KINDS. rank, world: which part of the batches this process gets. size: of images. window: of tokens.
    """

    def __init__(self, kind, path, batch=256, seed=0, workers=2, size=224, window=1024, rank=0, world=1):
        self._loader = _penstock.Loader(kind, str(path), batch, seed, workers, size, window, rank, world)
        self.epoch = 0

    def __len__(self):
        """The number of batches of an epoch."""
        return self._loader.steps()

    def __iter__(self):
        self._loader.begin(self.epoch)
        while (batch := self._loader.next()) is not None:
            yield batch
        self.epoch += 1

    def set_epoch(self, epoch):
        """The number of the epoch that the next `for` is."""
        self.epoch = epoch

    def state_dict(self):
        """Where it stands: behind the last batch that you had."""
        epoch, state = self._loader.state()
        return {"epoch": epoch, "penstock": state}

    def load_state_dict(self, state):
        self._loader.restore(state["penstock"])
        self.epoch = state["epoch"]


def first(batches):
    """A collate_fn for trainers that insist on collating: the dataset gives whole batches, one at a time."""
    return batches[0]
