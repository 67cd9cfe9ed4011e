# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The splits that Hugging Face's datasets finds in made-up folders: split_peers.py SEED COUNT

A line for each folder: its files with "|" between them, a tab, and "split=file,file" with ";" between splits.
"""
import os
import random
import sys
import tempfile

from datasets.data_files import DEFAULT_PATTERNS_ALL, _get_data_files_patterns, resolve_pattern

WORDS = ("train training validation valid val dev test testing eval evaluation data default en x trainer latest value "
         "0001 part my split=train contest imdb").split()


def part(draw):
    some = range(draw.choice([1, 1, 2, 3]))
    return "".join(draw.choice(WORDS) + draw.choice(["-", "_", ".", " ", "", "1", "="]) for _ in some).strip(" .")


def path(draw):
    folders = ["data" if draw.random() < 0.3 else part(draw) for _ in range(draw.choice([0, 0, 1, 1, 2]))]
    numbered = f"-{draw.randrange(3):05d}-of-00003" if draw.random() < 0.3 else ""
    return "/".join(folders + [part(draw) + numbered + ".csv"])


def splits(root):
    patterns = _get_data_files_patterns(lambda pattern: resolve_pattern(pattern, base_path=root))
    made = {}
    for split, some in patterns.items() if patterns != DEFAULT_PATTERNS_ALL else ():
        found = set()
        for pattern in some:
            try:
                found |= set(resolve_pattern(pattern, base_path=root))
            except FileNotFoundError:
                pass
        made[str(split)] = sorted(os.path.relpath(one, root) for one in found)
    return made


def main(seed, count):
    draw = random.Random(seed)
    while count:
        files = sorted({path(draw) for _ in range(draw.choice([1, 2, 3, 5]))})
        with tempfile.TemporaryDirectory() as root:
            try:
                for one in files:
                    os.makedirs(os.path.dirname(f"{root}/{one}"), exist_ok=True)
                    with open(f"{root}/{one}", "w", encoding="utf-8") as file:
                        file.write("a")
                made = splits(root)
            except (OSError, ValueError):  # a file where a folder should be, or a name that datasets refuses
                continue
        count -= 1
        print("|".join(files), ";".join(f"{name}={','.join(some)}" for name, some in made.items()), sep="\t")


main(int(sys.argv[1]), int(sys.argv[2]))
