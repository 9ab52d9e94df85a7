#!/usr/bin/env python3
"""pyhurray reads what we write, we read what it writes; without stored sums a file is the same byte for byte, but for composites.

Composites differ: pyhurray pads to the data alignment behind a composite head and its index gives a head that padded place as data_offset;
the format has no padding there (a head has no data region), so we write none. It reads our files all the same. Streams have no padding and
are equal byte for byte."""
import random

from peers import *
import hurray
import numpy

random.seed(5)
t = folder()
D = hurray.dtype


def noise(n):
    return random.randbytes(n)


def dense(name, shape, **more):
    dtype = getattr(D, name)
    count = 1
    for n in shape:
        count *= n
    size = hurray.buffer_size_bytes(dtype, count)
    data = bytearray(noise(size))
    if dtype.bit_width < 8 and size:  # unused bits of the last byte or group are zero
        used = count * dtype.bit_width
        whole = int.from_bytes(data, 'little') & ((1 << used) - 1)
        data = whole.to_bytes(size, 'little')
    if name == 'float8_e8m0':
        data = bytes(1 + b % 254 for b in data)
    return hurray.Tensor(bytes(data), dtype, list(shape), **more)


def raw(item, i):
    return numpy.asarray(item.buffer(i)).tobytes()


def u64(*v):
    return struct.pack('<%dQ' % len(v), *v)


groups = {}
names = [n for n in dir(D) if not n.startswith('_')]
groups['types'] = {'%s.%s' % (n, 'x'.join(map(str, s))): dense(n, s) for n in names for s in ((5, 3), (27,), (), (0,), (2, 0, 3))}
groups['shapes'] = {'rank64': dense('uint8', [1] * 63 + [3]), 'page': dense('uint8', [4096]), 'page+1': dense('uint8', [4097]), 'page-1': dense('uint8', [4095]), 'MB': dense('float32', [512, 512]),
                    'ö': dense('int16', [2]), '日本/語.重み': dense('int16', [3]), 'new\nline\x1b': dense('int16', [1]), 'nul\0': dense('int16', [1]), 'n' * 5000: dense('int8', [1])}
F = hurray.float32
groups['layouts'] = {
    'col': dense('float32', [3, 4], layout=hurray.ColMajorLayout()),
    'tiled': dense('float32', [4, 8], layout=hurray.TiledLayout([2, 4])),
    'tiled.cc': dense('int8', [4, 8], layout=hurray.TiledLayout([2, 4], outer_layout='col_major', inner_layout='col_major')),
    'morton': dense('float32', [4, 4], layout=hurray.MortonLayout([2, 2])),
    'hilbert': dense('float32', [4, 4], layout=hurray.HilbertLayout(2, 2)),
    'strided': hurray.Tensor(noise(4 * 12), F, [2, 4], layout=hurray.StridedLayout([6, 1])),
    'coo': hurray.Tensor(noise(8), F, [3, 3], aux_buffers=[u64(0, 1, 2, 2)], layout=hurray.CooLayout(nnz=2, is_sorted=True)),
    'csr': hurray.Tensor(noise(8), F, [2, 3], aux_buffers=[u64(0, 2), u64(0, 1, 2)], layout=hurray.CsrLayout(nnz=2)),
    'csc': hurray.Tensor(noise(8), F, [3, 2], aux_buffers=[u64(0, 2), u64(0, 1, 2)], layout=hurray.CscLayout(nnz=2)),
    'paged': hurray.Tensor(noise(4 * 2 * 2 * 1 * 3), F, [4, 1, 3], aux_buffers=[struct.pack('<2I', 1, 0), struct.pack('<2I', 0, 2)],
                           layout=hurray.BlockPagedLayout(page_size=2, num_pages=2, paged_axis=0, num_seqs=1)),
    'private': hurray.Tensor(noise(10), F, [4], layout=hurray.PrivateExtensionLayout(0xF3, extension_layout_id=7, extension_data=b'abc')),
}
groups['quantized'] = {
    'tensor': dense('int8', [4, 4], quantization=hurray.PerTensorAffine(0.5, 3)),
    'channel': hurray.Tensor(noise(16), D.int8, [4, 4], aux_buffers=[struct.pack('<4f', 1, 2, 3, 4)], quantization=hurray.PerChannelAffine.symmetric(0, 1)),
    'channel.zero': hurray.Tensor(noise(16), D.uint8, [4, 4], aux_buffers=[struct.pack('<4f', 1, 2, 3, 4), struct.pack('<4i', 1, 2, 3, 4)], quantization=hurray.PerChannelAffine.asymmetric(1, 1, 2)),
    'block': hurray.Tensor(noise(32), D.int8, [4, 8], aux_buffers=[struct.pack('<8f', *range(1, 9))], quantization=hurray.PerBlockAffine.symmetric(1, 4, 1, hurray.float32)),
    'block.4': hurray.Tensor(noise(16), D.int4, [4, 8], aux_buffers=[struct.pack('<8e', *range(1, 9)), struct.pack('<8i', *range(-4, 4))], quantization=hurray.PerBlockAffine.asymmetric(1, 4, 1, 2, hurray.float16)),
    'nf4': hurray.Tensor(noise(16), D.uint4, [2, 16], aux_buffers=[struct.pack('<4f', *range(4))], quantization=hurray.NF4(axis=1, block_size=8, scale_buffer_index=1)),
    'mxfp': hurray.Tensor(noise(16), D.float4_e2m1, [1, 32], aux_buffers=[b'\x7f\x80'], quantization=hurray.MXFP(axis=1, block_size=16, scale_buffer_index=1)),
}
groups['sections'] = {
    'shard': dense('float32', [2, 2], shard=hurray.Shard([4, 4], [2, 2])),
    'stats': dense('float32', [2], statistics=hurray.Statistics(nnz=2, value_min=-1.0, value_max=1.0, value_abs_max=1.0, has_nan=False, has_inf=True)),
}


def part(values, parent, at):
    return hurray.Tensor(struct.pack('<%df' % len(values), *values), F, [len(values)], shard=hurray.Shard([parent], [at]))


def composites():
    p = hurray.Composite('partition', shape=[4], dtype=F, members=[part([1, 2, 3], 4, 0), part([4], 4, 3)])
    made = {'p': p, 'g': hurray.Composite('group', shape=[0], dtype=F, members=[dense('int8', [3]), p, dense('float64', [2])]), 'after': dense('float32', [3])}
    try:
        made['o'] = hurray.Composite('overlay', shape=[4], dtype=F, combine_op='add', members=[part([1, 1, 1, 1], 4, 0), part([5, 6], 4, 1)])
    except Exception as error:
        print('no overlay could be made:', error)
    return made


groups['composites'] = composites()
KV = {'s': 'text', 'ö': 'ü\0', 'i': -2**63, 'big': 2**63 - 1, 'f': 0.1, 'inf': float('inf'), 'b': True, 'x': b'\0\xff', 'as': ['a', 'b'], 'ai': [1, -2], 'af': [1.5], 'ab': [True, False], 'ax': [b'', b'y']}


def flat(name, item):
    """A tensor, or a composite and its members, with the names a file gives them."""
    yield name, item
    if isinstance(item, hurray.Composite):
        for i, member in enumerate(item.members):
            yield from flat('%s.%d' % (name, i), member)


def content(item):
    if isinstance(item, hurray.Composite):
        return ('composite', item.descriptor.encode(), [content(m) for m in item.members])
    return ('tensor', item.descriptor.encode(), [raw(item, i) for i in range(item.buffer_count)])


def equal(path, tensors, kv, at):
    loaded = hurray.load(path)
    check(list(loaded) == list(tensors) or sorted(loaded) == sorted(tensors), at, 'names', list(loaded)[:5])
    for name, item in tensors.items():
        check(name in loaded and content(loaded[name]) == content(item), at, repr(name), 'content')
    theirs = hurray.load_kv(path)
    theirs.pop('libhurray.crc32c', None)
    check(theirs == kv, at, 'KV', theirs)


KINDS = {bool: 'bool', int: 'int64', float: 'float64', str: 'string', bytes: 'bytes'}
for group, tensors in groups.items():
    kv = KV if group in ('types', 'composites') else {}
    theirs = os.path.join(t, group + '.hrry')
    hurray.save(theirs, tensors, kv=kv or None)
    if group == 'composites':  # members get their roles only when they are written
        tensors = hurray.load(theirs)
    rows = [x for name, item in tensors.items() for x in flat(name, item)]

    # we read theirs
    j = inspect(theirs)
    check([x['name'] for x in j['tensors']] == [n for n, _ in rows], group, 'names')
    for x, (name, item) in zip(j['tensors'], rows):
        check(x['descriptor'] == item.descriptor.encode().hex(), group, repr(name), 'descriptor')
        if isinstance(item, hurray.Composite) or '\0' in name:
            continue
        for i in range(item.buffer_count):
            check(cat(theirs, name, '--buffer', str(i)) == raw(item, i), group, repr(name), 'buffer', i)
    for key, value in kv.items():
        one = value[0] if isinstance(value, list) else value
        shown = j['kv'][key]
        want = [v.hex() if isinstance(v, bytes) else v for v in value] if isinstance(value, list) else value.hex() if isinstance(value, bytes) else 'inf' if value == float('inf') else value
        check(shown['value'] == want and (shown['element'] if isinstance(value, list) else shown['kind']) == KINDS[type(one)], group, key, shown)
    expect(DONE, 'verify', theirs)
    check(expect(DONE, 'load', '--json', theirs).json()['tensors'] == len(rows), group, 'load')

    # they read ours, and it is the same file
    ours, plain = os.path.join(t, group + '.ours.hrry'), os.path.join(t, group + '.plain.hrry')
    expect(DONE, 'convert', theirs, ours)
    expect(DONE, 'convert', theirs, plain, '--no-checksums')
    equal(ours, tensors, kv, group + ' written by us')
    equal(plain, tensors, kv, group + ' written by us without sums')
    check((read(plain) == read(theirs)) == (group != 'composites'), group, 'the same bytes but for the padding behind heads')
    if group == 'composites':
        check(len(read(plain)) <= len(read(theirs)), 'no padding behind heads')
    expect(DONE, 'convert', theirs, plain, '--sorted')
    equal(plain, tensors, kv, group + ' with a sorted index')

    # streams are the same bytes both ways
    with hurray.StreamWriter() as writer:
        for item in groups[group].values():
            (writer.write_composite if isinstance(item, hurray.Composite) and hasattr(writer, 'write_composite') else writer.write)(item)
    streamed = bytes(writer.getvalue())
    check(expect(DONE, 'stream', 'write', theirs).out == streamed, group, 'stream')
    back = [content(item) for item in hurray.StreamReader(expect(DONE, 'stream', 'write', ours).out)]
    check(back == [content(item) for item in tensors.values()], group, 'their reader reads our stream')
    kept = os.path.join(t, group + '.stream.hrry')
    expect(DONE, 'stream', 'read', kept, stdin=streamed)
    check([content(x) for x in hurray.load(kept).values()] == [content(x) for x in tensors.values()] or
          sorted(map(repr, map(content, hurray.load(kept).values()))) == sorted(map(repr, map(content, tensors.values()))), group, 'a file made from their stream')
finish()
