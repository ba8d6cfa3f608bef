"""The example of a Slurm array, and arrays with `--shard auto`, run by a real cluster of one node.

Expected: the bytes of the run of a single process, also if a task is queued again in the middle of its share.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import DATA, PAUSED
from tests.cli.test_batch import report
from tests.patience import wait_until
from tests.peers import program
from tests.processes import PAUSE, free_port

pytestmark = pytest.mark.peer("slurm")

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmctldPort={controller_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MessageTimeout=100
KillWait=30
NodeName={host} NodeAddr=127.0.0.1 CPUs={n_cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """A running cluster; ``call`` runs one of Slurm's commands for it and returns what it prints."""

    def __init__(self, folder: Path) -> None:
        self.variables = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def call(self, name: str, *arguments: str, cwd: Path | None = None) -> str:
        command = [str(program(name)), *arguments]
        done = subprocess.run(command, env=self.variables, cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def wait_for_jobs(self) -> None:
        wait_until(lambda: not self.call("squeue", "-h").strip(), "the end of all jobs")


@contextlib.contextmanager
def running_cluster(folder: Path, n_cpus: int) -> Iterator[Cluster]:
    """Start a cluster; skip the test where it cannot run."""
    if os.geteuid() != 0:
        pytest.skip("slurmd runs as root only")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    ports = {"controller_port": free_port(), "node_port": free_port()}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder, host=host, n_cpus=n_cpus, **ports))
    cluster = Cluster(folder)
    files = ("key-file=munge.key", "socket=munge.socket", "pid-file=munged.pid", "seed-file=munged.seed")
    munge = [f"--{option}={folder}/{name}" for option, name in (file.split("=") for file in files)]
    daemons = [
        ["munged", "--foreground", "--force", f"--log-file={folder}/munged.log", *munge],
        ["slurmctld", "-D", "-c"],
        ["slurmd", "-D", "-c"],
    ]
    with contextlib.ExitStack() as stack:
        for name, *options in daemons:
            log = stack.enter_context((folder / f"{name}.out").open("w"))
            process = subprocess.Popen(
                [str(program(name)), *options], env=cluster.variables, stdout=log, stderr=subprocess.STDOUT, cwd=folder
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            if name == "munged":
                wait_until((folder / "munge.socket").exists, "munged")
        wait_until(lambda: "idle" in cluster.call("sinfo", "-h", "-o", "%T"), "an idle node")
        yield cluster


EXAMPLE = Path(__file__).parents[2] / "examples" / "slurm"

PROGRAM = """#!/bin/bash
# swsearch; if there is a paused.py, the first attempt of task 2 stops after its first query, until Slurm ends it.
if [ -e paused.py ] && [ "${{SLURM_ARRAY_TASK_ID-}}" = 2 ] && [ -z "${{SLURM_RESTART_COUNT-}}" ]; then
    exec {python} paused.py "$@" < pipe
fi
exec {python} -m swsearch "$@"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("slurm"), n_cpus=4 * 4) as running:
        yield running


@pytest.fixture
def in_folder(tmp_path, cluster, monkeypatch):
    """Run a command that submits jobs, in the folder of the test, where ``swsearch`` is :data:`PROGRAM`."""
    program = tmp_path / "bin" / "swsearch"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setitem(cluster.variables, "PATH", f"{program.parent}:{os.environ['PATH']}")

    def call(*command):
        done = subprocess.run(command, cwd=tmp_path, env=cluster.variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_a_task_that_is_queued_again_in_the_middle_loses_nothing(
    swsearch, tmp_path, cluster, in_folder, few_proteins_db
):
    assert swsearch("query", DATA / "queries.fasta", few_proteins_db, "--store", "whole.sqlite").code == 0
    (tmp_path / "paused.py").write_text(PAUSE + PAUSED.format(moment='Results, "add", 1'))
    os.mkfifo(tmp_path / "pipe")
    # Opened for reading and writing, so that neither this process nor the task waits for the other to open it.
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    array = in_folder("bash", EXAMPLE / "submit.sh", "4", DATA / "queries.fasta", few_proteins_db).split()[1]
    log = tmp_path / f"search-{array}_2.log"
    wait_until(lambda: log.exists() and "here" in log.read_text(), "the first query of task 2")
    cluster.call("scontrol", "requeue", f"{array}_2")
    state = ["squeue", "-h", "-o", "%T", "-j", f"{array}_2"]
    wait_until(lambda: cluster.call(*state).strip() == "PENDING", "the end of the first attempt of task 2")
    cluster.call("scontrol", "update", f"jobid={array}_2", "starttime=now+2")  # in the second of its end it fails
    cluster.wait_for_jobs()
    os.close(pipe)
    assert "run 1 in hits-2-of-4.sqlite: 1 query done, 1 was there before, 0 failed" in log.read_text()
    (merge,) = tmp_path.glob("merge-*.log")
    assert merge.read_text() == "run 1 in hits.sqlite: 7 queries of 4 shards\n"
    assert report(swsearch, "hits.sqlite") == report(swsearch, "whole.sqlite")


def test_the_tasks_of_arrays_find_their_shares(tmp_path, cluster, in_folder, few_proteins_db):
    """Arrays that begin at 0 or have steps are complete; some tasks of an array, submitted again, are not."""
    search = f"swsearch batch {DATA / 'queries.fasta'} {few_proteins_db} --quiet --shard"
    for array, shard in (("0-4:2", "auto"), ("3", "auto"), ("3", "auto/7")):
        command = f"{search} {shard} --store 's-{{shard}}.sqlite'"
        log = f"{array.replace(':', '-')}-{shard.replace('/', '-')}.log"
        in_folder("sbatch", f"--array={array}", "--open-mode=append", f"--output={log}", f"--wrap={command}")
    cluster.wait_for_jobs()
    stores = [f"s-{label}.sqlite" for label in ("1-of-3", "2-of-3", "3-of-3", "3-of-7")]
    assert sorted(path.name for path in tmp_path.glob("*.sqlite")) == stores
    assert (
        "--shard auto: Slurm describes task 3 of an array from 3 to 3, step 1" in (tmp_path / "3-auto.log").read_text()
    )
