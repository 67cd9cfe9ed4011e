#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch_images.py FOLDER: images per second that PyTorch's DataLoader delivers with two workers: random crops of
224 x 224 by torchvision on PIL images, mirrored, normalised, in batches of 32. The second of two epochs counts."""

import os
import sys
import time

import torch
from PIL import Image
from torchvision import transforms

torch.set_num_threads(1)
names = sorted(os.path.join(sys.argv[1], name) for name in os.listdir(sys.argv[1]))


class Photos(torch.utils.data.Dataset):
    """The files of the folder."""

    augment = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])

    def __len__(self):
        return len(names) // 32 * 32

    def __getitem__(self, place):
        with Image.open(names[place]) as image:
            return self.augment(image.convert("RGB"))


loader = torch.utils.data.DataLoader(Photos(), batch_size=32, num_workers=2, persistent_workers=True)
for _ in range(2):
    begin = time.perf_counter()
    seen = sum(len(batch) for batch in loader)
    rate = seen / (time.perf_counter() - begin)
print(rate)
