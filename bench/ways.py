"""The ways to load a model that run.py compares, the files they read, and one run of one of them."""
import ctypes
import json
import mmap
import os
import subprocess
import sys
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, 'build', 'bench')
PEERS = os.path.join(ROOT, 'build', 'peers', 'bin', 'python')
CORES = os.cpu_count() or 1


@dataclass(eq=False)
class Way:
    name: str
    about: str
    kind: str  # limit, ours, peer
    file: str  # the kind of file it reads
    when: str = 'wc'  # w: warm, c: cold
    settings: tuple = ({},)  # environments (fio: options), of which the fastest is kept


FIO = tuple({'ioengine': engine, 'bs': block, 'iodepth': depth} for engine in ('libaio', 'io_uring') for block in ('1M', '4M') for depth in ('8', '16'))
FAST = tuple({'FASTSAFETENSORS_ODIRECT': direct, 'MAX_THREADS': threads} for direct in ('0', '1') for threads in sorted({'16', str(CORES)}))
RUNAI = tuple({'RUNAI_STREAMER_MEMORY_LIMIT': '-1', 'RUNAI_STREAMER_CONCURRENCY': threads} for threads in sorted({'8', '16', '32', str(CORES)}))
WAYS = [
    Way('plain-fresh', 'preads, new huge pages', 'limit', 'hrry'),
    Way('plain-touched', 'preads, touched memory', 'limit', 'hrry', 'w'),
    Way('plain-direct', 'O_DIRECT preads', 'limit', 'hrry', 'c'),
    Way('fio', 'fio, O_DIRECT', 'limit', 'hrry', 'c', FIO),
    Way('auto', 'hurray', 'ours', 'hrry'),
    Way('one-thread', 'hurray, threads 1', 'ours', 'hrry', 'w'),
    Way('threads', 'hurray, io threads', 'ours', 'hrry'),
    Way('uring', 'hurray, io uring', 'ours', 'hrry'),
    Way('threads-direct', 'hurray, threads, direct', 'ours', 'hrry', 'c'),
    Way('uring-direct', 'hurray, uring, direct', 'ours', 'hrry', 'c'),
    Way('verified', 'hurray, checksums', 'ours', 'hrry'),
    Way('hurray-safetensors', 'hurray, the safetensors file', 'ours', 'safetensors'),
    Way('hurray-gguf', 'hurray, the GGUF file', 'ours', 'gguf'),
    Way('read-only', 'hurray, read only (mapped)', 'ours', 'hrry', 'w'),
    Way('mmap', 'hurray, io mmap (mapped)', 'ours', 'hrry'),
    Way('safetensors-torch', 'safetensors, torch (mapped)', 'peer', 'safetensors'),
    Way('torch-load-mmap', 'torch.load, mmap (mapped)', 'peer', 'pt'),
    Way('gguf-mmap', 'gguf (mapped)', 'peer', 'gguf'),
    Way('safetensors-torch-clone', 'safetensors, torch, cloned', 'peer', 'safetensors'),
    Way('safetensors', 'safetensors, numpy', 'peer', 'safetensors'),
    Way('torch-load', 'torch.load', 'peer', 'pt'),
    Way('gguf', 'gguf, copied', 'peer', 'gguf'),
    Way('fastsafetensors', 'fastsafetensors, no GDS', 'peer', 'safetensors', 'wc', FAST),
    Way('runai', 'runai-model-streamer', 'peer', 'safetensors', 'wc', RUNAI),
    Way('pyhurray', 'pyhurray', 'peer', 'hrry'),
    Way('numpy-fromfile', 'numpy.fromfile', 'peer', 'hrry'),
]


def find_command():
    for path in ('build/bench/hurray/bin/hurray', 'build/release/bin/hurray'):
        path = os.path.join(ROOT, path)
        if os.path.exists(path):
            return path
    sys.exit('the command hurray is not built: cmake -S bench -B build/bench && cmake --build build/bench')


def make_source(args):
    """A safetensors file in the shapes of a decoder, unless there is one."""
    if args.file:
        return args.file
    path = os.path.join(args.data, 'model-%d.safetensors' % args.size)
    if not os.path.exists(path):
        hidden, vocabulary = (2048, 32000) if args.size >= 1000 else (1024, 16000)
        layer, rest = (4 + 3 * 2.75) * hidden * hidden * 2 / 1e6, 4 * vocabulary * hidden / 1e6
        layers = max(1, round((args.size - rest) / layer))
        subprocess.run([sys.executable, os.path.join(ROOT, 'scripts', 'make-model'), path, str(layers), str(hidden), str(vocabulary)], check=True)
    return path


def make_files(args, kinds):
    """The same tensors in these kinds of file, by kind; a kind that could not be made is left out."""
    source = make_source(args)
    files = {'safetensors': source}
    stem = os.path.join(args.data, os.path.splitext(os.path.basename(source))[0])
    for kind in sorted(kinds - {'safetensors'}):
        path = stem + '.' + kind
        if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
            maker = [find_command(), 'convert'] if kind == 'hrry' else [PEERS, os.path.join(ROOT, 'bench', 'peer_models.py')]
            if not os.path.exists(maker[0]) or subprocess.run(maker + [source, path], stderr=subprocess.DEVNULL).returncode:
                continue
        files[kind] = path
    return files


def run_json(command, environment=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {})))
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {'skip': (done.stderr.strip().splitlines() or ['it failed without a word'])[-1][:120]}


def run_fio(path, setting):
    command = ['fio', '--name=read', '--filename=' + path, '--rw=read', '--direct=1', '--readonly', '--output-format=json',
               '--size=%d' % (os.path.getsize(path) & ~0x3FFFFF)] + ['--%s=%s' % item for item in setting.items()]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        job = json.loads(done.stdout[done.stdout.index('{'):])['jobs'][0]
        seconds = job['read']['runtime'] / 1e3
        return {'seconds': seconds, 'bytes': job['read']['io_bytes'], 'cpu': seconds * (job['usr_cpu'] + job['sys_cpu']) / 100, 'peak_kib': 0,
                'detail': ' '.join(setting.values())}
    except FileNotFoundError:
        return {'skip': 'fio is not installed'}
    except (ValueError, KeyError, IndexError):
        return {'skip': 'fio failed'}


def drop(path):
    """Out of the page cache with the pages of this file; no right is needed."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def cached(path):
    """The part of a file that is in the page cache."""
    with open(path, 'rb') as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as mapping:
        pages = (ctypes.c_ubyte * -(-len(mapping) // mmap.PAGESIZE))()
        first = ctypes.c_ubyte.from_buffer(mapping)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(first), ctypes.c_size_t(len(mapping)), pages)
        del first
        return float('nan') if failed else sum(bytes(pages)) / len(pages)


def settle(path, models):
    """Touches so many times the memory of the model, as far as it is free: a host that takes free pages back has given them again."""
    free = next(int(line.split()[1]) for line in open('/proc/meminfo') if line.startswith('MemFree')) >> 10
    subprocess.run([os.path.join(BENCH, 'bench_load'), 'settle', str(min(int(models * os.path.getsize(path)) >> 20, free * 9 // 10))], check=True)


def once(way, files, args, setting, check=False):
    """One run, a process of its own: seconds, bytes, cpu, peak_kib, detail, cached (the part of the file before), sum with check; or skip."""
    if way.kind == 'peer' and not os.path.exists(PEERS):
        return {'skip': 'no build/peers'}
    if way.file not in files:
        return {'skip': 'no .%s file of these tensors' % way.file}
    path = files[way.file]
    if args.cold:
        drop(path)
    elif cached(path) < 1:  # nan, unknown, is not
        with open(path, 'rb') as f:
            while f.read(1 << 22):
                pass
    before = cached(path)
    if way.name == 'fio':
        got = run_fio(path, setting)
    else:
        environment = dict(setting, CHECK='1') if check else setting
        if way.kind == 'peer':
            got = run_json([PEERS, os.path.join(ROOT, 'bench', 'peer_load.py'), way.name, path], environment)
        else:
            how = 'auto' if way.name.startswith('hurray-') else way.name
            got = run_json([os.path.join(BENCH, 'bench_load'), how, path] + ([str(args.threads)] if args.threads else []), environment)
    return dict(got, cached=before)
