#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""datago: its Rust threads read and decode the photos of a folder. The crops are torchvision's, in the consumer, for
datago resizes only into aspect buckets of its own."""

import json
import os
import pathlib
import sys

# A thread for each worker; set before datago is loaded.
os.environ["DATAGO_MAX_TASKS"] = str(sys.argv[sys.argv.index("--workers") + 1])

import common
import datago
import peer_torch
import torch


def jpeg(work):
    def link(path):
        pathlib.Path(path).mkdir()
        for place, name in enumerate(work.photos()):
            pathlib.Path(path, f"{place:06}.jpg").symlink_to(name)

    config = {"source_type": "file", "limit": work.samples, "samples_buffer_size": 64,
              "source_config": {"root_path": work.once("links", link), "random_sampling": True}}
    augment = peer_torch.augmentation([])
    torch.set_num_threads(1)

    def open_loader():
        datago.initialize_logging(log_level="error")
        client = datago.DatagoClient(json.dumps(config))

        def epoch():
            client.start()
            images = []
            while (sample := client.get_sample()) is not None:
                images.append(augment(sample.image.to_pil_image().convert("RGB")))
                if len(images) == work.batch:
                    yield torch.stack(images)
                    images = []

        return epoch

    return open_loader


SETTINGS = {"jpeg": "files, decoded by its threads, torchvision.transforms.v2 in the consumer"}

if __name__ == "__main__":
    common.main(["datago", "torchvision"], SETTINGS, jpeg=jpeg)
