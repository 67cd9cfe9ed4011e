#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains train_gpt on made-up texts, kills it at random moments, and compares the losses of all steps.

check_train_gpt.py <train_gpt> <tokenizer.json>
"""

import pathlib
import random
import sys
import tempfile

from killed_training import check, check_killed_training, whole_training

train, tokenizer = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])

with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    source = random.Random(3)
    subjects = ["the dog", "a cat", "the old man", "my sister", "a bird"]
    verbs = ["sees", "likes", "hears", "follows"]
    for part in range(2):
        with open(folder / f"texts{part}.txt", "w") as texts:
            for _ in range(120):
                sentences = [f"{source.choice(subjects)} {source.choice(verbs)} {source.choice(subjects)}."
                             for _ in range(source.randrange(1, 12))]
                texts.write(" ".join(sentences) + "\n")

    def command(checkpoint, workers):
        return [train, "--texts", str(folder / "texts*.txt"), "--tokenizer", tokenizer, "--checkpoint",
                str(folder / checkpoint), "--epochs", "3", "--length", "64", "--workers", str(workers)]

    expected = whole_training(command("whole", 1))
    full = [float(line.split()[9].rstrip("%")) for line in expected]
    check(sum(full) > 98 * len(full), f"rows are {sum(full) / len(full):.1f} % full")
    check_killed_training(lambda workers: command("killed", workers), expected)
