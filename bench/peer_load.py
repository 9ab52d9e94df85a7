"""peer_load.py HOW FILE: loads a file once with another package and prints one line of JSON, as bench_load does. Run by run.py with the
Python of build/peers. A package that is not there is a line with "skip"."""
import json
import resource
import sys
import time


def skip(reason):
    print(json.dumps({'skip': reason}))
    sys.exit(0)


def touch(array):
    import numpy
    return int(array.reshape(-1).view(numpy.uint8)[::4096].sum(dtype=numpy.uint64))


def by_safetensors(path):
    import ml_dtypes  # makes numpy know bfloat16
    from safetensors.numpy import load_file

    def run():
        tensors = load_file(path)
        for array in tensors.values():
            touch(array)
        return sum(array.nbytes for array in tensors.values()), tensors
    return run


def by_safetensors_copy(path):
    import ml_dtypes
    from safetensors.numpy import load_file

    def run():
        tensors = {name: array.copy() for name, array in load_file(path).items()}
        return sum(array.nbytes for array in tensors.values()), tensors
    return run


def by_safetensors_torch(path):
    from safetensors.torch import load_file

    def run():
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
        return sum(t.numel() * t.element_size() for t in tensors.values()), tensors
    return run


def by_fastsafetensors(path):
    import torch
    from fastsafetensors import fastsafe_open

    def run():
        with fastsafe_open(filenames=[path], nogds=True, device='cpu') as f:
            tensors = {name: f.get_tensor(name).clone() for name in f.keys()}
        return sum(t.numel() * t.element_size() for t in tensors.values()), tensors
    return run


def by_runai(path):
    import torch
    from runai_model_streamer import SafetensorsStreamer

    def run():
        with SafetensorsStreamer() as streamer:
            streamer.stream_file(path)
            tensors = {name: tensor.clone() for name, tensor in streamer.get_tensors()}
        return sum(t.numel() * t.element_size() for t in tensors.values()), tensors
    return run


def by_pyhurray(path):
    import hurray
    import os

    def run():
        return os.path.getsize(path), hurray.load(path)  # copies every byte into memory of its own
    return run


def by_numpy(path):
    import numpy

    def run():
        array = numpy.fromfile(path, dtype=numpy.uint8)
        return array.nbytes, array
    return run


def by_gguf(path):
    from gguf import GGUFReader

    def run():
        tensors = [t.data.copy() for t in GGUFReader(path).tensors]
        return sum(t.nbytes for t in tensors), tensors
    return run


def list_safetensors(path):
    import numpy
    from safetensors import safe_open

    def run():
        with safe_open(path, framework='numpy') as f:
            return len(list(f.keys())), None
    return run


WAYS = {'safetensors': by_safetensors, 'safetensors-copy': by_safetensors_copy, 'safetensors-torch': by_safetensors_torch,
        'fastsafetensors': by_fastsafetensors, 'runai': by_runai, 'pyhurray': by_pyhurray, 'numpy-fromfile': by_numpy, 'gguf': by_gguf,
        'safetensors-list': list_safetensors}

try:
    run = WAYS[sys.argv[1]](sys.argv[2])  # imports are not measured
except ImportError as error:
    skip('%s is not installed' % (error.name or error))


def peak_kib():
    with open('/proc/self/status') as status:
        return next(int(line.split()[1]) for line in status if line.startswith('VmHWM:'))


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


before = peak_kib()
cpu, begin = used(), time.perf_counter()
size, kept = run()
took, cpu = time.perf_counter() - begin, used() - cpu
print(json.dumps({'seconds': took, 'cpu': cpu, 'bytes': size, 'peak_kib': peak_kib() - before, 'detail': 'peak without the interpreter'}))
