#!/bin/sh
# Installs into a folder of its own and builds a small project against it, through CMake and through pkg-config.
set -eu
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake -S "$source/tests/install/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/consumer" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/consumer/consumer"
"$work/consumer/consumer_static"
libdir=$(find "$work/prefix" -name hurray.pc -exec dirname {} \;)
PKG_CONFIG_PATH=$libdir
export PKG_CONFIG_PATH
cc -std=c17 "$source/tests/install/consumer/main.c" $(pkg-config --cflags --libs hurray) -Wl,-rpath,"$(dirname "$libdir")" -o "$work/by_pkg_config"
"$work/by_pkg_config"
"$work/prefix/bin/hurray" --version
