#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The peer of row 63, lerobot.

    peer_lerobot.py make FOLDER EPISODES STEPS   writes a data set: two cameras of 480 x 640 at 30 frames a second, encoded as
                                                 lerobot does unless told otherwise, a state and an action of 6 numbers
    peer_lerobot.py rate FOLDER SECONDS          prints how many samples its loader delivers in a second, and in a second of
                                                 processor time of all its processes: PyTorch's DataLoader as lerobot's training
                                                 has it, with two workers, batches of 8, shuffled; a sample
                                                 is an action chunk of 16, the state, and a frame of each camera, resized to
                                                 224 x 224 by torchvision"""

import multiprocessing
import os
import pathlib
import sys
import time

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1", SVT_LOG="1")

import numpy
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from torchvision.transforms import v2

HEIGHT, WIDTH, FPS = 480, 640, 30
CAMERAS = ["observation.images.top", "observation.images.wrist"]


def make(folder, episodes, steps):
    camera = {"dtype": "video", "shape": (HEIGHT, WIDTH, 3), "names": ["height", "width", "channels"]}
    six = {"dtype": "float32", "shape": (6,), "names": None}
    made = LeRobotDataset.create("penstock/bench", FPS, {"observation.state": six, "action": six,
                                                         **{key: camera for key in CAMERAS}},
                                 root=folder, image_writer_threads=2)
    source = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    scene = numpy.stack([x * 255 // WIDTH, y * 255 // HEIGHT, (x // 40 + y // 40) % 2 * 120 + 60], axis=2)
    for _ in range(episodes):
        for step in range(steps):
            frame = {"observation.state": source.standard_normal(6).astype(numpy.float32),
                     "action": source.standard_normal(6).astype(numpy.float32), "task": "move the block"}
            for number, key in enumerate(CAMERAS):
                picture = numpy.roll(scene, 2 * step * (number + 1), axis=1) + source.integers(-3, 4, scene.shape)
                left = 40 + step % 500
                picture[200:280, left:left + 80] = (220, 40, 40)
                frame[key] = picture.clip(0, 255).astype(numpy.uint8)
            made.add_frame(frame)
        made.save_episode()
    made.stop_image_writer()
    made.finalize()


def processor_seconds():
    """Of this process and its workers."""
    ticks = 0
    for process in ("self", *(worker.pid for worker in multiprocessing.active_children())):
        with open(f"/proc/{process}/stat") as stat:
            ticks += sum(int(field) for field in stat.read().rsplit(")", 1)[1].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def rate(folder, seconds):
    wanted = {"action": [i / FPS for i in range(16)], "observation.state": [0.0]}
    data = LeRobotDataset("penstock/bench", root=folder, delta_timestamps=wanted, image_transforms=v2.Resize((224, 224)))
    loader = torch.utils.data.DataLoader(data, num_workers=2, batch_size=8, shuffle=True, prefetch_factor=2)
    batches = (batch for _ in range(1000) for batch in loader)
    for _ in range(8):  # until the workers have opened their files
        next(batches)
    done, begin, used = 0, time.perf_counter(), processor_seconds()
    while (passed := time.perf_counter() - begin) < seconds:
        done += len(next(batches)["index"])
    print(done / passed, done / (processor_seconds() - used), flush=True)
    for worker in multiprocessing.active_children():
        worker.kill()
        worker.join()
    os._exit(0)


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "make":
        make(place, int(sys.argv[3]), int(sys.argv[4]))
    else:
        rate(place, float(sys.argv[3]))
