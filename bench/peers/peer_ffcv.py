#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FFCV: its own file, `os_cache`, RANDOM order; photos are JPEG of quality 95 again in it."""

import os

os.environ["TQDM_DISABLE"] = "1"

import common
import numpy
from ffcv.fields import NDArrayField, RGBImageField
from ffcv.fields.decoders import NDArrayDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter


class Samples:
    """Gives the writer a sample."""

    def __init__(self, count, sample):
        self.count, self.sample = count, sample

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        return (self.sample(place),)


def loader_of(work, field, sample, steps):
    """Opens a loader over FFCV's file, which is written first."""
    path = work.once("ffcv.beton", lambda new: DatasetWriter(new, {"x": field}, num_workers=1).from_indexed_dataset(
        Samples(work.samples, sample)))
    order = OrderOption.RANDOM if work.shuffled or work.kind == "jpeg" else OrderOption.SEQUENTIAL

    def open_loader():
        loader = Loader(path, batch_size=work.batch, num_workers=max(work.workers, 1), order=order, os_cache=True,
                        drop_last=False, pipelines={"x": steps()})
        return lambda: (batch[0] for batch in loader)

    return open_loader


def raw(work):
    return loader_of(work, NDArrayField(dtype=numpy.dtype("uint8"), shape=(work.bytes,)), work.row,
                     lambda: [NDArrayDecoder()])


def jpeg(work):
    from PIL import Image

    names = work.photos()
    mean, std = (255 * numpy.array(values) for values in (common.MEAN, common.STD))

    def photo(place):
        with Image.open(names[place]) as image:
            return image.convert("RGB")

    return loader_of(work, RGBImageField(write_mode="jpg", jpeg_quality=95), photo, lambda: [
        RandomResizedCropRGBImageDecoder((common.SIDE, common.SIDE)), RandomHorizontalFlip(),
        NormalizeImage(mean, std, numpy.float32), ToTensor(), ToTorchImage(convert_back_int16=False)])


SETTINGS = {"raw": "its own file, os_cache, RANDOM order, threads",
            "jpeg": "its own file of JPEG at quality 95, os_cache, RANDOM order, threads"}

if __name__ == "__main__":
    common.main(["ffcv", "torch"], SETTINGS, raw, jpeg)
