#!/bin/sh
# The test of the sample embed: with the model as it was published, then converted to .hrry, whose tensors lie aligned in the file.
# usage: run.sh EMBED CONVERT     exit 77: the model is not to be had here
set -u
here=$(cd "$(dirname "$0")" && pwd)
embed=$1 convert=$2
model=$here/../../build/peers/models/all-minilm-l6-v2/model.safetensors
[ -e "$model" ] || sh "$here/../../scripts/fetch-models" all-minilm-l6-v2 || { echo "SKIP: the model all-MiniLM-L6-v2 could not be fetched"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$embed" "$model" "$here/tokens.txt" "$here/expected.txt" || exit 1
"$convert" "$model" "$work/model.hrry" || exit 1
cat "$work/model.hrry" >/dev/null # warm: only then is a mapping chosen
"$embed" "$work/model.hrry" "$here/tokens.txt" "$here/expected.txt" >"$work/out" || { cat "$work/out"; exit 1; }
cat "$work/out"
grep -q '90265600 of them used where the file is mapped' "$work/out" || { echo "the aligned file was not used in place"; exit 1; }
