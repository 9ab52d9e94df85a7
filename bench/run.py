#!/usr/bin/env python3
"""Measures libhurray side by side with the machine's limit and with other packages. Standard library only; never part of the tests.

  load        loading a model, each way beside plain preads (warm: into new and into touched memory; cold: O_DIRECT, and fio) and other packages
  many        a million tensors opened, 100,000 loaded
  convert     hurray convert beside cp and fsync
  dequantize  the dense view of quantized tensors, beside the package gguf
  composites  composites of 10,000 and 100,000 members: written, read, made dense

Every run is a process of its own. Right before each way its limits run: read the ratios, which a busy machine disturbs on both sides, and hold them
against those of the rows A/A, where a limit is measured against itself. The order changes from round to round. A first round is not counted: it
tries the settings of a way that has some, keeps the fastest, and compares the sums of all bytes.
Everything lies under build/ (--data: the models). Build first: cmake -S bench -B build/bench && cmake --build build/bench;
other packages: sh scripts/peer-packages, and build/peers/bin/pip install torch fastsafetensors runai-model-streamer."""
import argparse
import os
import platform
import statistics
import subprocess
import sys
import time

from report import draw, quartile, table
from ways import BENCH, PEERS, ROOT, WAYS, find_command, make_files, make_source, once, run_json, settle

WARM_LIMITS, COLD_LIMITS = ['plain-fresh', 'plain-touched'], ['plain-direct', 'fio']


def machine():
    memory = next((line.split()[1] for line in open('/proc/meminfo') if line.startswith('MemTotal')), '0')
    model = next((line.split(':')[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), 'processor unknown')
    try:
        pages = open('/sys/kernel/mm/transparent_hugepage/enabled').read().strip()
    except OSError:
        pages = 'unknown'
    return '%s, %d cores, %.0f GiB, %s %s, transparent huge pages %s, load average %.1f' % (
        model, os.cpu_count(), int(memory) / 1048576, platform.system(), platform.release(), pages, os.getloadavg()[0])


def first_round(ways, files, args):
    """Not counted: way -> its fastest setting, and why the others are left out. All ways must have read the same bytes."""
    settings, skipped, sums = {}, {}, {}
    for way in ways:
        tried = []
        for setting in way.settings * (2 if len(way.settings) > 1 else 1):
            got = once(way, files, args, setting, check=True)
            if 'skip' in got:
                skipped[way] = got['skip']
                break
            tried.append((got['seconds'], setting))
            if 'sum' in got and way.name != 'numpy-fromfile':  # which reads the header too
                sums.setdefault(way, set()).add(got['sum'])
        else:
            settings[way] = min(tried, key=lambda t: t[0])[1]
            if settings[way]:
                print('%s: fastest with %s' % (way.about, ', '.join('%s=%s' % item for item in settings[way].items())))
    if sums:
        right = statistics.mode(s for found in sums.values() for s in found)
        for way, found in sums.items():
            if found != {right} and settings.pop(way, None) is not None:
                skipped[way] = 'it read other bytes: the sum is not that of most'
        print('the same sum of bytes by %d ways' % sum(found == {right} for found in sums.values()))
    return settings, skipped


def measure_load(args):
    if args.cold and args.size > 4000 and not args.file:
        sys.exit('--cold with more than 4000 MB takes too long')
    limits = COLD_LIMITS if args.cold else WARM_LIMITS
    wanted = args.only.split(',') + limits if args.only else [way.name for way in WAYS]
    ways = [way for way in WAYS if ('c' if args.cold else 'w') in way.when and way.name in wanted]
    files = make_files(args, {way.file for way in ways})
    title = '%s, %.0f MB, %s, %d rounds' % (os.path.basename(files['hrry']), os.path.getsize(files['hrry']) / 1e6, 'cold' if args.cold else 'warm', args.rounds)
    print(machine() + '\n' + title)
    settings, skipped = first_round(ways, files, args)
    ways = [way for way in ways if way in settings]
    limit_ways = [way for way in ways if way.name in limits]
    results, limit_runs = {way: [] for way in ways}, {way.name: [] for way in limit_ways}
    for number in range(args.rounds):
        at = number * len(ways) // args.rounds
        order = ways[at:] + ways[:at]
        for way in order if number % 2 == 0 else reversed(order):
            if args.settle:
                settle(files['hrry'], args.settle)
            before = limit_ways if number % 2 == 0 else limit_ways[::-1]
            pair = {limit.name: once(limit, files, args, settings[limit]) for limit in before}
            got = once(way, files, args, settings[way])
            if 'skip' in got or any('skip' in run for run in pair.values()):
                skipped[way] = 'a run of it or of its limit failed in round %d' % (number + 1)
                continue
            results[way].append((got, pair))
            for name, run in pair.items():
                limit_runs[name].append(run)
    results = {way: pairs for way, pairs in results.items() if pairs}
    limits = [way.name for way in limit_ways]
    table(results, limits, limit_runs)
    for way, reason in skipped.items():
        print('%-31s skipped: %s' % (way.about, reason))
    if args.svg:
        draw(args.svg, results, limits, limit_runs, 'Loading: ' + title)
        print('plot: %s' % args.svg)


def measure_many(args):
    print(machine())
    subprocess.run([os.path.join(BENCH, 'bench_many'), args.data], check=True)
    path = os.path.join(args.data, 'many-100000x16.safetensors')
    if not os.path.exists(PEERS):
        return print('reference library skipped: no build/peers (sh scripts/peer-packages)')
    runs = [run_json([PEERS, os.path.join(ROOT, 'bench', 'peer_load.py'), 'safetensors-list', path]) for _ in range(3)]
    if 'skip' in runs[0]:
        return print('reference library skipped: ' + runs[0]['skip'])
    print('open   100000 tensors, safetensors by its own library: %.4f s (cpu %.4f)' % (min(r['seconds'] for r in runs), min(r['cpu'] for r in runs)))


def peak_kib(command):
    """The peak memory of a command, seen from outside: what getrusage says includes this program."""
    peak, process = 0, subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        with open('/proc/%d/status' % process.pid) as status:
            peak = max([peak] + [int(line.split()[1]) for line in status if line.startswith('VmHWM')])
        time.sleep(0.001)
    return peak


def timed(command, out):
    """Seconds until a copy lies on the disk, processor time. What earlier runs left to write is written before."""
    if os.path.exists(out):
        os.remove(out)
    os.sync()
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit('%s failed' % ' '.join(command))
    fd = os.open(out, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def measure_convert(args):
    """Both to a new file in the same folder, cp right before hurray convert and before itself."""
    source, out = make_source(args), os.path.join(args.data, 'converted')
    copy, convert = ['cp', '--reflink=never', source, out], [find_command(), 'convert', source, out]
    size = os.path.getsize(source)
    print(machine())
    print('%s, %.0f MB, %d rounds, every copy synced to the disk' % (os.path.basename(source), size / 1e6, args.rounds))
    subprocess.run(['cat', source], stdout=subprocess.DEVNULL, check=True)
    commands = [('cp and fsync, A/A', copy), ('hurray convert', convert)]
    peaks = {name: peak_kib(command) for name, command in commands}
    runs, copies = {name: [] for name, _ in commands}, []
    for number in range(args.rounds):
        for name, command in commands if number % 2 == 0 else commands[::-1]:
            copies.append(timed(copy, out))
            runs[name].append((timed(command, out), copies[-1]))
    os.remove(out)
    print('%-18s %8s %8s %10s %8s %8s %10s' % ('', 'median', 'q1 GB/s', 'x cp pairs', 'q1', 'cpu s', 'peak MiB'))
    for name, pairs in runs.items():
        seconds = [run[0] for run, _ in pairs]
        print('%-18s %8.2f %8.2f %10.2f %8.2f %8.3f %10.1f' % (
            name, size / statistics.median(seconds) / 1e9, size / quartile(seconds) / 1e9, statistics.median(pair[0] / run[0] for run, pair in pairs),
            quartile([copied[0] for copied in copies]) / quartile(seconds), statistics.median(run[1] for run, _ in pairs), peaks[name] / 1024))


def dequantized(command):
    """The lines of a program, NAME and GB/s in columns, as a dictionary."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {line[:40].strip(): float(line[40:].split()[0]) for line in done.stdout.splitlines() if 'GB/s' in line}


def measure_dequantize(args):
    print(machine())
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(dequantized([os.path.join(BENCH, 'bench_dequantize')]))
        theirs.append(dequantized([PEERS, os.path.join(ROOT, 'bench', 'dequantize_peer.py')]) if os.path.exists(PEERS) else {})
    print('GB/s of processor time, medians of %d rounds\n%-40s %8s %8s %8s' % (args.rounds, '', 'hurray', 'gguf', 'x gguf'))
    for name in ours[0]:
        line = '%-40s %8.2f' % (name, statistics.median(run[name] for run in ours))
        if name in theirs[0]:
            line += ' %8.2f %8.1f' % (statistics.median(run[name] for run in theirs),
                                      statistics.median(mine[name] / other[name] for mine, other in zip(ours, theirs)))
        print(line)
    if not theirs[0]:
        print('the package gguf skipped: no build/peers (sh scripts/peer-packages)')


def measure_composites(args):
    print(machine(), flush=True)
    sys.exit(subprocess.run([os.path.join(BENCH, 'bench_composites')]).returncode)


PROGRAMS = {'load': measure_load, 'many': measure_many, 'convert': measure_convert, 'dequantize': measure_dequantize, 'composites': measure_composites}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', nargs='?', default='load', choices=list(PROGRAMS))
    parser.add_argument('--size', type=int, default=2000, help='MB of the model')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--cold', action='store_true', help='drop the file that a way reads from the page cache before each run')
    parser.add_argument('--settle', type=float, nargs='?', const=3, default=0, metavar='TIMES',
                        help='before each way and its limits touch 3 (or TIMES) times the memory of the model, so that a host that takes free pages '
                             'back has given them again')
    parser.add_argument('--only', help='these ways only, the limits added: ' + ', '.join(way.name for way in WAYS))
    parser.add_argument('--threads', type=int, default=0, help='of the limits and of hurray')
    parser.add_argument('--data', default=os.path.join(ROOT, 'build', 'bench-data'))
    parser.add_argument('--file', help='a safetensors file of your own in place of the made one')
    parser.add_argument('--svg', help='write a plot here')
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error('--rounds is at least 1')
    if not os.path.exists(os.path.join(BENCH, 'bench_load')):
        sys.exit('build first: cmake -S bench -B build/bench && cmake --build build/bench')
    os.makedirs(args.data, exist_ok=True)
    PROGRAMS[args.what](args)


if __name__ == '__main__':
    sys.stdout.reconfigure(line_buffering=True)
    main()
