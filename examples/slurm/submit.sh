#!/bin/bash
# Search with N tasks, then merge their results. Usage: bash submit.sh N QUERIES… DB [OPTIONS…]
set -euo pipefail
folder=$(dirname "$0")
array=$(sbatch --parsable --array="1-$1" "$folder/search.sbatch" "$@")
# `afterany`, because a task also fails if one of its records cannot be searched. A merge of incomplete shares is
# refused with the reason, and nothing is written.
merge=$(sbatch --parsable --dependency="afterany:$array" "$folder/merge.sbatch")
echo "array $array searches, job $merge merges into hits.sqlite"
