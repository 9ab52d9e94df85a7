#!/usr/bin/env python3
"""hurray verify: what structure, padding, data rules and sums are found to be wrong, one line each."""
import os
import zipfile

from support import *

t = folder()


def file(content, name='f.hrry'):
    return write(os.path.join(t, name), content)


good = hrry([(n, d, b) for n, (d, b, _) in layout_items().items()] + composite_items()[0], {'k': 'v'})
path = file(good)
for options in ([], ['--data']):
    r = expect(DONE, 'verify', path, *options)
    check(r.out.count(b'\n') == 1 and b'right' in r.out, r)
j = expect(BAD_INPUT, 'verify', '--json', write(os.path.join(t, 'cut.hrry'), read(path)[:-1]), says='cut.hrry').json()
check(j['ok'] is False and [f['field'] for f in j['findings']] == ['trailer.magic'], 'what does not open is a finding', j)
j = expect(DONE, 'verify', '--json', path).json()
check(j['ok'] is True and j['findings'] == [] and j['file'] == path and j['tensors'] == 22, j)
check(b'no checksums' in expect(DONE, 'verify', '--data', path).out, 'no sums is no failure, and said')

# an archive has sums of its own
numpy = b'\x93NUMPY\1\0' + struct.pack('<H', 54) + b"{'descr':'<f4','fortran_order':False,'shape':(1,)}".ljust(53) + b'\n' + f32(1)
archive = os.path.join(t, 'a.npz')
with zipfile.ZipFile(archive, 'w') as z:
    z.writestr('a.npy', numpy)
check(b'checksums right' in expect(DONE, 'verify', '--data', archive).out and expect(DONE, 'verify', '--data', '--json', archive).json()['checksums'] == 'stored', 'NPZ has sums')

# padding
bad = bytearray(good)
bad[70 + len(descriptor([24], shape=(2, 3)))] = 1
r = expect(BAD_INPUT, 'verify', file(bytes(bad)), says='adding')
check(r.out == b'', 'no verdict beside the finding', r)

# rules that need data: each is one finding that names the tensor
cases = {
    'coo': (6, (2, 3), [f32(7, 8), u64s(0, 1, 0, 1)], struct.pack('<QB7x', 2, 1), 3),
    'csr': (7, (2, 3), [f32(7, 8), u64s(1, 9), u64s(0, 1, 2)], struct.pack('<Q8x', 2), 3),
    'csc': (8, (2, 3), [f32(7, 8), u64s(0, 1), u64s(0, 2, 1, 2)], struct.pack('<Q8x', 2), 3),
    'paged': (10, (4, 1, 1), [f32(3, 4, 1, 2), struct.pack('<2I', 1, 7), struct.pack('<2I', 0, 2)], struct.pack('<IQIIBIB6x', 2, 2, 0, 1, 0, 0xFFFFFFFF, 0), 3),
    'e8m0': (1, (2,), [b'\x7f\xff'], b'', 0x42),
    'bits': (1, (3,), [b'\xff'], b'', 0x20),
}
for name, (layout, shape, buffers, payload, tag) in cases.items():
    path = file(hrry([('ok', descriptor([f32(1, 2)]), [f32(1, 2)]), (name, descriptor(buffers, layout=layout, shape=shape, payload=payload, type_tag=tag), buffers)]))
    expect(BAD_INPUT, 'verify', path, says='"%s"' % name)
    j = expect(BAD_INPUT, 'verify', '--json', path).json()
    check(j['ok'] is False and [f['tensor'] for f in j['findings']] == [name] and set(j['findings'][0]) >= {'status', 'message'}, j)
    expect(DONE, 'load', path)

# every finding is a line
path = file(hrry([(n, descriptor(b, layout=l, shape=s, payload=p, type_tag=g), b) for n, (l, s, b, p, g) in cases.items()]))
r = run('verify', path)
check(r.code == BAD_INPUT and r.err.count(b'\n') == len(cases), r)

# index checksum, magic, truncation
for at, word in ((len(good) - 60, 'CRC-32C'), (0, ''), (len(good) - 1, ''), (8, 'version')):
    bad = bytearray(good)
    bad[at] ^= 0x55
    expect(BAD_INPUT, 'verify', file(bytes(bad)), says=word)
for n in (0, 1, 63, 64, 100, len(good) // 2, len(good) - 1):
    expect(BAD_INPUT, 'verify', file(good[:n]))
expect(BAD_INPUT, 'verify', file(good + b'\0'))

# other formats
expect(DONE, 'verify', file(safetensors([('a', 'F32', [1], f32(1))]), 'm.safetensors'))
expect(BAD_INPUT, 'verify', file(safetensors([('a', 'BOOL', [2], b'\1\2')]), 'm.safetensors'), says=['"a"', '2'])
expect(DONE, 'verify', file(gguf([('q', [32], 8, bytes(34))]), 'm.gguf'))
r = run('verify', file(gguf([('q', [32], 8, bytes(34))]) + b'tail', 'm.gguf'))
check(r.code == DONE and b'hurray: note: ' in r.err and b'm.gguf: 4 bytes' in r.err, 'bytes behind the last tensor are reported', r)
check(b'no checksums' in expect(DONE, 'verify', '--data', file(safetensors([]), 'm.safetensors')).out, 'a format without sums')
finish()
