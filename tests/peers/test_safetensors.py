#!/usr/bin/env python3
"""The bytes of a written safetensors file are those of the reference library; each reads what the other wrote."""
import ctypes
import random

from peers import *
import numpy
import safetensors
import safetensors.numpy

random.seed(3)
t = folder()
TYPES = {'bool': ('BOOL', 8), 'float4_e2m1fn_x2': ('F4', 8), 'float8_e8m0fnu': ('F8_E8M0', 8), 'float8_e4m3fn': ('F8_E4M3', 8), 'float8_e5m2': ('F8_E5M2', 8), 'float8_e4m3fnuz': ('F8_E4M3FNUZ', 8),
         'float8_e5m2fnuz': ('F8_E5M2FNUZ', 8), 'uint8': ('U8', 8), 'int8': ('I8', 8), 'uint16': ('U16', 16), 'int16': ('I16', 16), 'float16': ('F16', 16), 'bfloat16': ('BF16', 16), 'uint32': ('U32', 32),
         'int32': ('I32', 32), 'float32': ('F32', 32), 'uint64': ('U64', 64), 'int64': ('I64', 64), 'float64': ('F64', 64), 'complex64': ('C64', 64)}
kept = []


def spec(dtype, shape, data):
    memory = ctypes.create_string_buffer(data, max(len(data), 1))
    kept.append(memory)
    return safetensors.TensorSpec(dtype=dtype, shape=list(shape), data_ptr=ctypes.addressof(memory), data_len=len(data))


def make(dtype, shape):
    count = 1
    for n in shape:
        count *= n
    data = random.randbytes(count * TYPES[dtype][1] // 8)
    return bytes(b & 1 for b in data) if dtype == 'bool' else data


refused = []
for dtype in list(TYPES):
    try:
        safetensors.serialize({'a': spec(dtype, [2, 4], make(dtype, [2, 4]))}, None)
    except Exception as error:
        refused.append(dtype)
        print('the library does not write', dtype, '-', str(error)[:80])
        del TYPES[dtype]
check(len(refused) < 4, refused)

path, hrry_path, back = (os.path.join(t, n) for n in ('a.safetensors', 'a.hrry', 'b.safetensors'))
NAMES = ['a', 'w.0', 'w.10', 'w.2', 'ö', '日本', 'q"\\/\b\f\n\r\t\x01\x7f', ' ', 'A' * 300, 'n\0ul']
for n in range(30):
    chosen = random.sample(sorted(TYPES), random.randrange(1, len(TYPES))) if n else sorted(TYPES)
    tensors = {}
    for dtype in chosen:
        for i in range(random.randrange(1, 4)):
            shape = random.choice([[], [0], [3], [2, 4], [4, 1, 2], [8], [0, 7], [300, 2]])
            if dtype == 'float4_e2m1fn_x2' and not shape:
                shape = [3]  # pairs of elements
            tensors['%s.%s' % (random.choice(NAMES), len(tensors))] = (dtype, shape, make(dtype, shape))
    metadata = random.choice([None, {'format': 'pt'}, {'k"\n\0': 'ö\\'}])
    want = safetensors.serialize({k: spec(*v) for k, v in tensors.items()}, metadata)
    write(path, want)
    expect(DONE, 'convert', path, hrry_path)
    expect(DONE, 'convert', hrry_path, back)
    if not check(read(back) == want, 'round', n, 'through .hrry gives the same bytes'):
        break
    j = inspect(path)
    check(sorted(x['name'] for x in j['tensors']) == sorted(tensors), 'names')
    library = dict(safetensors.deserialize(read(back)))
    check(sorted(library) == sorted(tensors) and all(bytes(library[k]['data']) == v[2] for k, v in tensors.items()), 'the library reads ours')
    if n < 3:
        for name, (dtype, shape, data) in tensors.items():
            if '\0' not in name and dtype != 'bool':
                check(cat(path, name) == data, repr(name), dtype)

# through numpy
arrays = {'f': numpy.arange(6, dtype='f4').reshape(2, 3), 'b': numpy.array([True, False, True]), 'c': numpy.array([1 + 2j], dtype='c8'), 'e': numpy.zeros((0, 3), dtype='i8'), 's': numpy.array(3.0)}
safetensors.numpy.save_file(arrays, path, {'format': 'np'})
expect(DONE, 'convert', path, back)
loaded = safetensors.numpy.load_file(back)
check(all((loaded[k] == v).all() and loaded[k].dtype == v.dtype and loaded[k].shape == v.shape for k, v in arrays.items()), 'numpy')
with safetensors.safe_open(back, 'numpy') as f:
    check(f.metadata() == {'format': 'np'}, f.metadata())

# decoded tensors and several shards read back through the library
items = [('q', descriptor([bytes([1, 2, 255, 4])], type_tag=0x10, shape=(2, 2), flags=1, tail=struct.pack('<IBBHfiI', 16, 1, 1, 0, 0.5, 0, 0)), [bytes([1, 2, 255, 4])])]
items += [(n, d, b) for n, (d, b, _) in layout_items().items()]
write(hrry_path, hrry(items))
expect(DONE, 'convert', hrry_path, back, '--dense')
loaded = safetensors.numpy.load_file(back)
check(loaded['q'].tolist() == [[0.5, 1], [-0.5, 2]], loaded['q'])
check(all(loaded[n].reshape(-1).tolist() == v for n, (_, _, v) in layout_items().items()), 'dense layouts')
expect(DONE, 'convert', back, os.path.join(t, 'sharded.safetensors'), '--shard-size', '64')
index = json.loads(read(os.path.join(t, 'sharded.safetensors.index.json')))
check(all((safetensors.numpy.load_file(os.path.join(t, file))[name] == loaded[name]).all() for name, file in index['weight_map'].items()) and sorted(index['weight_map']) == sorted(loaded), 'shards')
finish()
