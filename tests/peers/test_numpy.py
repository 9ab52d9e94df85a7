#!/usr/bin/env python3
"""NPZ and NPY archives written by numpy: every type, order, byte order and compression."""
from peers import *
import numpy

t = folder()
numpy.random.seed(2)
arrays = {}
for dtype in ('?', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16'):
    for order in '<>' if numpy.dtype(dtype).itemsize > 1 else '|':
        for shape in ((), (7,), (3, 5), (2, 3, 4), (0,), (2, 0, 3), (1,)):
            a = (numpy.random.randn(*shape) * 50)
            a = (a > 0) if dtype == '?' else numpy.asarray(a).astype(order + dtype)
            a = numpy.asarray(a)
            for layout in 'CF' if a.ndim > 1 else 'C':
                arrays['%s%s.%s.%s' % ('be.' if order == '>' else '', a.dtype.name, 'x'.join(map(str, shape)) or 'scalar', layout)] = numpy.array(a, order=layout)
arrays['ö/日本'] = numpy.arange(3)
big = numpy.random.randint(0, 9, (1 << 20,)).astype('>i4')
arrays['big'] = big
for save in (numpy.savez, numpy.savez_compressed):
    path, out = os.path.join(t, save.__name__ + '.npz'), os.path.join(t, save.__name__ + '.hrry')
    save(path, **arrays)
    j = inspect(path)
    check([x['name'] for x in j['tensors']] == list(arrays), save.__name__, 'names')
    expect(DONE, 'verify', path)
    expect(DONE, 'convert', path, out)
    check(b'checksums right' in expect(DONE, 'verify', '--data', out).out, 'sums')
    for options in ([], ['--threads', '1'], ['--chunk', '4096'], ['--io', 'mmap'], ['--verify']):
        check(expect(DONE, 'load', '--json', path, *options).json()['tensors'] == len(arrays), save.__name__, options)
    for x in j['tensors']:
        a = arrays[x['name']]
        little = numpy.ascontiguousarray(a).astype(a.dtype.newbyteorder('<'), copy=False)
        want = numpy.packbits(little.reshape(-1), bitorder='little').tobytes() if a.dtype == bool else little.tobytes()
        check(x['shape'] == list(a.shape) and x['type'] == a.dtype.name.replace('bool_', 'bool'), x['name'], x['type'], x['shape'])
        check(x['layout'] == ('column_major' if a.ndim > 1 and not a.flags.c_contiguous else 'row_major'), x['name'], x['layout'])
        check(cat(out, x['name'], '--dense') == want, save.__name__, x['name'], 'converted')
        if save is numpy.savez_compressed:
            check(cat(path, x['name'], '--dense') == want, save.__name__, x['name'], 'direct')

# a lone array is named after its file
for name, a in (('scalar', numpy.float32(4)), ('matrix', numpy.asfortranarray(numpy.arange(6, dtype='>f8').reshape(2, 3)))):
    path = os.path.join(t, name + '.npy')
    numpy.save(path, a)
    j = inspect(path)
    check(j['format'] == 'npy' and [x['name'] for x in j['tensors']] == [name], j['tensors'])
    check(cat(path, name, '--dense') == numpy.ascontiguousarray(a).astype(numpy.asarray(a).dtype.newbyteorder('<')).tobytes(), name)

# what is never guessed is a fault of its own tensor
path = os.path.join(t, 'odd.npz')
numpy.savez(path, good=numpy.arange(2), text=numpy.array(['a', 'b']), objects=numpy.array([{}, []], dtype=object), fields=numpy.zeros(2, dtype=[('a', 'f4')]), long=numpy.zeros(1, dtype=numpy.longdouble))
r = expect(BAD_INPUT, 'convert', path, os.path.join(t, 'x.hrry'))
r = run('inspect', '--json', path)
check(r.code == BAD_INPUT and ['error' in x for x in r.json()['tensors']] == [False, True, True, True, True], r)
check(cat(path, 'good') == numpy.arange(2).tobytes(), 'its neighbours are read')
finish()
