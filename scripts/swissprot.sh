#!/bin/sh
# Write the 516,371 proteins of Swiss-Prot of January 2014 (186,717,374 residues) that Debian's package metastudent-data
# has as BLAST databases, each accession once, to the FASTA file in the first argument, and every 2,581st of them (201
# queries) to the file in the second.
# Usage: swissprot.sh PROTEINS.fasta QUERIES.fasta
# Downloads 225 MB; needs apt-get, dpkg-deb and blastdbcmd (Debian: ncbi-blast+).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
proteins=$(realpath "$1")
queries=$(realpath "$2")
cd "$work"
apt-get download -qq metastudent-data
dpkg-deb --extract metastudent-data_*.deb package
for part in BPO MFO CCO; do
    blastdbcmd -db "$work/package/usr/share/metastudent-data/dataset_201401/$part/goasp.fasta" -entry all -outfmt '%t %s'
done | awk '{ split($1, words, "|") } !seen[words[1]]++ { print ">" words[1]; print $NF }' > proteins.fasta
awk '/^>/ { n++ } n % 2581 == 1' proteins.fasta > queries.fasta
mv proteins.fasta "$proteins"
mv queries.fasta "$queries"
