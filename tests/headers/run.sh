#!/bin/sh
# Each public header stands alone, as C11, C17 and C++17, with warnings as errors.
set -eu
include=$1 generated=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
for header in $(cd "$include" && ls hurray.h hurray/*.h *.hpp 2>/dev/null); do
    printf '#include "%s"\nextern int header_stands_alone;\n' "$header" >"$work/one.c"
    case $header in *.hpp) ;; *)
        for standard in c11 c17; do
            cc -std=$standard -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror -fsyntax-only -I "$include" -I "$generated" "$work/one.c"
        done ;;
    esac
    # C++ before 20 has no anonymous unions by its pedantic letter; everything else is asked for.
    c++ -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I "$include" -I "$generated" "$work/one.c"
    count=$((count + 1))
done
echo "$count headers stand alone"
