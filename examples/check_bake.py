#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bakes small made-up shards, and checks that killing changes nothing.

check_bake.py <bake>

The images are drawn here, as npy and PNG members. One baking runs through; others are killed at any moment and
run with other numbers of workers. All must end with the same shards, byte for byte.
"""

import fcntl
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

from drawn_shards import npy, picture, png, write_shard

bake = str(pathlib.Path(sys.argv[1]).resolve())


def run(*command, expect=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != expect:
        sys.exit(f"{command} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    if expect != 0 and len(done.stderr.splitlines()) != 1:
        sys.exit(f"{command} did not say in one line what is wrong:\n{done.stderr}")
    return done.stdout + done.stderr


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def files_of(folder):
    """Everything but the indexes, which hold the shards' times."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith(".penstock-index")}


def members_of(folder):
    found = {}
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as archive:
            for entry in archive:
                found[entry.name] = archive.extractfile(entry).read()
    return found


def npy_shape(file):
    head = file[10:10 + struct.unpack("<H", file[8:10])[0]].decode()
    return eval(head, {"__builtins__": {}})["shape"]


def jpeg_shape(file):
    at = 2
    while file[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + struct.unpack(">H", file[at + 2:at + 4])[0]
    return struct.unpack(">HH", file[at + 5:at + 9]) + (file[at + 9],)


def luma_factors(file):
    """The sampling factors of the first component: 0x11 is 4:4:4, and 0x22 is 4:2:0."""
    at = 2
    while file[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + struct.unpack(">H", file[at + 2:at + 4])[0]
    return file[at + 11]


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    source = random.Random(1)
    pictures = {}
    for shard in range(3):
        samples = []
        for i in range(shard * 40, shard * 40 + 40 - shard):
            size = (source.randrange(90, 160), source.randrange(90, 160)) if i % 4 else (40, 30)
            image = picture(*size, i % 4, source)
            pictures[f"{i:04d}"] = image
            kind = {"png": png(image)} if i % 2 else {"npy": npy(image)}
            samples.append((f"{i:04d}", {"cls": b"%d" % (i % 4), **kind, "note.txt": b"number %d" % i}))
        write_shard(folder / f"in-{shard}.tar", samples)
    given = ["--shards", folder / "in-{0..2}.tar", "--max-side", 80, "--samples-per-shard", 25]

    def baking(out, *more, raw=0.5, workers=2):
        return [bake, "--out", folder / out, *given, "--raw", raw, "--workers", workers, *more]

    # What is in the shards.
    for raw in (0, 0.5, 1):
        out = run(*baking(f"raw-{raw}", raw=raw))
        found = members_of(folder / f"raw-{raw}")
        keys = {name.split(".")[0] for name in found}
        check(keys == set(pictures), f"raw {raw}: every sample is there")
        check(all(found[f"{key}.note.txt"] == b"number %d" % int(key) and found[f"{key}.cls"] == b"%d" % (int(key) % 4)
                  for key in keys), f"raw {raw}: other members are copied")
        raws = {key for key in keys if f"{key}.npy" in found}
        check(all((f"{key}.jpg" in found) != (key in raws) for key in keys), f"raw {raw}: one image to a sample")
        low, high = {0: (0, 0), 0.5: (40, 77), 1: (len(keys), len(keys))}[raw]
        check(low <= len(raws) <= high and f"{len(raws)} of them raw" in out, f"raw {raw}: {len(raws)} are raw")
        for key in keys:
            height, width, pixels = pictures[key]
            longer = max(height, width)
            wanted = (height, width, 3) if longer <= 80 else (height * 80 // longer, width * 80 // longer, 3)
            got = npy_shape(found[f"{key}.npy"]) if key in raws else jpeg_shape(found[f"{key}.jpg"])
            if got != wanted:
                sys.exit(f"failed: image {key} of {height} x {width} became {got}, not {wanted}")
            if key in raws and longer <= 80 and found[f"{key}.npy"] != npy(pictures[key]):
                sys.exit(f"failed: image {key} was small enough, and its pixels changed")
        print(f"ok: raw {raw}: the longer side is at most 80, and small pictures are not resized")
    check(len(list((folder / "raw-0.5").glob("*.tar"))) == 5, "117 samples in shards of 25 are 5 shards")

    # JPEGs that are small enough are not compressed again.
    jpegs = {name: body for name, body in members_of(folder / "raw-0").items() if name.endswith(".jpg")}
    again = [bake, "--shards", folder / "raw-0" / "baked-*.tar", "--out", folder / "again", "--max-side", 80]
    run(*again, "--quality", 10)
    found = members_of(folder / "again")
    check(all(found[name] == body for name, body in jpegs.items()), "a small JPEG keeps its bytes")
    again = [bake, "--shards", folder / "raw-0" / "baked-*.tar", "--out", folder / "smaller", "--max-side", 40]
    run(*again, "--quality", 10)
    found = members_of(folder / "smaller")
    check(all(max(jpeg_shape(found[name])) <= 40 for name in jpegs), "a large one becomes smaller")

    # Whatever the number of workers, and however often it is killed.
    wanted = files_of(folder / "raw-0.5")
    for workers in (0, 1, 3):
        run(*baking(f"workers-{workers}", workers=workers))
        check(files_of(folder / f"workers-{workers}") == wanted, f"{workers} workers write the same bytes")
    run(*baking("shuffled", "--shuffle", 7))
    shuffled = files_of(folder / "shuffled")
    check(members_of(folder / "shuffled").keys() != members_of(folder / "raw-0.5").keys()
          or list(members_of(folder / "shuffled")) != list(members_of(folder / "raw-0.5")), "it can be shuffled")
    for number, wait in enumerate((0.005, 0.02, 0.05)):
        for more, end in (((), wanted), (("--shuffle", 7), shuffled)):
            out = f"killed-{number}-{len(more)}"
            kills, resumed, pause, states = 0, 0, wait, {}
            while True:
                process = subprocess.Popen(
                    [str(c) for c in baking(out, *more, workers=source.randrange(4))],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                time.sleep(pause * source.uniform(0.5, 1.5))
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
                said = process.communicate()[0]
                if (folder / out / "baked.state").exists():
                    state = (folder / out / "baked.state").read_bytes()
                    states[int(state.split(b"\n")[1].split()[0])] = state
                resumed += "continuing after" in said
                if process.returncode != -signal.SIGKILL:
                    break
                pause *= 1.2
            check(process.returncode == 0, f"it ends, after {kills} kills and {resumed} resumptions\n{said}")
            check(files_of(folder / out) == end, "with the bytes of a run that was not killed, and no other file")
    # Killed where the clock never stops it: the last shard is finished, or half written, and the state is older.
    for shards, state in states.items():
        late = folder / f"late-{shards}"
        late.mkdir()
        (late / "baked.state").write_bytes(state)
        for name in sorted(end)[:shards + 1]:  # the last name is baked.state
            (late / name).write_bytes(end[name])
        if shards < 5:
            (late / f"baked-{shards + 1:06d}.tar.tmp-123-456").write_bytes(b"half")
        run(*baking(late.name, "--shuffle", 7))
        check(files_of(late) == end, f"killed after shard {shards} was finished, and before that was noted")
    before = {p.name: p.stat().st_mtime_ns for p in (folder / "raw-0.5").iterdir() if p.suffix == ".tar"}
    check("117 samples in 5 shards" in run(*baking("raw-0.5")), "another start says that all is done")
    check(all((folder / "raw-0.5" / name).stat().st_mtime_ns == at for name, at in before.items()),
          "and leaves the shards as they are")

    # One clear sentence for each mistake.
    def refused(what, *words):
        error = run(*what, expect=1)
        check(all(word in error for word in words), f"refused: {error.strip()}")

    refused(baking("raw-0.5", raw=0.25), "raw 0.500000", "raw 0.250000", "choose another folder")
    refused(baking("raw-0.5", "--shuffle", 7), "another sequence")
    refused([*baking("raw-0.5", *again[1:3])], "another dataset")
    refused(baking("x", "--quality", 0), "--quality is from 1 to 100")
    refused(baking("x", raw=2), "--raw needs a number from 0 to 1")
    refused(baking("x", raw="half"), "'half' is none")
    refused(baking("x", "--samples-per-shard", 0), "room for at least one sample")
    (folder / "file").write_bytes(b"")
    refused(baking("file/out"), "file/out")
    refused([bake, "--shards", folder / "none-*.tar", "--out", folder / "x"], "none-")
    refused(baking("x", "--name", ""), "not empty")
    refused(baking("x", "--name", "a/b"), "has no '/'")
    refused(baking("x", "--chroma", "411"), "source, 444 or 420")
    refused(baking("x", workers=4294967297), "--workers is at most 1024")
    refused([*baking("."), "--name", "other"], "is the folder of", "choose another")
    write_shard(folder / "empty.tar", [])
    refused([bake, "--shards", folder / "empty.tar", "--out", folder / "none"], "no sample to bake")
    refused([bake, "--shards", folder / "empty.tar", "--out", folder / "none"], "no sample to bake")

    # Files of others stay, and one that looks like a shard of this run is refused.
    (folder / "foreign").mkdir()
    for name in ("baked-000000.tar.tmp-1-2", "baked-000000.tar"):
        (folder / "foreign" / name).write_bytes(b"theirs")
    refused(baking("foreign"), "has a shard baked-000000.tar that is not of this run")
    check(len(list((folder / "foreign").glob("*.tar*"))) == 2, "and nothing was removed")
    samples = [(f"{i}", {"png": png(pictures["0001"]) if i != 3 else b"no image"}) for i in range(12)]
    write_shard(folder / "one-bad.tar", samples)
    one_bad = [bake, "--shards", folder / "one-bad.tar", "--samples-per-shard", 2]
    run(*one_bad, "--out", folder / "whole", "--skip", 1)
    begun = [*one_bad, "--out", folder / "begun"]
    refused(begun, "key 3")  # after the first shard
    begun += ["--skip", 1]
    mine = folder / "begun" / "baked-000001.tar.tmp-123-456"
    others = [folder / "begun" / name for name in (
        "baked-my.tmp-notes", "baked-000001.tar.tmp-mine", "baked-val-000007.tar", "baked-val-000007.tar.tmp-1-2",
        "baked-7.tar", "baked-0000001.tar")]
    for path in (mine, *others):
        path.write_bytes(b"theirs")
    stray = folder / "begun" / "baked-000003.tar"
    stray.write_bytes(b"theirs")
    refused(begun, "has a shard baked-000003.tar that is not of this run")
    check(mine.exists(), "what is refused is left as it is")
    stray.unlink()
    run(*begun)
    check(not mine.exists() and all(path.read_bytes() == b"theirs" for path in others),
          "only what a killed run was writing is removed")
    for path in others:
        path.unlink()
    check(files_of(folder / "begun") == files_of(folder / "whole"), "and it ends with the same bytes")
    extra = folder / "begun" / "baked-000006.tar"
    extra.write_bytes(b"theirs")
    refused(begun, "has a shard baked-000006.tar that is not of this run")
    extra.unlink()
    cut = folder / "begun" / "baked-000002.tar"
    cut.write_bytes(cut.read_bytes()[:-512])
    refused(begun, "baked-000002.tar has", "when it was finished")

    # Two names in one folder.
    run(*baking("raw-1", "--name", "baked-val", raw=0))
    run(*baking("raw-1", "--name", "val", raw=0))
    check("117 samples in 5 shards" in run(*baking("raw-1", raw=1)), "names in one folder do not disturb each other")

    (folder / "raw-0.5" / "baked.lock").write_bytes(b"")
    run(*baking("raw-0.5"))
    check(files_of(folder / "raw-0.5") == wanted, "killed when all was done: the lock is removed")

    # A folder that is complete may be read-only; another process with the lock is noticed.
    (folder / "raw-1").chmod(0o555)
    check("117 samples" in run(*baking("raw-1", raw=1)), "a complete, read-only folder is no error")
    (folder / "raw-1").chmod(0o755)
    (folder / "locked").mkdir()
    with open(folder / "locked" / "baked.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(baking("locked"), "another process is baking")
        check([p.name for p in (folder / "locked").iterdir()] == ["baked.lock"], "and nothing was written")
    run(*baking("locked"))
    check(files_of(folder / "locked") == wanted, "a lock whose process is gone does not matter")

    # A mask would not fit its image any more.
    pair = {"jpg": jpegs["0001.jpg"], "mask.png": png(pictures["0001"])}
    write_shard(folder / "masks.tar", [("5", pair)])
    masks = [bake, "--shards", folder / "masks.tar", "--max-side", 40]
    refused([*masks, "--out", folder / "m"], "'mask.png'", "beside 'jpg'", "--copy-others 1", "key 5")
    check(not list((folder / "m").glob("*.tar*")), "and no shard was written")
    run(*masks, "--out", folder / "m", "--copy-others", 1)
    found = members_of(folder / "m")
    check(found["5.mask.png"] == pair["mask.png"] and max(jpeg_shape(found["5.jpg"])) <= 40, "unless it is wanted so")
    run(*masks[:3], "--max-side", 0, "--out", folder / "m0")

    # Full chroma stays full.
    for given_chroma, chroma in (((), 0x11), (("--chroma", 420), 0x22), (("--chroma", 444), 0x11)):
        run(*baking(f"chroma-{len(given_chroma)}-{chroma}", *given_chroma, raw=0))
        found = members_of(folder / f"chroma-{len(given_chroma)}-{chroma}")
        check(all(luma_factors(body) == chroma for name, body in found.items() if name.endswith(".jpg")),
              f"{given_chroma}: the factors of luma are {chroma:#x}")
    for source_chroma, wanted_chroma in (("chroma-2-34", 0x22), ("chroma-0-17", 0x11)):
        run(bake, "--shards", folder / source_chroma / "baked-*.tar", "--out", folder / f"of-{source_chroma}",
            "--max-side", 40)
        found = members_of(folder / f"of-{source_chroma}")
        check(all(luma_factors(body) == wanted_chroma for name, body in found.items() if name.endswith(".jpg")),
              f"JPEGs of {source_chroma} stay so")

    # Bad images may be skipped, also by a run that failed before.
    samples = [(f"{i}", {"png": png(pictures["0001"]) if i not in (3, 7, 11) else b"no image"}) for i in range(12)]
    write_shard(folder / "damaged.tar", samples)
    damaged = [bake, "--shards", folder / "damaged.tar", "--out", folder / "d", "--samples-per-shard", 2]
    refused(damaged, "key 3")
    refused([*damaged, "--skip", 1], "key 7", "budget")
    out = run(*damaged, "--skip", 3)
    check("continuing after" in out and "9 samples in 5 shards" in out and "3 bad samples skipped" in out,
          "three bad images are skipped and counted")
    check("3 bad samples skipped" in run(*damaged), "and another start knows it")
    check({name.split(".")[0] for name in members_of(folder / "d")} == {f"{i}" for i in range(12)} - {"3", "7", "11"},
          "the others are there")

    (folder / "again" / "baked-000000.tar").unlink()
    refused([*again[:4], folder / "again", *again[5:], "--quality", 10, "--max-side", 80], "was finished and is gone")
    for members, words in (({"jpg": b"GIF89a no jpeg"}, ("GIF", "key 7")), ({"txt": b"x"}, ("no image", "'webp'")),
                           ({"jpg": b""}, ("empty",)), ({"png": png(pictures["0001"]), "jpg": b""}, ("second image", "'png'")),
                           ({"png": png(pictures["0001"]), "npy": b"features"}, ("'npy'", "has one already"))):
        write_shard(folder / "bad.tar", [("6", {"png": png(pictures["0001"])}), ("7", members)])
        refused([bake, "--shards", folder / "bad.tar", "--out", folder / f"bad-{len(words)}-{words[0]}", "--raw", 1],
                *words)
