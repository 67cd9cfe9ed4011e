# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the scripts here: several processes of a program on this machine, under mpirun."""

import os
import shutil
import signal
import subprocess
import sys

SKIPPED = 77


def skip(reason):
    """In CI every tool must be installed; elsewhere a missing one skips the test."""
    print(f"not run: {reason}")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)


def need_mpirun():
    """mpirun, or the end of the test."""
    mpirun = os.environ.get("MPIRUN") or shutil.which("mpirun")
    if not mpirun:
        skip("there is no mpirun; tools/install_missing.sh names the package that has it")
    return mpirun


def environment():
    """Open MPI on one machine: as root in a container, with only shared memory and more processes than
    processors. Other MPIs ignore these."""
    wanted = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_btl": "self,vader",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_plm": "isolated",
        "OMPI_MCA_oob_tcp_if_include": "lo",
    }
    # A test that runs inside another launcher's job is not part of that job.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PMI_", "PMIX_", "OMPI_COMM_"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "PENSTOCK_WORLD_SIZE"):
        kept.pop(name, None)
    return kept | wanted


def start(processes, *command, **options):
    """Starts `processes` of a program, in a group of their own so that all can be killed at once."""
    words = [need_mpirun(), "-np", str(processes), *(str(c) for c in command)]
    return subprocess.Popen(words, env=environment(), start_new_session=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)


def tree_of(pid):
    """A process and all its descendants: mpirun gives each of its processes a group of its own."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry))
    found, queue = [], [pid]
    while queue:
        one = queue.pop()
        found.append(one)
        queue += children.get(one, [])
    return found


def kill(process):
    """Sends SIGKILL to all of them; returns when the launcher has exited."""
    for pid in tree_of(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate()


def run(processes, *command, timeout=240):
    """The exit status and output of this many processes; a hang ends the test with their output."""
    process = start(processes, *command)
    try:
        said, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill(process)
        sys.exit(f"{processes} of {command[0]} did not end in {timeout} s")
    return process.returncode, said
