#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""report.py BUILD_FOLDER [--quick] [--keep] [--rows 1,4a,9] [--pairs N] [--takes N] [--markdown FILE]

Runs all benchmark programs of a build and prints one table: the bar, the lower quartile of the paired ratios,
the median, and whether the bar is met. run.sh builds and calls this. Status 1 when a program fails; a missed
bar is a line of the table, not a failure.
"""

import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CXX = re.compile(r"CMAKE_CXX_COMPILER(?::\w+)?=(.*)")
FLAGS = re.compile(r"CMAKE_CXX_FLAGS(?:_RELEASE)?(?::\w+)?=(.*)")

# The programs in the order of the table, and the rows that each can print.
PROGRAMS = (
    ("bench_fused", ("1", "1b", "1c", "2", "2b")),
    ("instructions", ("i1", "i1b", "i1c", "i2", "i2b", "i15a", "i15b", "i15c", "i15d", "i15e")),
    ("bench_handoff", ("3a", "3b")),
    ("bench_handoff_lockfree", ("3c", "3d", "3e")),
    ("bench_memory_samples", ("4a", "4b", "5", "64")),
    ("bench_memory_samples_places", ("67a", "67b", "67c")),
    ("bench_tar", ("6a", "6b", "7", "7b", "8a", "8b", "8c", "18", "18b", "18c")),
    ("bench_large_images", ("17a", "17b")),
    ("bench_cold", ("9a", "9b", "9d", "9e")),
    ("bench_cold_uring", ("9c",)),
    ("bench_many_shards", ("10a", "10b")),
    ("bench_order_permutation", ("11a", "11b")),
    ("bench_order_mixture", ("15a", "15b", "15c", "15d", "15e")),
    ("bench_footprint", ("12a", "12b", "12c")),
    ("compile_time", tuple(f"13{letter}" for letter in "abcdefghij")),
    ("bench_stall", ("14a", "14b", "14c", "14d", "14e", "14f")),
    ("bench_autotune", tuple(f"66{letter}" for letter in "abcdefghijklmnop")),
    ("bench_resume", ("16a", "16b", "16c", "16d", "16e", "16f", "16g", "16h")),
    ("bench_map_batch", ("19a", "19b")),
    ("bench_fetch", ("20a", "20b", "20c", "20d")),
    ("bench_images", ("21a", "21b", "21c", "21d", "21e", "21h", "21i", "21j", "21k", "21l")),
    ("bench_images_unequal", ("21f",)),
    ("bench_images_neighbours", ("21g",)),
    ("bench_images_kernels", ("22a", "22b", "22c")),
    ("bench_storage", ("23a", "23b", "23c", "23d", "23e", "23f", "23g",
                       "23h", "23i")),
    ("bench_s3_many_shards", ("23j",)),
    ("bench_s3", ("24a", "24b")),
    ("bench_tensors", ("25a", "25b", "25c", "25d")),
    ("bench_tensors_libtorch", ("25e", "25f", "25g", "25h")),
    ("bench_formats", (*(f"26{letter}" for letter in "abcdefghijklmntu"), *(f"27{letter}" for letter in "abcdef"))),
    ("bench_formats_parquet", tuple(f"26{letter}" for letter in "opqrs")),
    ("bench_cache", ("28a", "28b", "28c", "28d")),
    ("bench_cache_stage_to", ("28e", "28h")),
    ("bench_crypto", ("29a", "29b", "29c", "29d", "29e")),
    ("bench_gpu_stand_in", ("30", "30b")),
    ("bench_sequences_packed_rows", ("40h", "43a", "43b", "43c", "43d", "43e", "43f", "43g", "43h")),
    ("bench_sequences_packing", ("40a", "40b", "40c", "40f", "40d", "40g", "41a", "41b")),
    ("bench_sequences_buckets", ("42a", "42b", "42c", "42d")),
    ("bench_sequences_tokenise", ("44a", "44b", "44c", "44d")),
    ("bench_audio", tuple(f"48{letter}" for letter in "abcdefgh")),
    ("bench_audio_utterances", ("49a", "49b")),
    ("bench_windows", ("46a", "46b")),
    ("bench_audio_log_mel", ("47a", "47b", "47c")),
    ("bench_video", tuple(f"62{letter}" for letter in "abcdefghijklm")),
    ("bench_robots", ("63",)),
    ("bench_gpu", ("gpu1", "gpu2", "gpu3")),
    ("bench_gpu_images", ("gpu4", "gpu5")),
)
# Programs of components that a build may lack: what their rows measure, and why they are left out.
OPTIONAL = {"bench_formats": ("samples of other formats", "built without penstock::json or penstock::tfrecord"),
            "bench_formats_parquet": ("columns of Parquet", "built without penstock::arrow"),
            "bench_sequences_tokenise": ("texts to tokens", "built without penstock::pcre2"),
            "bench_audio": ("sounds to batches", "built without penstock::audio or penstock::resample"),
            "bench_video": ("films to clips", "built without penstock::video"),
            "bench_robots": ("a LeRobot data set", "built without penstock::arrow or penstock::video"),
            "bench_cache": ("a node's cache", "built without penstock::cache"),
            "bench_gpu": ("batches to a GPU", "built without penstock::cuda"),
            "bench_storage": ("shards on a web server", "built without penstock::http"),
            "bench_s3_many_shards": ("opening many shards of a store", "built without penstock::s3"),
            "bench_crypto": ("encrypted objects", "built without penstock::crypto"),
            "bench_s3": ("objects read whole", "built without penstock::s3"),
            "bench_tensors_libtorch": ("batches as tensors of libtorch", "built without penstock::libtorch"),
            "bench_memory_samples_places": ("where samples are kept", "built without penstock::jpeg"),
            "bench_autotune": ("runs that tune themselves", "built without penstock::jpeg"),
            "bench_images": ("photos to batches", "built without penstock::jpeg"),
            "bench_images_unequal": ("a large photo among thumbnails", "built without penstock::jpeg"),
            "bench_images_neighbours": ("launches beside workers", "built without penstock::jpeg")}
INSTRUCTION_BARS = {"i1": "1.1", "i1b": "0", "i1c": "0", "i2": "1.3", "i2b": "0",
                    "i15a": "3", "i15b": "3", "i15c": "0", "i15d": "0", "i15e": "0"}


def processor():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def build_facts(build):
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    compiler = CXX.search(cache).group(1)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    flags = " ".join(text for text in FLAGS.findall(cache) if text)
    return compiler, version.stdout.splitlines()[0], flags


def wanted(rows, patterns):
    """The requested rows: `4` also selects 4a and 4b, and `i` all instruction counts."""

    def asked(row):
        return any(row == p or re.fullmatch(re.escape(p) + "[a-z]", row) or (p == "i" and row[0] == "i")
                   for p in patterns)

    return [row for row in rows if not patterns or asked(row)]


def command_of(program, rows, build, compiler, options):
    quick = ["--quick"] if options.quick else []
    if program == "instructions":
        commands = []
        for name, mine in (("bench_fused", ("i1", "i2")), ("bench_order_mixture", ("i15",))):
            bars = [f"{row[1:]}:{INSTRUCTION_BARS[row]}" for row in rows if row.rstrip("abcde") in mine]
            if bars:
                commands.append([sys.executable, str(HERE / "instructions.py"), str(build / "bench" / name), *bars,
                                 *quick])
        return commands
    if program == "compile_time":
        base = [sys.executable, str(HERE / "compile_time" / "measure.py"), "--compiler", compiler, *quick]
    else:
        base = [str(build / "bench" / program), "--dir", str(build), *quick]
        base += ["--keep"] if options.keep else []
        base += ["--pairs", str(options.pairs)] if options.pairs else []
        base += ["--takes", str(options.takes)] if options.takes else []
    if not options.rows:
        return [base]
    return [[*base, "--row", row] for row in rows]


def run(command, lines):
    """Prints a program's output and keeps its rows; false if it failed."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("row\t"):
                lines.append(line.rstrip("\n").split("\t")[1:])
                print("\r" + " ".join(lines[-1][:1] + lines[-1][3:6]), file=sys.stderr, flush=True)
    return process.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--rows", default="")
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--takes", type=int, default=0)
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the table to this file")
    options = parser.parse_args()
    patterns = [p for p in options.rows.split(",") if p]
    compiler, version, flags = build_facts(options.build)
    lines, failed = [], []
    for program, rows in PROGRAMS:
        asked = wanted(rows, patterns)
        if program in OPTIONAL and not (options.build / "bench" / program).exists():
            what, why = OPTIONAL[program]
            lines += [[row, what, "", "", "", "skipped", why] for row in asked]
            continue
        for command in command_of(program, asked, options.build, compiler, options) if asked else []:
            if not run(command, lines):
                failed.append(" ".join(command))

    heads = ("row", "what", "bar", "quartile", "median", "", "notes")
    out = [
        f"{processor()}, {len(os.sched_getaffinity(0))} processors; {platform.system()} {platform.release()}",
        f"{datetime.datetime.now().astimezone().isoformat(timespec='seconds')}; {version}; {flags}",
        "command: bench/run.sh " + " ".join(sys.argv[2:]),
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
    ]
    out += ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    if options.quick:
        out += ["", "A quick run: it shows that the programs work; the figures are noise."]
    print("\n".join(out))
    if options.markdown:
        options.markdown.write_text("\n".join(out) + "\n", encoding="utf-8")
    for command in failed:
        print(f"failed: {command}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
