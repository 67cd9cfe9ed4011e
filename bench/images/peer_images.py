#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peer_images.py torch|dali|ffcv|tf PHOTOS SCRATCH: images per second that a peer delivers with two threads or worker
processes: random crops of 224 x 224, antialiased where the peer can, mirrored, normalised, as float32 batches of
32. PHOTOS is a folder of JPEG files; FFCV's own file is written to the folder SCRATCH, once. The best of three epochs
counts, after one that fills caches; an epoch has each photo four times. Prints the rate and the version.

Each is set up as its documentation advises. PyTorch: torchvision on PIL images, persistent workers. DALI: the
decoder that crops, 2 threads, on the CPU, channels first. FFCV: its own file, in which photos are JPEG of quality 95
again, `os_cache`, in order (SEQUENTIAL), as the others read. tf.data: the decoder that crops, 2 calls in parallel,
channels last."""

import importlib.metadata
import os
import sys
import time

os.environ["TQDM_DISABLE"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

PEER, FOLDER, SCRATCH = sys.argv[1:4]
SIDE, BATCH, THREADS = 224, 32, 2
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
names = sorted(os.path.join(FOLDER, name) for name in os.listdir(FOLDER))
PHOTOS = len(names) // BATCH * BATCH
names = 4 * names[:PHOTOS]  # so that the ends of an epoch weigh less


def best_rate(epoch):
    """Images per second; `epoch()` delivers all of them and returns their number."""
    epoch()
    best = 0
    for _ in range(3):
        begin = time.perf_counter()
        seen = epoch()
        best = max(best, seen / (time.perf_counter() - begin))
        if seen != len(names):
            sys.exit(f"{seen} images instead of {len(names)}")
    return best


def torch_epochs():
    import torch
    from PIL import Image
    from torchvision import transforms

    class Photos(torch.utils.data.Dataset):
        """The files of the folder."""

        augment = transforms.Compose([
            transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
            transforms.Normalize(MEAN, STD)])

        def __len__(self):
            return len(names)

        def __getitem__(self, place):
            with Image.open(names[place]) as image:
                return self.augment(image.convert("RGB"))

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Photos(), batch_size=BATCH, num_workers=THREADS, persistent_workers=True)
    return lambda: sum(len(batch) for batch in loader)


def dali_epochs():
    from nvidia import dali
    from nvidia.dali import fn

    @dali.pipeline_def(batch_size=BATCH, num_threads=THREADS, device_id=None, seed=7, prefetch_queue_depth=4)
    def photos():
        files, _ = fn.readers.file(files=names, name="reader")
        images = fn.decoders.image_random_crop(files, device="cpu", output_type=dali.types.RGB)
        images = fn.resize(images, size=(SIDE, SIDE), interp_type=dali.types.INTERP_LINEAR, antialias=True)
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), output_layout="CHW",
                                        dtype=dali.types.FLOAT, mean=[255 * m for m in MEAN],
                                        std=[255 * s for s in STD])

    pipeline = photos()
    pipeline.build()

    def epoch():
        return sum(len(pipeline.run()[0]) for _ in range(len(names) // BATCH))

    return epoch


def ffcv_epochs():
    import numpy
    from ffcv.fields import RGBImageField
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
    from ffcv.writer import DatasetWriter
    from PIL import Image

    class Photos:
        """The files of the folder."""

        def __len__(self):
            return PHOTOS

        def __getitem__(self, place):
            with Image.open(names[place]) as image:
                return (image.convert("RGB"),)

    path = os.path.join(SCRATCH, "photos.beton")
    if not os.path.exists(path):
        fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=95)}
        DatasetWriter(path + ".new", fields, num_workers=THREADS).from_indexed_dataset(Photos())
        os.rename(path + ".new", path)
    mean, std = (255 * numpy.array(values) for values in (MEAN, STD))
    steps = [RandomResizedCropRGBImageDecoder((SIDE, SIDE)), RandomHorizontalFlip(),
             NormalizeImage(mean, std, numpy.float32), ToTensor(), ToTorchImage(convert_back_int16=False)]
    loader = Loader(path, batch_size=BATCH, num_workers=THREADS, order=OrderOption.SEQUENTIAL, os_cache=True,
                    drop_last=False, indices=numpy.tile(numpy.arange(PHOTOS), 4), pipelines={"image": steps})
    return lambda: sum(len(batch[0]) for batch in loader)


def tf_epochs():
    import tensorflow as tf

    def photo(name):
        file = tf.io.read_file(name)
        shape = tf.image.extract_jpeg_shape(file)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape, tf.zeros((1, 0, 4)), area_range=(0.08, 1.0), use_image_if_no_bounding_boxes=True)
        window = tf.stack((begin[0], begin[1], size[0], size[1]))
        image = tf.image.decode_and_crop_jpeg(file, window, channels=3)
        image = tf.image.resize(image, (SIDE, SIDE), antialias=True)
        image = tf.image.random_flip_left_right(image)
        return (image / 255.0 - tf.constant(MEAN)) / tf.constant(STD)

    data = tf.data.Dataset.from_tensor_slices(names).map(photo, num_parallel_calls=THREADS)
    data = data.batch(BATCH).prefetch(2)
    options = tf.data.Options()
    options.threading.private_threadpool_size = THREADS
    data = data.with_options(options)
    return lambda: sum(int(batch.shape[0]) for batch in data)


PEERS = {"torch": (torch_epochs, "torchvision"), "dali": (dali_epochs, "nvidia-dali-cuda120"),
         "ffcv": (ffcv_epochs, "ffcv"), "tf": (tf_epochs, "tensorflow-cpu")}
EPOCHS, PACKAGE = PEERS[PEER]
print(best_rate(EPOCHS()), importlib.metadata.version(PACKAGE))
