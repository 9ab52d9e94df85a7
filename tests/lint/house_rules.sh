#!/bin/sh
# House rules that a grep can keep: includes never point up, vendor headers in one file each, no raw malloc, no long files.
cd "$1" || exit 1
bad=0
complain() { bad=1; printf '%s\n%s\n' "$1" "$2"; }
# rooms FOLDER MAY...: files of FOLDER include only headers of these rooms.
rooms() {
    folder=$1; shift
    allowed=$(printf '%s|' "$@")
    found=$(grep -rnE '^#include "' "src/$folder" 2>/dev/null | grep -vE "#include \"(hurray/|hurray\.h)" | grep -vE "#include \"(${allowed%|})/" || true)
    [ -z "$found" ] || complain "src/$folder includes what it may not:" "$found"
}
rooms base base
rooms format format base
rooms core core format base
rooms driver driver core format base
rooms cpu cpu format base
rooms cuda cuda base cpu loader
rooms import import core driver format base
rooms loader loader import core driver cpu format base
found=$(grep -rnE '^#include "' src/cuda 2>/dev/null | grep '"cpu/' | grep -vE '"cpu/(numa|region)\.h"' || true)
[ -z "$found" ] || complain "src/cuda may include of src/cpu only numa.h and region.h:" "$found"
found=$(grep -rnE '#include "(base|format|core|driver|cpu|cuda|loader|import)/' src/cli samples bench 2>/dev/null || true)
[ -z "$found" ] || complain "the command, samples and bench use public headers only:" "$found"
found=$(grep -rlE '#include <cuda' src | grep -v '^src/cuda/api\.c$' || true)
[ -z "$found" ] || complain "only src/cuda/api.c includes NVIDIA headers:" "$found"
found=$(grep -rlE '#include <hwloc' src | grep -v '^src/cpu/numa\.c$' || true)
[ -z "$found" ] || complain "only src/cpu/numa.c includes hwloc:" "$found"
found=$(grep -rlE '#include <zlib' src | grep -vE '^src/(cpu/transport_gzip|import/(npz|byte_source|inflate)[a-z_]*)\.c$' || true)
[ -z "$found" ] || complain "only the gzip transport and the NPZ reader include zlib:" "$found"
found=$(grep -rnE '(^|[^a-z_])(malloc|calloc|realloc|free|strdup)\(' src --include='*.c' | grep -vE '^src/(cli/|base/alloc\.c)' || true)
[ -z "$found" ] || complain "memory comes from base/alloc.h:" "$found"
found=$(grep -rnE '(^|[^a-z_.])(printf|puts|fprintf|abort|exit|perror)\(' src --include='*.c' | grep -vE '^src/cli/' || true)
[ -z "$found" ] || complain "the library never prints, exits or aborts:" "$found"
found=$(find src include tests samples bench -name '*.[ch]' -exec wc -l {} + 2>/dev/null | awk '$2 != "total" && $1 > 700')
[ -z "$found" ] || complain "files above 700 lines:" "$found"
[ $bad -eq 0 ] && echo "house rules kept"
exit $bad
