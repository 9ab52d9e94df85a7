#!/usr/bin/env python3
"""Measures libhurray side by side with the machine's limit and with other packages. Standard library only.

usage: bench/run.py [load|many|convert] [--size MB] [--rounds N] [--cold] [--only A,B] [--threads N] [--data DIR] [--svg FILE] [--file FILE]

Every run is a process of its own. Within a round every way runs once, right after a run of the limit; the table shows medians, and the median
over the rounds of the ratio to the limit run just before, so that a busy machine slows both sides. Read the ratios. Everything lies under build/ (--data: the models).
Build first: cmake -S bench -B build/bench && cmake --build build/bench; other packages: sh scripts/peer-packages."""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, 'build', 'bench')
PEERS = os.path.join(ROOT, 'build', 'peers', 'bin', 'python')

WARM_LIMIT, COLD_LIMIT = 'plain-fresh', 'plain-direct'
WARM = ['plain-fresh', 'plain-touched', 'auto', 'one-thread', 'threads', 'uring', 'verified', 'read-only', 'mmap']
COLD = ['plain-direct', 'plain-fresh', 'auto', 'threads', 'threads-direct', 'uring', 'uring-direct', 'verified', 'mmap']
PEER_WAYS = ['numpy-fromfile', 'safetensors', 'safetensors-copy', 'safetensors-torch', 'fastsafetensors', 'runai', 'pyhurray']
ABOUT = {'plain-fresh': 'preads, new huge pages', 'plain-touched': 'preads, touched memory', 'plain-direct': 'O_DIRECT preads',
         'auto': 'hurray', 'one-thread': 'hurray, threads 1', 'threads': 'hurray, io threads', 'uring': 'hurray, io uring',
         'threads-direct': 'hurray, threads, direct', 'uring-direct': 'hurray, uring, direct', 'verified': 'hurray, checksums',
         'read-only': 'hurray, read only (mapped)', 'mmap': 'hurray, io mmap', 'fio': 'fio, O_DIRECT, 8 in flight',
         'safetensors': 'safetensors, numpy', 'safetensors-copy': 'safetensors, numpy, copied', 'safetensors-torch': 'safetensors, torch, cloned',
         'hurray-safetensors': 'hurray, the safetensors file'}


def find_command():
    for path in ('build/bench/hurray/bin/hurray', 'build/release/bin/hurray'):
        path = os.path.join(ROOT, path)
        if os.path.exists(path):
            return path
    sys.exit('the command hurray is not built: cmake -S bench -B build/bench && cmake --build build/bench')


def run_json(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {'skip': (done.stderr.strip().splitlines() or ['it failed without a word'])[-1][:120]}


def make_model(args):
    """A safetensors file in the shapes of a decoder, and the same as .hrry."""
    if args.file:
        base = args.file
    else:
        base = os.path.join(args.data, 'model-%d.safetensors' % args.size)
        if not os.path.exists(base):
            hidden, vocabulary = (2048, 32000) if args.size >= 1000 else (1024, 16000)
            layer, rest = (4 + 3 * 2.75) * hidden * hidden * 2 / 1e6, 4 * vocabulary * hidden / 1e6
            layers = max(1, round((args.size - rest) / layer))
            subprocess.run([sys.executable, os.path.join(ROOT, 'scripts', 'make-model'), base, str(layers), str(hidden), str(vocabulary)], check=True)
    hrry = os.path.join(args.data, os.path.splitext(os.path.basename(base))[0] + '.hrry')
    if not os.path.exists(hrry) or os.path.getmtime(hrry) < os.path.getmtime(base):
        subprocess.run([find_command(), 'convert', base, hrry], check=True)
    return base, hrry


def drop(path):
    """Out of the page cache with the pages of this file; no right is needed."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def run_fio(path):
    if not shutil.which('fio'):
        return {'skip': 'fio is not installed'}
    size = os.path.getsize(path) & ~0x3FFFFF
    done = subprocess.run(['fio', '--name=read', '--filename=' + path, '--rw=read', '--bs=4M', '--direct=1', '--ioengine=libaio', '--iodepth=8', '--readonly',
                           '--size=%d' % size, '--output-format=json'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        job = json.loads(done.stdout[done.stdout.index('{'):])['jobs'][0]['read']
        return {'seconds': job['runtime'] / 1e3, 'bytes': job['io_bytes'], 'cpu': 0, 'peak_kib': 0, 'detail': 'libaio, depth 8'}
    except (ValueError, KeyError, IndexError):
        return {'skip': 'fio failed'}


def machine():
    memory = next((line.split()[1] for line in open('/proc/meminfo') if line.startswith('MemTotal')), '0')
    model = next((line.split(':')[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), 'processor unknown')
    try:
        pages = open('/sys/kernel/mm/transparent_hugepage/enabled').read().strip()
    except OSError:
        pages = 'unknown'
    return '%s, %d cores, %.0f GiB, %s %s, transparent huge pages %s, load average %.1f' % (
        model, os.cpu_count(), int(memory) / 1048576, platform.system(), platform.release(), pages, os.getloadavg()[0])


def speed_of(run):
    return run['bytes'] / run['seconds'] / 1e9


def once(way, source, hrry, args):
    program = os.path.join(BENCH, 'bench_load')
    path = source if way in PEER_WAYS and way != 'pyhurray' or way == 'hurray-safetensors' else hrry
    if args.cold:
        drop(path)
    if way == 'fio':
        return run_fio(path)
    if way in PEER_WAYS:
        return run_json([PEERS, os.path.join(ROOT, 'bench', 'peer_load.py'), way, path]) if os.path.exists(PEERS) else {'skip': 'no build/peers'}
    threads = [str(args.threads)] if args.threads else []
    return run_json([program, 'auto' if way == 'hurray-safetensors' else way, path] + threads)


def measure_load(args):
    if args.cold and args.size > 4000:
        sys.exit('--cold with more than 4000 MB takes too long')
    source, hrry = make_model(args)
    limit = COLD_LIMIT if args.cold else WARM_LIMIT
    ways = (COLD + ['fio'] if args.cold else WARM) + ['hurray-safetensors'] + PEER_WAYS
    if args.only:
        wanted = args.only.split(',')
        ways = [w for w in ways if w == limit or w in wanted]
    print(machine())
    print('%s, %.0f MB, %s, %d rounds' % (os.path.basename(hrry), os.path.getsize(hrry) / 1e6, 'cold' if args.cold else 'warm', args.rounds))
    results, skipped = {w: [] for w in ways}, {}
    if not args.cold:
        for path in (source, hrry):  # into the page cache
            subprocess.run(['cat', path], stdout=subprocess.DEVNULL)
    for _ in range(args.rounds):
        once(limit, source, hrry, args)  # not counted: whoever is first pays for pages that the machine has to find
        for way in ways:
            if way in skipped:
                continue
            pair = once(limit, source, hrry, args) if way not in PEER_WAYS and way != limit else None
            got = once(way, source, hrry, args)
            if 'skip' in got:
                skipped[way] = got['skip']
            else:
                results[way].append((got, pair))
                if pair:
                    results[limit].append((pair, None))
    rows = []
    all_limits = [speed_of(r) for r, _ in results[limit]]
    limit_speed = statistics.median(all_limits)
    limit_cpu = statistics.median(r['cpu'] / r['bytes'] for r, _ in results[limit])
    for way in ways:
        if not results[way]:
            continue
        runs = [r for r, _ in results[way]]
        speeds = [speed_of(r) for r in runs]
        ratio = statistics.median(speed_of(r) / (speed_of(pair) if pair else limit_speed) for r, pair in results[way])
        work = statistics.median(r['cpu'] / r['bytes'] for r in runs) / limit_cpu if limit_cpu else 0
        peak = statistics.median(r['peak_kib'] for r in runs) * 1024
        extra = (peak - runs[0]['bytes']) / 1048576
        rows.append((ABOUT.get(way, way), statistics.median(speeds), max(speeds), ratio, work, peak / runs[0]['bytes'], extra, runs[-1].get('detail', '')))
    print('\n%-30s %8s %8s %8s %8s %12s %12s  %s' % ('way', 'GB/s', 'best', 'x limit', 'cpu x', 'peak x size', 'beyond MiB', 'how'))
    for name, speed, best, ratio, work, peak, extra, detail in rows:
        print('%-30s %8.2f %8.2f %8.2f %8s %12s %12s  %s' % (name, speed, best, ratio, '%.2f' % work if work else '-', '%.2f' % peak if peak else '-',
                                                             '%.1f' % extra if peak else '-', detail))
    for way, reason in skipped.items():
        print('%-30s skipped: %s' % (ABOUT.get(way, way), reason))
    print('\nnoise: the limit itself ran at %.2f to %.2f GB/s' % (min(all_limits), max(all_limits)))
    if args.svg:
        draw(args.svg, rows, 'cold' if args.cold else 'warm')
        print('plot: %s' % args.svg)


def draw(path, rows, title):
    """Bars of the ratio to the limit; the rounds' own speeds are in the table."""
    widest = max(row[3] for row in rows)
    widest = min(widest, 3.0)  # mapped files copy nothing: their bars are cut
    scale = 420 / max(widest, 1.0)
    height = 60 + 22 * len(rows)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="760" height="%d" font-family="sans-serif" font-size="12">' % height,
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="20" font-size="14">Loading, %s: speed as a part of the machine\'s limit (1 = plain parallel reads)</text>' % title]
    for k, (name, speed, _, ratio, _, _, _, _) in enumerate(rows):
        y = 40 + 22 * k
        color = '#2b6cb0' if name.startswith('hurray') else '#a0aec0'
        out.append('<text x="10" y="%d">%s</text>' % (y + 13, name.replace('&', '&amp;').replace('<', '&lt;')))
        width = min(ratio, widest) * scale
        out.append('<rect x="220" y="%d" width="%.1f" height="16" fill="%s"/>' % (y, width, color))
        out.append('<text x="%.1f" y="%d">%.2f (%.1f GB/s)</text>' % (226 + width, y + 13, ratio, speed))
    out.append('<line x1="%.1f" x2="%.1f" y1="34" y2="%d" stroke="black" stroke-dasharray="3"/></svg>' % (220 + scale, 220 + scale, height - 16))
    with open(path, 'w') as f:
        f.write('\n'.join(out) + '\n')


def measure_many(args):
    print(machine())
    subprocess.run([os.path.join(BENCH, 'bench_many'), args.data], check=True)
    path = os.path.join(args.data, 'many-100000x16.safetensors')
    if os.path.exists(PEERS):
        runs = [run_json([PEERS, os.path.join(ROOT, 'bench', 'peer_load.py'), 'safetensors-list', path]) for _ in range(3)]
        if 'skip' in runs[0]:
            print('reference library skipped: ' + runs[0]['skip'])
        else:
            best = min(runs, key=lambda r: r['seconds'])
            print('open   100000 tensors, safetensors by its own library: %.4f s (cpu %.4f)' % (best['seconds'], min(r['cpu'] for r in runs)))
    else:
        print('reference library skipped: no build/peers (sh scripts/peer-packages)')


def timed(command):
    """Seconds, peak memory in KiB of a command."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit('%s failed' % ' '.join(command))
    return time.perf_counter() - begin, usage.ru_maxrss, usage.ru_utime + usage.ru_stime


def measure_convert(args):
    """hurray convert against cp of the same file, both to a new file in the same folder and on to the disk."""
    source, _ = make_model(args)
    command, out = find_command(), os.path.join(args.data, 'converted')
    print(machine())
    print('%s, %.0f MB, %d rounds, every copy synced to the disk' % (os.path.basename(source), os.path.getsize(source) / 1e6, args.rounds))
    ours, theirs = [], []
    for _ in range(args.rounds):
        for kind in ('cp', 'hurray'):
            if os.path.exists(out):
                os.remove(out)
            if kind == 'cp':
                seconds, _, cpu = timed(['cp', '--reflink=never', source, out])
                begin = time.perf_counter()
                fd = os.open(out, os.O_RDONLY)
                os.fsync(fd)
                os.close(fd)
                theirs.append((seconds + time.perf_counter() - begin, cpu))
            else:
                seconds, peak, cpu = timed([command, 'convert', source, out])
                ours.append((seconds, cpu, peak))
    os.remove(out)
    size = os.path.getsize(source)
    ratio = statistics.median(t[0] / o[0] for o, t in zip(ours, theirs))
    print('cp and sync      %.2f GB/s (cpu %.3f s)' % (size / statistics.median(t[0] for t in theirs) / 1e9, statistics.median(t[1] for t in theirs)))
    print('hurray convert   %.2f GB/s (cpu %.3f s), %.2f x cp, peak memory %.1f MiB' % (
        size / statistics.median(o[0] for o in ours) / 1e9, statistics.median(o[1] for o in ours), ratio, max(o[2] for o in ours) / 1024))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', nargs='?', default='load', choices=['load', 'many', 'convert'])
    parser.add_argument('--size', type=int, default=2000, help='MB of the model')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--cold', action='store_true', help='drop the file from the page cache before each run')
    parser.add_argument('--only', help='these ways only, by name, the limit added')
    parser.add_argument('--threads', type=int, default=0)
    parser.add_argument('--data', default=os.path.join(ROOT, 'build', 'bench-data'))
    parser.add_argument('--file', help='a safetensors file of your own in place of the made one')
    parser.add_argument('--svg', help='write a plot here')
    args = parser.parse_args()
    if not os.path.exists(os.path.join(BENCH, 'bench_load')):
        sys.exit('build first: cmake -S bench -B build/bench && cmake --build build/bench')
    os.makedirs(args.data, exist_ok=True)
    {'load': measure_load, 'many': measure_many, 'convert': measure_convert}[args.what](args)


if __name__ == '__main__':
    main()
