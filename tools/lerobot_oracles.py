#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data sets that lerobot makes, and the samples that it reads of them: what the test of `lerobot` compares with.

    tools/lerobot_oracles.py             writes tests/data/lerobot_set: two episodes, and samples.txt
    tools/lerobot_oracles.py --check [PROGRAM]
                                         fails if lerobot reads other samples of those episodes; and makes larger data sets,
                                         of which PROGRAM, the test, must read what lerobot reads

Needs lerobot 0.4; a check without it is skipped with status 77.

Frames are black and coloured squares of the number of their row, so that no other frame passes for one: times a number that
makes those of neighbours differ in seven squares or more, because encoders leave a square out here and there. A line of
samples.txt is a key and its values; of frames, how many, height, width, the step of the pixels that are there in both
directions, the CRC of all, and the pixels' values in hexadecimal digits."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

os.environ.update(HF_HUB_OFFLINE="1", SVT_LOG="1")
SMALL = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "lerobot_set"

try:
    import av
    import datasets
    import numpy
    import torch
    from lerobot.datasets import lerobot_dataset
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
except ImportError as missing:
    print(f"lerobot_oracles: skipped, {missing}")
    sys.exit(77)

datasets.disable_progress_bars()
torch.set_num_threads(1)

DECODE = lerobot_dataset.decode_video_frames
STATE, ACTION, TOP, WRIST = "observation.state", "action", "observation.images.top", "observation.images.wrist"
# Rows relative to a sample's, as the test asks for them, too; the second camera has one frame.
WANTED = {STATE: [-2, -1, 0], ACTION: [0, 1, 2, 3, 4], TOP: [-1, 0]}


def picture(number, height, width, colour):
    """16 squares, of which each is a bit."""
    y, x = numpy.mgrid[0:height, 0:width]
    bit = (number * 62259 >> (y * 4 // height * 4 + x * 4 // width)) & 1
    return numpy.where(bit[..., None] == 1, numpy.array(colour), numpy.array((16, 24, 20))).astype(numpy.uint8)


def make(folder, fps, lengths, height=64, width=64, codec="libsvtav1", file_mb=None, **how):
    """A data set of episodes of these lengths; in the even ones all rows have one task, in the others two."""
    camera = {"dtype": "video", "shape": (height, width, 3), "names": ["height", "width", "channels"]}
    features = {STATE: {"dtype": "float32", "shape": (6,), "names": None},
                ACTION: {"dtype": "float32", "shape": (3,), "names": None}, TOP: camera, WRIST: camera}
    made = LeRobotDataset.create("penstock/made", fps, features, root=folder, vcodec=codec, encoder_threads=1, **how)
    if file_mb:  # several files, and folders of two
        made.meta.update_chunk_settings(2, file_mb, file_mb)
    values, row = numpy.random.default_rng(1), 0
    for episode, length in enumerate(lengths):
        for step in range(length):
            odd = ("open the box", "close the box \u2014 slowly")[step * 2 // length]
            task = "lift the cube" if episode % 2 == 0 else odd
            made.add_frame({STATE: values.standard_normal(6).astype(numpy.float32),
                            ACTION: values.standard_normal(3).astype(numpy.float32),
                            TOP: picture(row, height, width, (235, 200, 60)),
                            WRIST: picture(row + 1000, height, width, (60, 190, 235)), "task": task})
            row += 1
        made.save_episode(parallel_encoding=False)
    made.finalize()


def from_the_beginning(path, seconds, *_):
    """As lerobot's `decode_video_frames`, without seeking."""
    with av.open(str(path)) as film:
        frames = [(frame.time, frame.to_ndarray(format="rgb24")) for frame in film.decode(video=0)]
    chosen = [min(frames, key=lambda frame: abs(frame[0] - at))[1] for at in seconds]
    return torch.from_numpy(numpy.stack(chosen)).permute(0, 3, 1, 2) / 255


def numbers(values):
    return " ".join(f"{value:.9g}" for value in values.flatten().tolist())


def samples(folder, fps, step):
    """The lines of samples.txt."""
    read = LeRobotDataset("penstock/made", root=folder,
                          delta_timestamps={key: [row / fps for row in rows] for key, rows in WANTED.items()})
    yield f"fps {fps}"
    yield f"rows {len(read)}"
    for i in range(len(read)):
        one = read[i]
        yield f"index {one['index']} {one['episode_index']} {one['frame_index']} {one['task_index']}"
        yield f"timestamp {one['timestamp']:.9g}"
        yield f"task {one['task']}"
        for key in (STATE, ACTION):
            yield f"{key} {numbers(one[key])}"
        for key in WANTED:
            yield f"{key}_is_pad {numbers(one[f'{key}_is_pad'].int())}"
        for key in (TOP, WRIST):
            frames = (one[key] * 255).round().to(torch.uint8)
            frames = frames.reshape(-1, *frames.shape[-3:]).permute(0, 2, 3, 1).contiguous().numpy()
            begin = min(step // 2, 8)
            yield (f"{key} {frames.shape[0]} {frames.shape[1]} {frames.shape[2]} {step} {zlib.crc32(frames.tobytes())} "
                   f"{frames[:, begin::step, begin::step].tobytes().hex()}")


def write_samples(folder, *how):
    (folder / "samples.txt").write_text("\n".join(samples(folder, *how)) + "\n", encoding="utf-8")


LARGE = {  # name: frames a second, how it is made
    "av1_30": (30, dict(lengths=[23, 40, 1, 31, 8], width=96)),
    "h264_10": (10, dict(lengths=[15, 9, 20, 12, 6], codec="h264", width=128)),
    "hevc_streamed": (30, dict(lengths=[12, 7], codec="hevc", streaming_encoding=True)),
    "av1_files": (50, dict(lengths=[14, 10, 9, 12, 11, 5], file_mb=0.004, metadata_buffer_size=2)),
}


def main():
    if "--check" not in sys.argv[1:]:
        shutil.rmtree(SMALL, ignore_errors=True)
        make(SMALL, 10, [6, 5])
        write_samples(SMALL, 10, 16)
        return
    stored = (SMALL / "samples.txt").read_text(encoding="utf-8")
    if stored != "\n".join(samples(SMALL, 10, 16)) + "\n":
        sys.exit("lerobot_oracles: lerobot reads other samples of tests/data/lerobot_set")
    if len(sys.argv) < 3:
        return
    with tempfile.TemporaryDirectory() as place:
        for name, (fps, how) in LARGE.items():
            folder = pathlib.Path(place) / name
            make(folder, fps, **how)
            # Of HEVC's open groups of pictures, neither of lerobot's decoders gives the frames that it is asked for.
            lerobot_dataset.decode_video_frames = from_the_beginning if how.get("codec") == "hevc" else DECODE
            write_samples(folder, fps, 1)
        environment = {**os.environ, "PENSTOCK_LEROBOT_SETS": place}
        sys.exit(subprocess.run([sys.argv[2], "[lerobot_sets]"], env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
