"""A Slurm cluster of one node in a folder: munged, slurmctld and slurmd of Debian, as root and without systemd."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.peers import program
from tests.processes import free_port

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
