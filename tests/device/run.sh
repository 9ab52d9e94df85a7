#!/bin/sh
# The check on a machine with a GPU: facts, the link by itself, the loader in every mode, memcheck and initcheck, speeds beside other
# packages, the ring at other sizes, one load from the start of its process; results last.
#
# Not run on a GPU yet: its programs compile, and it was seen to skip where there is no GPU; nothing more is known of it.
#
# usage: run.sh [BINARIES]         default: build/release/device, as -DHURRAY_BUILD_DEVICE_TESTS=ON makes it
#        run.sh pack BINARIES      puts the shared libraries that they need into BINARIES/lib, for a machine that lacks them
# OUT: folder for the logs (default: BINARIES/out). HURRAY_DEVICE_WORK: folder for the models (default: BINARIES/work), no tmpfs if cold
# figures are wanted. Exit 0: all right; 1: a wrong byte or a failed check; 77: no GPU. All in 225 s; a step that a tool or time is missing
# for says SKIP with the reason.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs="h2d_limit gpu_suite gpu_bench gpu_sweep gpu_once"

if [ "${1:-}" = pack ]; then
    to=$(cd "${2:-/nonexistent}" 2>/dev/null && pwd) || { echo "usage: run.sh pack BINARIES"; exit 1; }
    mkdir -p "$to/lib" || exit 1
    for program in $programs; do ldd "$to/$program" || exit 1; done |
        awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|ld-linux.*)\.so/ { print $3 }' | sort -u |
        while read -r library; do case $library in "$to"/lib/*) ;; *) cp "$library" "$to/lib/" ;; esac; done
    ls "$to/lib"
    exit 0
fi

# What a step runs in a process of its own, so that a time limit can end it.
case ${1:-} in
_facts)
    uname -srm
    lscpu 2>/dev/null | grep -E '^(Model name|CPU\(s\)|L3 cache|NUMA node\(s\)|Hypervisor)' || echo "SKIP(lscpu)"
    grep -E '^(MemTotal|MemAvailable)' /proc/meminfo
    echo "transparent huge pages: $(cat /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || echo unknown)"
    grep 'Max locked memory' /proc/self/limits
    echo "io_uring disabled: $(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo unknown)"
    if [ -e /proc/modules ]; then echo "/proc/modules: there"; else echo "/proc/modules: not there"; fi
    df -hT "$3" | tail -n 1
    columns=index,name,driver_version,memory.total,memory.free,pcie.link.gen.max,pcie.link.width.max,mig.mode.current
    nvidia-smi --query-gpu=$columns --format=csv 2>/dev/null ||
        echo "SKIP(nvidia-smi)"
    ldd "$2/gpu_suite"
    exit 0
    ;;
_sanitizer) # BINARIES MODELS SECONDS TOOL OPTION...; one load in each mode: these tools are slow
    tool=$(command -v compute-sanitizer) || { echo "SKIP(compute-sanitizer is not installed)"; exit 77; }
    binaries=$2 folder=$3 limit=$4
    shift 4
    timeout -k 5 "$limit" "$tool" --error-exitcode 9 --tool "$@" "$binaries/gpu_suite" "$folder" modes
    code=$?
    case $code in 124 | 137) echo "SKIP(time: not done in $limit s)"; exit 77 ;; esac
    exit $code
    ;;
esac

bin=${1:-$here/../../build/release/device}
bin=$(cd "$bin" 2>/dev/null && pwd) || {
    echo "SKIP: no folder ${1:-build/release/device}: configure with -DHURRAY_BUILD_DEVICE_TESTS=ON and build"
    exit 77
}
out=${OUT:-$bin/out}
models=${HURRAY_DEVICE_WORK:-$bin/work}
begin=$(date +%s)
deadline=225
bad=0
summary=
note() { summary="$summary
  $1"; }

# Binaries that cannot be used are a fault where there is a GPU, and a reason to skip elsewhere.
unusable() {
    printf '%s\n' "$1"
    if [ -e /dev/nvidiactl ]; then exit 1; fi
    exit 77
}
for program in $programs; do
    [ -x "$bin/$program" ] || unusable "SKIP: $bin/$program is not there: configure with -DHURRAY_BUILD_DEVICE_TESTS=ON and build"
    missing=$(ldd "$bin/$program" 2>&1 | grep 'not found')
    [ -z "$missing" ] || unusable "SKIP: $program does not start here (use run.sh pack where it was built): $missing"
done
# Is there a GPU? Without arguments the suite answers 77 when there is none, and 2, its usage, when there is.
probe=$("$bin/gpu_suite" 2>/dev/null)
case $? in
2) ;;
77) echo "$probe"; echo "Nothing was checked: this needs a machine with an NVIDIA GPU and its driver."; exit 77 ;;
*) echo "WRONG: gpu_suite does not start"; exit 1 ;;
esac
mkdir -p "$out" "$models" || exit 1

# step NAME SECONDS COMMAND...: its output to the screen and to OUT/NAME.log.
step() {
    name=$1 limit=$2
    shift 2
    left=$((deadline - ($(date +%s) - begin)))
    cut=
    [ "$left" -ge "$limit" ] || { limit=$left cut=yes; }
    if [ "$left" -lt 5 ]; then note "$name: SKIP(time)"; return; fi
    printf '\n== %s (%d s left)\n' "$name" "$left"
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    code=$?
    cat "$out/$name.log"
    case $code in
    0) note "$name: all right" ;;
    77) note "$name: $(grep -m 1 SKIP "$out/$name.log" || echo SKIP)" ;;
    124 | 137) if [ -n "$cut" ]; then note "$name: SKIP(time)"; else bad=1; note "$name: WRONG: not done after $limit s"; fi ;;
    *) bad=1; note "$name: WRONG (exit $code)" ;;
    esac
    results=$(sed -n 's/^RESULT /    /p' "$out/$name.log")
    [ -z "$results" ] || summary="$summary
$results"
}

steps() {
    free=$(df -Pm "$models" | awk 'NR == 2 { print $4 }')
    mib=2048
    while [ "$mib" -ge 64 ] && [ $((mib * 3)) -gt "$free" ]; do mib=$((mib / 2)); done
    step facts 10 sh "$0" _facts "$bin" "$models"
    step h2d_limit 40 "$bin/h2d_limit"
    step gpu_suite 90 "$bin/gpu_suite" "$models"
    step memcheck 30 sh "$0" _sanitizer "$bin" "$models" 20 memcheck --leak-check full --report-api-errors all
    step initcheck 30 sh "$0" _sanitizer "$bin" "$models" 20 initcheck
    if [ "$mib" -ge 64 ]; then step gpu_bench 90 "$bin/gpu_bench" "$models" "$mib"; else note "gpu_bench: SKIP(disk: $free MiB free)"; fi
    if [ -e "$models/bench.hrry" ]; then
        step gpu_once 20 "$bin/gpu_once" "$models/bench.hrry"
        step gpu_sweep 40 "$bin/gpu_sweep" "$models/bench.hrry" 25
    fi
    if [ -e "$models/bench.safetensors" ]; then
        if command -v python3 >/dev/null; then
            step bench_peers 60 python3 "$here/bench_peers.py" "$models/bench.safetensors"
            step once_peers 60 python3 "$here/bench_peers.py" "$models/bench.safetensors" once
        else
            note "bench_peers: SKIP(no python3)"
        fi
    fi
}
steps
rm -f "$models/bench.safetensors" "$models/bench.hrry" "$models/suite.hrry" "$models/shrinking.hrry"
printf '\n== results (%d s)%s\n' "$(($(date +%s) - begin))" "$summary"
exit $bad
