#!/usr/bin/env python3
"""The same model by other packages to GPU 0; what is not installed is skipped with its reason.
Not run on a GPU yet. usage: bench_peers.py MODEL.safetensors          warm, all in this process, GB/s
                             bench_peers.py MODEL.safetensors once     the first load of a process, without its imports, ms"""
import os
import statistics
import subprocess
import sys
import time

path = sys.argv[1]
size = os.path.getsize(path)
try:
    import torch
    import safetensors.torch
except ImportError as error:
    print('SKIP(peers): %s' % error)
    sys.exit(77)


def by_safetensors():
    return safetensors.torch.load_file(path, device='cuda:0')


def by_safetensors_host():
    return {name: tensor.to('cuda:0') for name, tensor in safetensors.torch.load_file(path).items()}


def by_fastsafetensors():
    from fastsafetensors import fastsafe_open
    with fastsafe_open(filenames=[path], nogds=True, device='cuda:0') as file:
        return {name: file.get_tensor(name).clone().detach() for name in file.keys()}


def by_runai():
    from runai_model_streamer import SafetensorsStreamer
    with SafetensorsStreamer() as streamer:
        streamer.stream_file(path)
        return {name: tensor.to('cuda:0') for name, tensor in streamer.get_tensors()}


PEERS = {'safetensors load_file(device)': (by_safetensors, None),
         'safetensors load_file, then .to': (by_safetensors_host, None),
         'fastsafetensors': (by_fastsafetensors, 'fastsafetensors'),
         'runai-model-streamer': (by_runai, 'runai_model_streamer')}


def warm(name, load):
    rates = []
    for round_ in range(4):  # the first one warms up
        begin = time.perf_counter()
        tensors = load()
        torch.cuda.synchronize()
        if round_:
            rates.append(size / (time.perf_counter() - begin) / 1e9)
        del tensors
    print('  %-42s %7.2f GB/s  (%.2f to %.2f)' % (name, statistics.median(rates), min(rates), max(rates)), flush=True)


def first(name, load, module):
    """In a process of its own, which has made no CUDA call yet."""
    if module:
        __import__(module)
    begin = time.perf_counter()
    tensors = load()
    torch.cuda.synchronize()
    print('  %-42s %9.1f ms' % (name, (time.perf_counter() - begin) * 1e3))
    del tensors


if len(sys.argv) == 4:  # once, and whose turn it is
    try:
        first(sys.argv[3], *PEERS[sys.argv[3]])
    except Exception as error:  # a peer that is missing or fails says nothing about this library
        print('SKIP(%s): %s: %s' % (sys.argv[3], type(error).__name__, str(error)[:120]))
    sys.exit(0)
if not torch.cuda.is_available():
    print('SKIP(peers): torch sees no GPU')
    sys.exit(77)
if len(sys.argv) == 3:
    for name in PEERS:
        sys.stdout.flush()
        subprocess.run([sys.executable, os.path.abspath(__file__), path, 'once', name], check=False)
    sys.exit(0)
torch.zeros(1, device='cuda:0')  # the context is there before anything is timed
torch.cuda.synchronize()
for name, (load, _) in PEERS.items():
    try:
        warm(name, load)
    except Exception as error:
        print('SKIP(%s): %s: %s' % (name, type(error).__name__, str(error)[:120]))
