#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's DataLoader with torchvision.io: photos as files, decoded to tensors without PIL."""

import common
import peer_torch
import torch
from torchvision import io


class Photos(torch.utils.data.Dataset):
    """The files of the folder."""

    def __init__(self, names):
        self.names = names
        self.augment = peer_torch.augmentation([])

    def __len__(self):
        return len(self.names)

    def __getitem__(self, place):
        return self.augment(io.decode_jpeg(io.read_file(self.names[place]), io.ImageReadMode.RGB))


SETTINGS = {"jpeg": "files, torchvision.io.decode_jpeg, transforms.v2 on tensors, persistent workers, prefetch_factor 8"}

if __name__ == "__main__":
    common.main(["torch", "torchvision"], SETTINGS, jpeg=lambda work: peer_torch.jpeg(work, Photos))
