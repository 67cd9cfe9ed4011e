#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tf.data: TFRecord files, batched before they are parsed, a shuffle buffer, AUTOTUNE; photos by the op that crops."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pathlib

import common
import tensorflow as tf

SHARDS = 4
BUFFER = 1000


def records(work, contents):
    """The names of files of serialised records, each of which is a sample's bytes."""

    def write(path):
        pathlib.Path(path).mkdir()
        samples = iter(contents)
        for shard in range(SHARDS):
            with tf.io.TFRecordWriter(f"{path}/{shard:04}.tfrecord") as out:
                for _ in range(work.samples // SHARDS):
                    out.write(next(samples))

    return sorted(map(str, pathlib.Path(work.once("tfrecord", write)).glob("*")))


def loader_of(work, contents, finish):
    """Opens a data set; `finish` makes batches of it."""
    names = records(work, contents)

    def open_loader():
        data = tf.data.TFRecordDataset(names, num_parallel_reads=tf.data.AUTOTUNE if work.shuffled else None)
        if work.shuffled or work.kind == "jpeg":
            data = data.shuffle(BUFFER)
        data = finish(data).prefetch(tf.data.AUTOTUNE)
        options = tf.data.Options()
        options.threading.private_threadpool_size = max(work.workers, 1)
        options.deterministic = not work.shuffled
        data = data.with_options(options)
        return data.as_numpy_iterator

    return open_loader


def raw(work):
    def parse(batch):
        batch = tf.io.decode_raw(batch, tf.uint8)
        return tf.ensure_shape(batch, (None, work.bytes))

    return loader_of(work, (row.tobytes() for row in work.rows()),
                     lambda data: data.batch(work.batch).map(parse, num_parallel_calls=tf.data.AUTOTUNE))


def jpeg(work):
    def photo(file):
        shape = tf.image.extract_jpeg_shape(file)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape, tf.zeros((1, 0, 4)), area_range=(0.08, 1.0), use_image_if_no_bounding_boxes=True)
        image = tf.image.decode_and_crop_jpeg(file, tf.stack((begin[0], begin[1], size[0], size[1])), channels=3)
        image = tf.image.random_flip_left_right(tf.image.resize(image, (common.SIDE, common.SIDE), antialias=True))
        return (image / 255.0 - tf.constant(common.MEAN)) / tf.constant(common.STD)

    return loader_of(work, (pathlib.Path(name).read_bytes() for name in work.photos()),
                     lambda data: data.map(photo, num_parallel_calls=tf.data.AUTOTUNE).batch(work.batch))


SETTINGS = {"raw": f"{SHARDS} TFRecord files, shuffle({BUFFER}), batch, then decode_raw, AUTOTUNE, prefetch",
            "jpeg": f"{SHARDS} TFRecord files, shuffle({BUFFER}), decode_and_crop_jpeg, antialiased resize, channels last"}

if __name__ == "__main__":
    common.main(["tensorflow-cpu"], SETTINGS, raw, jpeg)
