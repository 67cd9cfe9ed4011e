#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""made_demonstrations.py FOLDER [EPISODES]: a LeRobot data set (v3.0) of a gripper that is moved to a target, for
train_policy. The first camera sees both from above; of the other, the gripper is the middle. Needs pyarrow, and ffmpeg with
an encoder of H.264, MPEG-4 or AV1."""

import json
import math
import pathlib
import random
import statistics
import subprocess
import sys

import pyarrow
import pyarrow.parquet

FPS, STEPS, SIDE = 10, 24, 64
CAMERAS = ("observation.images.top", "observation.images.wrist")


def picture(blocks):
    """RGB of a dark table with blocks of 12 x 12 pixels; places are from 0 to 1."""
    pixels = bytearray(b"\x20\x28\x20" * (SIDE * SIDE))
    for x, y, colour in blocks:
        for row in range(round(y * SIDE) - 6, round(y * SIDE) + 6):
            for column in range(round(x * SIDE) - 6, round(x * SIDE) + 6):
                if 0 <= row < SIDE and 0 <= column < SIDE:
                    pixels[(row * SIDE + column) * 3:(row * SIDE + column) * 3 + 3] = colour
    return bytes(pixels)


def episode(source):
    """The place of the gripper, its next step, and the two pictures."""
    target, at = [[source.uniform(0.1, 0.9) for _ in range(2)] for _ in range(2)]
    for _ in range(STEPS):
        far = max(math.dist(target, at), 1e-9)
        step = [(t - a) * min(1, 0.025 / far) for t, a in zip(target, at)]
        seen = [0.5 + (t - a) / 2 for t, a in zip(target, at)]
        yield (list(at), step, picture([(*at, b"\xe0\xe0\xe0"), (*target, b"\xe0\x30\x30")]),
               picture([(*seen, b"\xe0\x30\x30")]))
        at = [a + s for a, s in zip(at, step)]


def write_film(path, pictures):
    path.parent.mkdir(parents=True)
    for encoder in ("libx264", "libsvtav1", "mpeg4"):
        done = subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE}x{SIDE}", "-r",
                               str(FPS), "-i", "-", "-c:v", encoder, "-g", "2", "-pix_fmt", "yuv420p", str(path)],
                              input=b"".join(pictures), stderr=subprocess.PIPE, check=False)
        if done.returncode == 0:
            return
    sys.exit(f"ffmpeg cannot write {path}: {done.stderr.decode()}")


def write_table(path, columns, index=None):
    """`index`: the column of texts that pandas, and so lerobot, takes for the names of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.table(columns)
    if index:
        kinds = [{"name": None if name == index else name, "field_name": name, "metadata": None,
                  "pandas_type": "unicode" if name == index else "int64",
                  "numpy_type": "object" if name == index else "int64"} for name in columns]
        table = table.replace_schema_metadata({"pandas": json.dumps(
            {"index_columns": [index], "column_indexes": [], "columns": kinds})})
    pyarrow.parquet.write_table(table, path)


def main(folder, episodes):
    source = random.Random(3)
    rows = [(number, step, *row) for number in range(episodes) for step, row in enumerate(episode(source))]
    one = pyarrow.list_(pyarrow.float32(), 2)
    part = "chunk-000/file-000"
    write_table(folder / f"data/{part}.parquet", {
        "observation.state": pyarrow.array([row[2] for row in rows], one), "action": pyarrow.array([row[3] for row in rows], one),
        "timestamp": pyarrow.array([row[1] / FPS for row in rows], pyarrow.float32()), "frame_index": [row[1] for row in rows],
        "episode_index": [row[0] for row in rows], "index": list(range(len(rows))), "task_index": [0] * len(rows)})
    write_table(folder / "meta/tasks.parquet", {"task_index": [0], "__index_level_0__": ["move to the block"]},
                "__index_level_0__")
    begins = [number * STEPS for number in range(episodes)]
    nought = [0] * episodes
    write_table(folder / f"meta/episodes/{part}.parquet", {
        "episode_index": list(range(episodes)), "tasks": [["move to the block"]] * episodes, "length": [STEPS] * episodes,
        "dataset_from_index": begins, "dataset_to_index": [begin + STEPS for begin in begins],
        "data/chunk_index": nought, "data/file_index": nought,
        **{f"videos/{camera}/{name}": value for camera in CAMERAS for name, value in (
            ("chunk_index", nought), ("file_index", nought), ("from_timestamp", [begin / FPS for begin in begins]),
            ("to_timestamp", [(begin + STEPS) / FPS for begin in begins]))}})
    for number, camera in enumerate(CAMERAS):
        write_film(folder / f"videos/{camera}/{part}.mp4", [row[4 + number] for row in rows])
    features = {camera: {"dtype": "video", "shape": [SIDE, SIDE, 3], "names": ["height", "width", "channels"]}
                for camera in CAMERAS}
    features |= {name: {"dtype": "float32", "shape": [2], "names": ["x", "y"]} for name in ("observation.state", "action")}
    features |= {name: {"dtype": "float32" if name == "timestamp" else "int64", "shape": [1], "names": None}
                 for name in ("timestamp", "frame_index", "episode_index", "index", "task_index")}
    (folder / "meta/info.json").write_text(json.dumps({
        "codebase_version": "v3.0", "robot_type": None, "total_episodes": episodes, "total_frames": len(rows), "total_tasks": 1,
        "chunks_size": 1000, "data_files_size_in_mb": 100, "video_files_size_in_mb": 200, "fps": FPS,
        "splits": {"train": f"0:{episodes}"}, "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4", "features": features}, indent=2))
    (folder / "meta/stats.json").write_text(json.dumps({
        name: {what: [compute(row[column][i] for row in rows) for i in range(2)] for what, compute in (
            ("mean", statistics.fmean), ("std", lambda values: statistics.pstdev(list(values))), ("min", min), ("max", max))}
        for name, column in (("observation.state", 2), ("action", 3))}))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 10)
