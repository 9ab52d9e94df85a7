#!/bin/sh
# The shared library exports hurray_* and nothing else, exports all that the public headers declare, and needs no CUDA library.
set -eu
library=$1 headers=$2
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort -u)
stray=$(printf '%s\n' "$exported" | grep -v '^hurray_' || true)
[ -z "$stray" ] || { echo "exported, but not hurray_*:"; echo "$stray"; exit 1; }
declared=$(cat "$headers"/hurray.h "$headers"/hurray/*.h | tr '\n' ' ' | grep -o 'HURRAY_API [^;{]*(' | grep -o 'hurray_[a-z0-9_]* *(' | tr -d ' (' | sort -u)
missing=$(printf '%s\n' "$declared" | while read -r name; do printf '%s\n' "$exported" | grep -qx "$name" || echo "$name"; done)
[ -z "$missing" ] || { echo "declared, but not exported:"; echo "$missing"; exit 1; }
extra=$(printf '%s\n' "$exported" | while read -r name; do printf '%s\n' "$declared" | grep -qx "$name" || echo "$name"; done)
[ -z "$extra" ] || { echo "exported, but not declared in a public header:"; echo "$extra"; exit 1; }
readelf -d "$library" | grep NEEDED
! readelf -d "$library" | grep -E 'NEEDED.*lib(cuda|cudart)' || exit 1
echo "$(printf '%s\n' "$exported" | wc -l) symbols, all declared"
