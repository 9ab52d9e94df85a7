"""peer_load.py HOW FILE: loads a file once with another package and prints one line of JSON, as bench_load does. Run by run.py with the
Python of build/peers. A package that is not there is a line with "skip".

Every page of every tensor is read inside the timed part, imports lie before it. fastsafetensors and runai-model-streamer give tensors that lie in
buffers which they read into and which live as long as the tensors: these are not copied once more. With CHECK in the environment the sum of all
bytes is printed too, taken after the timed part, when readers and streamers are closed."""
import json
import os
import resource
import sys
import time


def by_safetensors(path):
    import ml_dtypes  # makes numpy know bfloat16
    from safetensors.numpy import load_file
    return lambda: load_file(path).values()  # arrays of their own, not of the mapping


def by_safetensors_torch(path):
    from safetensors.torch import load_file
    return lambda: load_file(path).values()  # of the mapping


def by_safetensors_torch_clone(path):
    from safetensors.torch import load_file
    return lambda: [tensor.clone() for tensor in load_file(path).values()]


def by_torch_load(path):
    import torch
    return lambda: torch.load(path, map_location='cpu').values()


def by_torch_load_mmap(path):
    import torch
    return lambda: torch.load(path, map_location='cpu', mmap=True).values()


def by_fastsafetensors(path):
    from fastsafetensors import SafeTensorsFileLoader

    def run():
        loader = SafeTensorsFileLoader(None, 'cpu', nogds=True, max_threads=int(os.environ.get('MAX_THREADS', 16)))
        loader.add_filenames({0: [path]})
        buffers = loader.copy_files_to_device()
        tensors = [buffers.get_tensor(name) for name in loader.get_keys()]
        buffers.close()
        loader.close()
        return tensors
    return run


def by_runai(path):
    from runai_model_streamer import SafetensorsStreamer

    def run():
        with SafetensorsStreamer() as streamer:
            streamer.stream_file(path)
            return [tensor for _, tensor in streamer.get_tensors()]
    return run


def by_pyhurray(path):
    import hurray
    import numpy
    return lambda: [numpy.asarray(tensor.buffer(0)) for tensor in hurray.load(path).values()]  # one buffer each, and views


def by_numpy(path):
    import numpy
    return lambda: [numpy.fromfile(path, dtype=numpy.uint8)]


def by_gguf(path):
    from gguf import GGUFReader
    return lambda: [tensor.data.copy() for tensor in GGUFReader(path).tensors]


def by_gguf_mmap(path):
    from gguf import GGUFReader
    return lambda: [tensor.data for tensor in GGUFReader(path).tensors]


def list_safetensors(path):
    from safetensors import safe_open

    def run():
        with safe_open(path, framework='numpy') as f:
            f.keys()
        return []
    return run


WAYS = {'safetensors': by_safetensors, 'safetensors-torch': by_safetensors_torch, 'safetensors-torch-clone': by_safetensors_torch_clone,
        'torch-load': by_torch_load, 'torch-load-mmap': by_torch_load_mmap, 'fastsafetensors': by_fastsafetensors, 'runai': by_runai,
        'pyhurray': by_pyhurray, 'numpy-fromfile': by_numpy, 'gguf': by_gguf, 'gguf-mmap': by_gguf_mmap, 'safetensors-list': list_safetensors}


def as_bytes(tensor):
    """A flat view; numpy arrays and torch tensors alike."""
    import numpy
    if isinstance(tensor, numpy.ndarray):
        return tensor.reshape(-1).view(numpy.uint8)
    import torch
    return tensor.reshape(-1).view(torch.uint8).numpy()


def touch(tensors, step):
    return sum(int(as_bytes(tensor)[::step].sum(dtype='uint64')) for tensor in tensors)


def memory_kib(name):
    with open('/proc/self/status') as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name + ':'))


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    try:
        run = WAYS[sys.argv[1]](sys.argv[2])
    except ImportError as error:
        print(json.dumps({'skip': '%s is not installed' % (error.name or error)}))
        return
    with open('/proc/self/clear_refs', 'w') as f:
        f.write('5')  # the peak begins here, after the imports
    before = memory_kib('VmRSS')
    cpu, begin = used(), time.perf_counter()
    tensors = list(run())
    touch(tensors, 4096)
    took, cpu = time.perf_counter() - begin, used() - cpu
    line = {'seconds': took, 'cpu': cpu, 'bytes': sum(as_bytes(tensor).nbytes for tensor in tensors), 'peak_kib': memory_kib('VmHWM') - before,
            'detail': 'peak without the interpreter'}
    if 'CHECK' in os.environ:
        line['sum'] = touch(tensors, 1)
    print(json.dumps(line))


main()
