#!/usr/bin/env python3
"""hurray inspect: the JSON object, the table and its tree, the hex table, escaped names."""
import os

from support import *

t = folder()
TENSOR = {'name', 'type', 'type_tag', 'shape', 'layout', 'layout_tag', 'byte_offset', 'buffers', 'descriptor', 'parent'}
BUFFER = {'bytes', 'alignment', 'device', 'sync', 'memory_class', 'offset'}


def check_hex(path, name, d):
    hexed = expect(DONE, 'inspect', '--hex', name, path).out.decode()
    at = 0
    for line in hexed.split('\n'):
        if line[:6].strip().isdigit():
            check(int(line[:6]) == at, name, 'hex row begins at', at, line)
            body = line[8:60]
            shown = bytes.fromhex(body.replace('...', ''))
            check(d[at:at + len(shown)] == shown, name, 'hex bytes at', at, line)
            at += len(shown) if '...' not in body else 0
            if '...' in body:
                rest = [int(l[:6]) for l in hexed.split('\n') if l[:6].strip().isdigit() and int(l[:6]) > at]
                at = rest[0] if rest else len(d)
    check(at == len(d), name, 'the hex table ends at', at, 'of', len(d))
    return hexed


# layouts: JSON says what the descriptor says, and the hex table accounts for each byte
layouts = layout_items()
path = write(os.path.join(t, 'layouts.hrry'), hrry([(n, d, b) for n, (d, b, _) in layouts.items()],
                                                 {'s': 'text', 'i': -5, 'f': 1.5, 'nan': float('nan'), 'inf': float('-inf'), 'b': True, 'x': b'\0\xff', 'a': [1, 2], 'e\0\n': 'n\0l\x1b'}))
j = expect(DONE, 'inspect', '--json', path).json()
check(j['file'] == path and j['format'] == 'hrry' and j['bytes'] == os.path.getsize(path), j['file'], j['format'], j['bytes'])
check(j['container'] == {'major': 1, 'minor': 0, 'flags': 4, 'data_buffer_alignment': 4096}, j['container'])
check([x['name'] for x in j['tensors']] == list(layouts), 'write order')
raw = read(path)
for x in j['tensors']:
    d, buffers, values = layouts[x['name']]
    check(set(x) >= TENSOR, x['name'], 'keys', sorted(x))
    check(x['descriptor'] == d.hex(), x['name'], 'descriptor')
    check(x['layout'] == (x['name'] if x['name'] != 'quantized' else 'row_major'), x['name'], x['layout'])
    check(x['parent'] is None and x['type'] == ('int8' if x['name'] == 'quantized' else 'float32'), x['name'], x['type'])
    check(len(x['buffers']) == len(buffers), x['name'], 'buffers')
    for b, want in zip(x['buffers'], buffers):
        check(set(b) == BUFFER and b['bytes'] == len(want) and b['device'] == 'cpu' and b['sync'] == 'producer_synced' and b['memory_class'] == 'standard', x['name'], b)
        check(raw[b['offset']:b['offset'] + b['bytes']] == want, x['name'], 'offset', b)
    check_hex(path, x['name'], d)
q = [x for x in j['tensors'] if x['name'] == 'quantized'][0]['quantization']
check(q['scheme'] == 'per_tensor_affine' and q['scale'] == 0.5 and q['zero_point'] == 0, q)
kv = j['kv']
check(kv['s'] == {'kind': 'string', 'value': 'text'} and kv['i'] == {'kind': 'int64', 'value': -5} and kv['f'] == {'kind': 'float64', 'value': 1.5}, kv)
check(kv['nan']['value'] == 'nan' and kv['inf']['value'] == '-inf' and kv['b'] == {'kind': 'bool', 'value': True} and kv['x'] == {'kind': 'bytes', 'value': '00ff'}, kv)
check(kv['a'] == {'kind': 'array', 'element': 'int64', 'value': [1, 2]} and kv['e\0\n']['value'] == 'n\0l\x1b', kv)
table = expect(DONE, 'inspect', path).out.decode()
check(all(n in table for n in layouts) and 'metadata:' in table and 'e\\x00\\x0a' in table and '\x1b' not in table and '\0' not in table, 'table')
rows = [line for line in table.split('\n') if line.startswith(tuple(layouts))]
check(len(rows) >= len(layouts) and len({line.index('float32') for line in rows if 'float32' in line}) == 1, 'columns are aligned')

# sections behind the buffer table, private layouts: the hex table names their fields
scales = f32(0.5, 2)
sections = {
    'per_channel': (descriptor([bytes(4), scales], type_tag=0x10, shape=(2, 2), flags=1, tail=struct.pack('<IBBHIIIB3x', 20, 2, 1, 1, 0, 1, 2**32 - 1, 3)), [bytes(4), scales],
                    ['axis', 'zero_point_buffer', 'scale_type']),
    'per_block': (descriptor([bytes(4), scales], type_tag=0x10, shape=(4,), flags=1, tail=struct.pack('<IBBHIIIIB3x', 24, 3, 1, 1, 0, 2, 1, 2**32 - 1, 3)), [bytes(4), scales],
                  ['block_size', 'zero_point_buffer']),
    'mxfp': (descriptor([bytes(16), b'\x7f'], type_tag=0x10, shape=(16,), flags=1, tail=struct.pack('<IBBHIII', 16, 5, 1, 0, 0, 16, 1)), [bytes(16), b'\x7f'], ['block_size', 'scale_buffer']),
    'statistics': (descriptor([f32(0, 3)], shape=(2,), flags=8, tail=struct.pack('<IIQ6d4B4x', 63, 0, 1, 0.5, 0, 3, 3, 1.5, 1.5, 1, 2, 0, 0)), [f32(0, 3)],
                   ['computed_mask', 'sparsity_ratio', 'value_stddev', '1.5', 'nm_m', 'has_inf']),
    'extension': (descriptor([bytes(4)], type_tag=0xF0, shape=(2,), flags=4, tail=struct.pack('<I6B2xIBB2x', 16, 1, 1, 0, 1, 8, 7, 127, 1, 1)), [bytes(4)],
                  ['bit_width', 'exponent_bias']),
    'private': (descriptor([bytes(4)], layout=0xF1, shape=(2,), payload=struct.pack('<QI', 7, 3) + b'abc'), [bytes(4)], ['private id', 'private data']),
}
path = write(os.path.join(t, 'sections.hrry'), hrry([(n, d, b) for n, (d, b, _) in sections.items()]))
for name, (d, _, fields) in sections.items():
    hexed = check_hex(path, name, d)
    check(all(field in hexed for field in fields), name, 'fields', hexed)

# composites: parents in JSON, a tree in the table
items, _ = composite_items()
path = write(os.path.join(t, 'composites.hrry'), hrry(items))
j = expect(DONE, 'inspect', '--json', path).json()
check([(x['name'], x['parent']) for x in j['tensors']] == [(n, n.rpartition('.')[0] or None) for n, _, _ in items], [(x['name'], x['parent']) for x in j['tensors']])
heads = {x['name']: x['composite'] for x in j['tensors'] if 'composite' in x}
check(heads == {'part': {'rule': 'partition', 'combine_op': 'none', 'member_count': 2}, 'over': {'rule': 'overlay', 'combine_op': 'add', 'member_count': 2},
                'group': {'rule': 'group', 'combine_op': 'none', 'member_count': 2}, 'group.0': {'rule': 'partition', 'combine_op': 'none', 'member_count': 1}}, heads)
check([x.get('role') for x in j['tensors'] if x['parent'] == 'over'] == ['base', 'correction'], 'roles')
check([x['shard']['offset'] if 'offset' in x['shard'] else x['shard'] for x in j['tensors'] if x['parent'] == 'part'] == [[0], [3]], [x['shard'] for x in j['tensors'] if x['parent'] == 'part'])
table = expect(DONE, 'inspect', path).out.decode()
check('\n  part.0' in table and '\n    group.0.0' in table and 'partition of 2' in table, table)

# a stream: no names, parents by place
path = write(os.path.join(t, 's.stream'), stream(items))
j = expect(DONE, 'inspect', '--json', path).json()
check(j['format'] == 'stream' and 'container' not in j and all(x['name'] is None for x in j['tensors']), 'stream')
check([x['parent'] for x in j['tensors']] == [None, 0, 0, None, 3, 3, None, 6, 7, 6], [x['parent'] for x in j['tensors']])
table = expect(DONE, 'inspect', path).out.decode()
check('\n  0.1' in table and '\n    2.0.0' in table, table)

# names that would harm a terminal are escaped; JSON has them as they are
names = ['new\nline', 'nul\0byte', 'esc\x1b[31mred', 'tab\t', 'del\x7f', 'c1\u009b', 'rtl\u202eabc', 'back\\slash', '日本語', 'quote"\'', 'x' * 300]
path = write(os.path.join(t, 'names.hrry'), hrry([(n, descriptor([f32(i)], shape=(1,)), [f32(i)]) for i, n in enumerate(names)]))
j = expect(DONE, 'inspect', '--json', path).json()
check([x['name'] for x in j['tensors']] == names, 'names in JSON')
r = expect(DONE, 'inspect', path)
table = r.out.decode()
for shown in ('new\\x0aline', 'nul\\x00byte', 'esc\\x1b[31mred', 'tab\\x09', 'del\\x7f', 'c1\\xc2\\x9b', 'rtl\\xe2\\x80\\xaeabc', 'back\\\\slash', '日本語', 'quote"\''):
    check(shown in table, repr(shown), 'in the table')
check(not any(c in table for c in '\x1b\0\t\x7f\u009b\u202e'), 'no raw control characters')
for i, n in enumerate(names):
    if '\0' not in n:
        check(expect(DONE, 'cat', path, n).out == f32(i), 'cat', repr(n))
expect(NOT_FOUND, 'cat', path, 'gone\n\x1b[1m', says='gone\\x0a\\x1b[1m')
odd = write(os.path.join(t, 'odd \xff\n'.encode('latin-1').decode('utf-8', 'surrogateescape')), read(path))
expect(DONE, 'inspect', '--json', odd).json()
check(expect(DONE, 'verify', odd).out.count(b'\n') == 1, 'a file name with a newline prints as one line')

# columns hold where names are wide
path = write(os.path.join(t, 'wide.hrry'), hrry([('日本語', descriptor([f32(1)], shape=(1,)), [f32(1)]), ('abcdef', descriptor([f32(1)], shape=(1,)), [f32(1)]), ('übér', descriptor([f32(1)], shape=(1,)), [f32(1)])]))
rows = expect(DONE, 'inspect', path).out.decode().split('\n')[1:4]
check([row.index('float32') for row in rows] == [5, 8, 8], 'wide names', rows)

# a spoiled tensor is listed with its error, the others as usual, and the code is 1
bad = bytearray(descriptor([f32(1)], shape=(1,)))
bad[14] = 0x47
path = write(os.path.join(t, 'spoiled.hrry'), hrry([('good', descriptor([f32(1)], shape=(1,)), [f32(1)]), ('bad', bytes(bad), [f32(1)]), ('last', descriptor([f32(2)], shape=(1,)), [f32(2)])]))
r = expect(BAD_INPUT, 'inspect', '--json', path, says='bad')
x = r.json()['tensors'][1]
check(set(x) == {'name', 'error'} and x['name'] == 'bad' and len(r.json()['tensors']) == 3, x)
r = expect(BAD_INPUT, 'inspect', path, says='"bad"')
check(b'good' in r.out and b'last' in r.out and b'error: ' in r.out, r)
expect(DONE, 'load', path, 'good', 'last')
expect(BAD_INPUT, 'load', path, says='"bad"')
expect(BAD_INPUT, 'convert', path, os.path.join(t, 'o.hrry'), says='"bad"')
expect(DONE, 'convert', path, os.path.join(t, 'o.hrry'), '--select', 'good')
expect(BAD_INPUT, 'cat', path, 'bad', says='"bad"')
check(expect(DONE, 'cat', path, 'last').out == f32(2), 'its neighbours are read')
expect(BAD_INPUT, 'verify', path, says='"bad"')

# foreign files show the same object
path = write(os.path.join(t, 'm.safetensors'), safetensors([('w', 'BF16', [2, 2], bytes(8)), ('b', 'BOOL', [9], bytes([1, 0, 1, 1, 0, 0, 0, 0, 1]))], {'format': 'pt'}))
j = expect(DONE, 'inspect', '--json', path).json()
check(j['format'] == 'safetensors' and j['kv'] == {'format': {'kind': 'string', 'value': 'pt'}}, j['kv'])
check([(x['name'], x['type'], x['shape'], x['buffers'][0]['bytes']) for x in j['tensors']] == [('w', 'bfloat16', [2, 2], 8), ('b', 'bool', [9], 2)], j['tensors'])
path = write(os.path.join(t, 'm.gguf'), gguf([('q', [32], 8, bytes(34)), ('f', [2, 1], 0, f32(1, 2))]))
j = expect(DONE, 'inspect', '--json', path).json()
check(j['format'] == 'gguf' and [(x['name'], x.get('ggml'), x['layout'], x['shape']) for x in j['tensors']] == [('q', 'Q8_0', 'private', [32]), ('f', None, 'row_major', [1, 2])], j['tensors'])
check(b'Q8_0' in expect(DONE, 'inspect', path).out, 'block type in the table')

# nothing but headers is read: payload that is not there any more (a hole) does not matter; quiet silences notes only
check(expect(DONE, 'inspect', '--quiet', path).err == b'', 'quiet')
finish()
