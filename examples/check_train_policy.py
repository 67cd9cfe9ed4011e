#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains train_policy on demonstrations that are made here, kills it at random moments, and compares the losses of all steps.

check_train_policy.py <train_policy> <Python that has pyarrow>
"""

import pathlib
import subprocess
import sys
import tempfile

from killed_training import check_killed_training, whole_training

train, python = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]

with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    maker = pathlib.Path(__file__).resolve().parent / "made_demonstrations.py"
    subprocess.run([python, str(maker), str(folder / "data"), "6"], check=True)

    def command(checkpoint, workers):
        return [train, "--data", str(folder / "data"), "--checkpoint", str(folder / checkpoint), "--epochs", "5",
                "--workers", str(workers)]

    expected = whole_training(command("whole", 1))
    check_killed_training(lambda workers: command("killed", workers), expected)
