# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tar shards with one member for each sample, for those peers that read tar and write none."""

import io
import pathlib
import tarfile


def shards(work, count, field, contents):
    """The names of `count` shards with members of the suffix `field`."""

    def write(path):
        pathlib.Path(path).mkdir()
        samples = iter(contents)
        for shard in range(count):
            with tarfile.open(f"{path}/{shard:04}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                for place in range(work.samples // count):
                    content = next(samples)
                    info = tarfile.TarInfo(f"{shard * work.samples // count + place:09}.{field}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))

    folder = pathlib.Path(work.once(f"{count}-shards", write))
    return sorted(map(str, folder.glob("*.tar")))
