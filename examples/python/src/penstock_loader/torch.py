# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loaders as a dataset of PyTorch, which its DataLoader, torchdata's StatefulDataLoader, Lightning and Hugging
Face's Trainer take."""

import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import Loader


class PenstockDataset(IterableDataset):
    """Whole batches, as dictionaries of PyTorch's tensors: `DataLoader(PenstockDataset(...), batch_size=None)`.

    The arguments are those of `Loader`. Threads of C++ do the work, so the DataLoader needs no worker processes:
    leave num_workers at 0.
    """

    def __init__(self, *args, **kwargs):
        super().__init__()
        self.loader = Loader(*args, **kwargs)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        if get_worker_info() is not None:
            raise RuntimeError("penstock_loader has threads of its own: write DataLoader(..., num_workers=0)")
        for batch in self.loader:
            yield {name: torch.from_dlpack(one) for name, one in batch.items()}

    def set_epoch(self, epoch):
        self.loader.set_epoch(epoch)

    def state_dict(self):
        return self.loader.state_dict()

    def load_state_dict(self, state):
        self.loader.load_state_dict(state)
