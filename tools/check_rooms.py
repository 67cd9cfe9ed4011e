#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who may include whom: tools/room_edges.txt, with the named exceptions of tools/room_exceptions.txt.

Also: no header of a detail folder from outside the folder that it stands in, no circle of headers, `core` keeps to the standard
library and leaves its heaviest headers alone, and no header without a __has_include guard needs a
third-party one.
"""

import pathlib

from source_tree import ROOMS, ROOT, bodies, component_of, finish, headers, includes
from source_tree import floor_of, is_umbrella, relative, room_of

HEAVY = {"iostream", "regex", "ranges", "functional", "format", "filesystem"}

STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
    csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
    exception execution filesystem format forward_list fstream functional future initializer_list
    iomanip ios iosfwd iostream istream iterator latch limits list locale map mdspan memory memory_resource
    mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
    semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf
    string string_view strstream syncstream system_error thread tuple type_traits typeindex typeinfo
    unordered_map unordered_set utility valarray variant vector version""".split()
)
SYSTEM = set(
    """aio.h arpa/inet.h dirent.h errno.h fcntl.h fnmatch.h glob.h io.h linux/futex.h poll.h pthread.h sched.h signal.h
    sys/file.h sys/ioctl.h sys/mman.h sys/resource.h sys/stat.h sys/statfs.h sys/statvfs.h sys/syscall.h sys/sysinfo.h sys/time.h
    sys/types.h sys/uio.h sys/wait.h time.h unistd.h windows.h emmintrin.h immintrin.h intrin.h""".split()
)


def rows(name):
    """The lines of a table in tools/ without comments and empty ones."""
    for line in (ROOT / "tools" / name).read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line:
            yield line


def edge_rows():
    """(from, to) of each edge in tools/room_edges.txt."""
    for line in rows("room_edges.txt"):
        sources, targets = (part.split() for part in line.split("->"))
        yield from ((source, target) for source in sources for target in targets)


def within(folder):
    """`source/*` for `source/tar`: how tools/room_edges.txt names each folder of a room."""
    return f"{folder.rpartition('/')[0]}/*" if folder and "/" in folder else folder


def allowed(edges, source, target):
    """May a header of penstock/ include another one?"""
    if is_umbrella(source):
        # <room>.hpp gathers its room, penstock.hpp and all.hpp the headers that programs use
        return pathlib.PurePath(source).stem in (room_of(target), "penstock", "all")
    here, there = floor_of(source), floor_of(target)
    if here == there:
        return True
    if is_umbrella(target) or ("/detail/" in target and not f"{here}/".startswith(f"{there}/")):
        return False
    return any(edge in edges.get(room, ()) for room in (here, within(here)) for edge in ("*", there, within(there), target))


def circles(graph):
    """Each chain of headers that leads back to its beginning, once."""
    done, path, found = set(), [], []

    def visit(node):
        if node in path:
            found.append(path[path.index(node):] + [node])
            return
        if node in done:
            return
        path.append(node)
        for following in graph.get(node, ()):
            visit(following)
        path.pop()
        done.add(node)

    for node in sorted(graph):
        visit(node)
    return found


def main():
    faults, edges, exceptions, used = [], {}, {}, set()
    for source, target in edge_rows():
        edges.setdefault(source, set()).add(target)
    for line in rows("room_exceptions.txt"):
        parts = line.split(maxsplit=2)
        if len(parts) != 3:
            faults.append(f"room_exceptions.txt: no reason in '{line}'")
        else:
            exceptions[(parts[0], parts[1])] = parts[2]

    graph = {}
    for header in headers() + bodies():
        name = relative(header)
        # a header includes everything that its bodies include, and only it includes the bodies
        node = name.replace(".ipp", ".hpp")
        if not is_umbrella(name) and room_of(name) not in ROOMS:
            faults.append(f"{name}: '{room_of(name)}' is not a room")
        for number, opening, what in includes(header):
            where = f"{name}:{number}"
            if opening == '"':
                faults.append(f'{where}: "{what}" must be included as <penstock/...>')
            elif what.startswith("penstock/"):
                target = what.removeprefix("penstock/")
                if node == target.replace(".ipp", ".hpp"):
                    continue
                if target.endswith(".ipp"):
                    faults.append(f"{where}: {target} belongs to its header alone")
                graph.setdefault(node, []).append(target)
                if allowed(edges, name, target):
                    continue
                if (node, target) in exceptions:
                    used.add((node, target))
                else:
                    faults.append(f"{where}: {floor_of(name) or name} may not include {target}")
            elif what in STANDARD:
                if room_of(name) == "core" and what in HEAVY:
                    faults.append(f"{where}: <{what}> is too heavy for core")
            elif what in SYSTEM:
                if room_of(name) == "core":
                    faults.append(f"{where}: core includes the standard library only, not <{what}>")
            elif component_of(header) == "core":
                faults.append(f"{where}: <{what}> is no standard or system header, and there is no guard")

    for unused in sorted(exceptions.keys() - used):
        faults.append(f"room_exceptions.txt: {' '.join(unused)} is not needed")
    for circle in circles(graph):
        faults.append("a circle: " + " -> ".join(circle))
    finish("check_rooms", faults, f"{len(graph)} headers that include others")


if __name__ == "__main__":
    main()
