#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""slurm.py <train_elastic> <index_shards> <prove>: a Slurm of one node, started here and stopped again, in which four
tasks train, are killed with SIGKILL at random steps and resume with other numbers, with the record and the weights of an
uninterrupted training; and job arrays that index shards and prove an order.

Skipped if Slurm is not installed or may not be started, also in CI: it needs root and munge.
"""

import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import elastic
import launch
import shards

EPOCHS, GLOBAL = 6, 17

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={other_port}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmdSpoolDir={place}/spool
StateSaveLocation={place}/state
SlurmUser=root
SlurmdUser=root
SwitchType=switch/none
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/linear
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def unable(reason):
    print(f"not run: {reason}")
    sys.exit(launch.SKIPPED)


def fail(sentence):
    sys.exit(f"slurm: {sentence}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def slurm(place):
    """The environment in which srun and sbatch reach a Slurm of this machine alone."""
    for name in ("state", "spool"):
        (place / name).mkdir()
    settings = place / "slurm.conf"
    settings.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], port=free_port(),
                                             other_port=free_port(), place=place, processors=os.cpu_count()))
    key = place / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    environment = launch.environment() | {"SLURM_CONF": str(settings)}
    pids = [place / f"{name}.pid" for name in ("slurmd", "slurmctld", "munged")]
    try:
        for command in (["munged", f"--key-file={key}", f"--socket={place}/munge.socket", f"--pid-file={pids[2]}",
                         f"--log-file={place}/munged.log", f"--seed-file={place}/munge.seed", "--force"],
                        ["slurmctld", "-f", settings, "-i"], ["slurmd", "-f", settings]):
            started = subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True,
                                     check=False)
            if started.returncode:
                unable(f"{command[0]} does not start here: {started.stderr.strip()}")
        for _ in range(100):
            state = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True,
                                   check=False).stdout.strip()
            if state == "idle":
                break
            time.sleep(0.1)
        else:
            unable(f"the node of this Slurm does not come up; it is '{state}'")
        yield environment
    finally:
        subprocess.run(["scancel", "--full", "--state=RUNNING"], env=environment, capture_output=True, check=False)
        numbers = [int(pid.read_text()) for pid in pids if pid.exists()]
        for how, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 2)):
            for number in numbers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, how)
            end = time.monotonic() + patience
            while any(alive(number) for number in numbers) and time.monotonic() < end:
                time.sleep(0.05)


def alive(number):
    """Whether a process exists and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for_the_end(environment):
    """Waits until no step or job is left: until then a killed one may still be writing its checkpoint."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        jobs = subprocess.run(["squeue", "--noheader"], env=environment, capture_output=True, text=True, check=False)
        if jobs.returncode == 0 and not jobs.stdout.strip():
            return
        time.sleep(0.05)
    fail(f"60 s after SIGKILL there is still\n{jobs.stdout}{jobs.stderr}")


def main():
    train, index, prove = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
    for program in ("srun", "sbatch", "slurmctld", "slurmd", "munged"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            unable(f"there is no {program}")
    if os.geteuid() != 0:
        unable("only root can start a Slurm of its own")
    os.environ["PATH"] += ":/usr/sbin:/sbin"

    with tempfile.TemporaryDirectory() as name, slurm(pathlib.Path(name)) as environment:
        folder = pathlib.Path(name)
        keys = shards.make(folder, (40, 31, 52, 29))
        pattern = folder / "train-{000000..000003}.tar"

        # Not with mpirun: Slurm starts the processes, and PMIx connects them.
        kinds = subprocess.run(["srun", "--mpi=list"], env=environment, capture_output=True, text=True, check=False)
        if "pmix" not in kinds.stdout + kinds.stderr:  # it depends on the version
            unable("this Slurm has no PMIx, which Open MPI asks for")

        array = subprocess.run(["sbatch", "--wait", "-n1", "--array=2-8:3", "-o", folder / "array-%a.out", "--wrap",
                                f"{index} --shards '{pattern}'"], env=environment, capture_output=True, text=True,
                               check=False, timeout=120)
        said = "".join(sorted(p.read_text() for p in folder.glob("array-*.out")))
        if array.returncode or sorted(re.findall(r"rank (\d) of 3 \(Slurm array\)", said)) != ["0", "1", "2"]:
            fail(f"the job array:\n{array.stderr}{said}")
        if len(list(folder.glob("*.penstock-index"))) != 4:
            fail(f"the job array did not make all indexes:\n{said}")

        work = f"--data '{pattern}' --global-batch 32 --epochs 3 --topologies 1x4,4x2 --out {folder / 'proof'}"
        array = subprocess.run(["sbatch", "--wait", "-n1", "--array=1-5:2", "-o", folder / "prove-%a.out", "--wrap",
                                f"{prove} {work}"], env=environment, capture_output=True, text=True, check=False,
                               timeout=120)
        said = "".join(sorted(p.read_text() for p in folder.glob("prove-*.out")))
        if array.returncode or sorted(re.findall(r"rank (\d) of 3 \(Slurm array\): 2 topologies proved", said)) != \
                ["0", "1", "2"] or len(list((folder / "proof").glob("part-*-of-00003"))) != 3:
            fail(f"the job array that proves:\n{array.stderr}{said}")

        def start(tasks, attempt, checkpoint, *more):
            command = ["srun", "--mpi=pmix", "-n", tasks, "--overcommit", "--unbuffered", train, "--shards", pattern,
                       "--checkpoint", folder / checkpoint, "--record", folder / f"record-{attempt}", "--epochs", EPOCHS,
                       "--global-batch", GLOBAL, *more]
            return subprocess.Popen([str(c) for c in command], env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, start_new_session=True)

        def finish(tasks, attempt, checkpoint):
            process = start(tasks, attempt, checkpoint)
            try:
                said, _ = process.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()
                fail(f"srun -n {tasks} did not end")
            if process.returncode:
                fail(f"srun -n {tasks}:\n{said}")
            return said, (folder / checkpoint).read_bytes().split(b"\n", 1)[1]

        finish(1, 1, "alone")
        wanted = (folder / "alone").read_bytes().split(b"\n", 1)[1]
        reference = elastic.reference_of(elastic.read_record(folder, 1, 1), keys, EPOCHS, GLOBAL)

        said, found = finish(4, 2, "four")
        done = {}
        elastic.compare(elastic.read_record(folder, 2, 4), reference, 4, 2, done)
        if "4 processes begin" not in said or found != wanted or done != reference:
            fail(f"four tasks end with other weights or samples than one:\n{said}")

        chance, done, begins = random.Random(6), {}, []
        for attempt, tasks in enumerate((4, 2, 3, 4, 1), 3):
            if attempt == 7:
                said, found = finish(tasks, attempt, "killed")
            else:
                process, seen, stop, said = start(tasks, attempt, "killed", "--step-ms", 20), 0, chance.randrange(1, 7), ""
                for line in process.stdout:
                    said += line
                    seen += line.startswith("epoch ")
                    if seen >= stop:
                        break
                subprocess.run(["scancel", "--signal=KILL", "--full", "--state=RUNNING"], env=environment, check=False)
                process.kill()
                process.communicate()
                wait_for_the_end(environment)
            elastic.compare(elastic.read_record(folder, attempt, tasks), reference, tasks, attempt, done)
            begin = re.search(rf"{tasks} processes begin at epoch (\d+) step (\d+)", said)
            if not begin or attempt != 3 and begin.groups() == ("0", "0"):
                fail(f"attempt {attempt} on {tasks} tasks does not go on:\n{said}")
            begins.append(f"{tasks} tasks from epoch {begin[1]} step {begin[2]}")
        if done != reference or found != wanted:
            fail(f"killed again and again, steps, samples or weights are others:\n{said}")
        print(f"an array of 3 tasks, 4 tasks as one; killed four times: {', '.join(begins)}")


if __name__ == "__main__":
    main()
