#!/usr/bin/env python3
"""hurray cat: buffers as they are, logical elements of every layout, as float32, as text."""
import math
import os

from support import *

t = folder()
layouts = layout_items()
items, heads = composite_items()
path = write(os.path.join(t, 'a.hrry'), hrry([(n, d, b) for n, (d, b, _) in layouts.items()] + items))
for name, (d, buffers, values) in layouts.items():
    check(expect(DONE, 'cat', path, name).out == buffers[0], name, 'buffer 0 is the default')
    for i, b in enumerate(buffers):
        check(expect(DONE, 'cat', path, name, '--buffer', str(i)).out == b, name, 'buffer', i)
    expect(NOT_FOUND, 'cat', path, name, '--buffer', str(len(buffers)), says='%d buffer' % len(buffers))
    check(expect(DONE, 'cat', path, name, '--as', 'float32').out == f32(*values), name, 'as float32')
    if name == 'quantized':
        check(expect(DONE, 'cat', path, name, '--dense').out == buffers[0], 'a quantized tensor in its own type: its codes')
        check(expect(DONE, 'cat', path, name, '--text').out == b'1\n2\n-1\n4\n', 'codes as text')
    else:
        check(expect(DONE, 'cat', path, name, '--dense').out == f32(*values), name, 'dense')
        check(expect(DONE, 'cat', path, name, '--text').out.decode() == ''.join('%d\n' % v for v in values), name, 'text')
    check(expect(DONE, 'cat', path, name, '--as', 'float32', '--text').out.decode() == ''.join('%g\n' % v for v in values), name, 'float32 as text')
for name, values in heads.items():
    check(expect(DONE, 'cat', path, name, '--dense').out == f32(*values), name, 'composite')
    check(expect(DONE, 'cat', path, name, '--text').out.decode() == ''.join('%d\n' % v for v in values), name, 'composite as text')
expect(NOT_FOUND, 'cat', path, 'part', says='0 buffers')
expect(BAD_INPUT, 'cat', path, 'group', '--dense', says='group')
check(expect(DONE, 'cat', path, 'over.1').out == f32(5, 6), 'a member has a name of its own')

# a stream's items are numbered
streamed = write(os.path.join(t, 'a.stream'), stream([(n, d, b) for n, (d, b, _) in layouts.items()] + items))
n = len(layouts)
check(expect(DONE, 'cat', streamed, '0').out == layouts['row_major'][1][0], 'item 0')
check(expect(DONE, 'cat', streamed, 'p.%d.1' % n, '--name-prefix', 'p').out == f32(4), 'member of an item, with a prefix')
check(expect(DONE, 'cat', streamed, '%d' % n, '--dense').out == f32(1, 2, 3, 4), 'head of an item')
expect(NOT_FOUND, 'cat', streamed, 'row_major', says='row_major')

# every element type as text
cases = {0x01: ('float16', '003c00c0', '1\n-2\n'), 0x02: ('bfloat16', '803f00c0', '1\n-2\n'), 0x03: ('float32', '0000803fcdcccc3d', '1\n0.100000001\n'),
         0x04: ('float64', '9a9999999999b93f000000000000f87f', '0.10000000000000001\nnan\n'), 0x10: ('int8', '80ff', '-128\n-1\n'), 0x11: ('uint8', '80ff', '128\n255\n'),
         0x12: ('int16', '0080ffff', '-32768\n-1\n'), 0x13: ('uint16', '0080ffff', '32768\n65535\n'), 0x14: ('int32', '00000080ffffffff', '-2147483648\n-1\n'),
         0x15: ('uint32', '00000080ffffffff', '2147483648\n4294967295\n'), 0x16: ('int64', '0000000000000080' + 'ff' * 8, '-9223372036854775808\n-1\n'),
         0x17: ('uint64', '0000000000000080' + 'ff' * 8, '9223372036854775808\n18446744073709551615\n'), 0x20: ('bool', '01', '1\n0\n'), 0x40: ('float8_e4m3', '38c0', '1\n-2\n'),
         0x41: ('float8_e5m2', '3cc0', '1\n-2\n'), 0x42: ('float8_e8m0', '7f80', '1\n2\n'), 0x43: ('float4_e2m1', 'c2', '1\n-2\n'), 0x44: ('float6_e2m3', '080c00', '1\n-2\n'),
         0x45: ('float6_e3m2', '0c0900', '1\n-2\n'), 0x48: ('int4', '8f', '-1\n-8\n'), 0x49: ('uint4', '8f', '15\n8\n'), 0x4A: ('int2', '0b', '-1\n-2\n'), 0x4B: ('uint2', '0b', '3\n2\n'),
         0x50: ('complex64', '0000803f000000c0' * 2, '1 -2\n1 -2\n'), 0x51: ('complex128', '000000000000f03f00000000000000c0' * 2, '1 -2\n1 -2\n'),
         0x46: ('float128', '00' * 14 + 'ff3f' + '00' * 14 + '00c0', '1\n-2\n')}
cases[0x44] = ('float6_e2m3', struct.pack('<I', 0x08 | 0x30 << 6)[:3].hex(), '1\n-2\n')
cases[0x45] = ('float6_e3m2', struct.pack('<I', 0x0C | 0x30 << 6)[:3].hex(), '1\n-2\n')
typed = write(os.path.join(t, 'types.hrry'), hrry([(n, descriptor([bytes.fromhex(h)], type_tag=tag), [bytes.fromhex(h)]) for tag, (n, h, _) in cases.items()]))
for tag, (name, h, text) in cases.items():
    check(expect(DONE, 'cat', typed, name, '--dense').out == bytes.fromhex(h), name, 'dense')
    r = expect(DONE, 'cat', typed, name, '--text')
    check(r.out.decode() == text, name, 'text', r.out, 'want', text)
check(expect(DONE, 'cat', typed, 'float16', '--as', 'float16').out == bytes.fromhex('003c00c0'), 'its own type by name')
expect(USAGE, 'cat', typed, 'float16', '--as', 'bfloat16', says=['--as bfloat16', 'float16'])
check(expect(DONE, 'cat', typed, 'float16', '--as', 'float32').out == f32(1, -2), 'float16 as float32')

# GGML blocks decode; what has no dense view says so
g = write(os.path.join(t, 'g.gguf'), gguf([('q', [32], 8, struct.pack('<e', 0.5) + bytes(range(32))), ('iq', [256], 16, bytes(66))]))
check(expect(DONE, 'cat', g, 'q', '--as', 'float32').out == f32(*[i / 2 for i in range(32)]), 'Q8_0 as float32')
check(expect(DONE, 'cat', g, 'q', '--text').out.split() == [b'%g' % (i / 2) for i in range(32)], 'Q8_0 as text')
check(len(expect(DONE, 'cat', g, 'q').out) == 34, 'Q8_0 raw')
expect(BAD_INPUT, 'cat', g, 'iq', '--as', 'float32', says='iq')
private = descriptor([f32(1)], layout=0xF3, shape=(1,), payload=struct.pack('<QI', 7, 0))
p = write(os.path.join(t, 'p.hrry'), hrry([('p', private, [f32(1)])]))
check(expect(DONE, 'cat', p, 'p').out == f32(1), 'a private layout has buffers')
expect(BAD_INPUT, 'cat', p, 'p', '--dense', says='p')
finish()
