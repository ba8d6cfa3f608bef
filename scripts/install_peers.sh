#!/bin/sh
# Install the Debian packages of the programs that the tests use, if this user has the permission: ssearch36, blastp,
# blastdbcmd, hhfilter, mmseqs, diamond and kraken2 (oracles), hmmbuild (models), samtools (reader of SAM reports, parts of sequences), the
# PostgreSQL server (the second database system of the store), nginx (a proxy before the service), BioPerl's RemoteBlast
# (a client of the BLAST URL API), Slurm (the example of a job array; a download of 3.5 MB, 13 MB on the disk), sshfs (a
# network file system for stores; less than 1 MB), and the headless shell of the browser chromium with a font (pages of
# the service and HTML reports; a download of about 100 MB).
# Tests whose program is missing are skipped with a message.
set -eu
missing=
command -v ssearch36 >/dev/null 2>&1 || missing="$missing fasta3"
command -v blastp >/dev/null 2>&1 || missing="$missing ncbi-blast+"
command -v hmmbuild >/dev/null 2>&1 || missing="$missing hmmer"
command -v hhfilter >/dev/null 2>&1 || missing="$missing hhsuite"
command -v mmseqs >/dev/null 2>&1 || missing="$missing mmseqs2"
command -v diamond >/dev/null 2>&1 || missing="$missing diamond-aligner"
command -v kraken2-build >/dev/null 2>&1 || missing="$missing kraken2"
command -v samtools >/dev/null 2>&1 || missing="$missing samtools"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql"
command -v nginx >/dev/null 2>&1 || missing="$missing nginx"
for daemon in slurmctld slurmd munged; do
    PATH="$PATH:/usr/sbin" command -v "$daemon" >/dev/null 2>&1 || { missing="$missing slurmctld slurmd slurm-client munge"; break; }
done
{ command -v sshfs && ls /usr/lib/openssh/sftp-server; } >/dev/null 2>&1 || missing="$missing sshfs openssh-sftp-server"
perl -MBio::Tools::Run::RemoteBlast -e 1 2>/dev/null || missing="$missing libbio-tools-run-remoteblast-perl"
command -v chromium-headless-shell >/dev/null 2>&1 || command -v chromium >/dev/null 2>&1 ||
    missing="$missing chromium-headless-shell fonts-dejavu-core"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
printf 'swsearch: tests that need%s will be skipped; to run them: apt-get install%s\n' "$missing" "$missing" >&2
