#!/bin/sh
# Try the swsearch that is installed here: index, search, store, and report again, for protein and DNA. The hits must be
# those of the reference engine, which is written in NumPy, and those that the store gives back.
# Usage: try_install.sh DATA, where DATA is the folder data/ of the sources.
set -eu
data=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

try() { # try FASTA QUERIES OPTIONS...
    swsearch index "$1" -o subjects.db --quiet --force
    shift
    swsearch query "$@" subjects.db --engine cpu --store hits.sqlite --format blast6 --out found.tsv --quiet
    test -s found.tsv
    swsearch report latest --store hits.sqlite --format blast6 --out again.tsv
    cmp found.tsv again.tsv
    swsearch query "$@" subjects.db --engine reference --store none --format blast6 --out reference.tsv --quiet
    cmp found.tsv reference.tsv
    sha256sum found.tsv
}

swsearch --version
swsearch engines
# Parts of the subjects: an emulated processor takes a minute for these.
gzip -dc "$data/proteins.fasta.gz" | awk '/^>/ { n++ } n <= 60' > proteins.fasta
awk 'NR <= 150' "$data/lambda_phage.fasta" > phage.fasta
try proteins.fasta "$data/queries.fasta"
try phage.fasta "$data/lambda_reads.fastq"
printf 'swsearch works here\n'
