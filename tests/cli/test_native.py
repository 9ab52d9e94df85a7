#!/usr/bin/env python3
"""hurray convert --quantization native: the values stay, blocks that have no such form stay blocks."""
import os
import random

from support import *

t = folder()
random.seed(7)
# number, name, elements and bytes of a block, where its float16 scales lie, has a native form
KINDS = [(8, 'Q8_0', 32, 34, [0], True), (2, 'Q4_0', 32, 18, [0], True), (6, 'Q5_0', 32, 22, [0], True), (20, 'IQ4_NL', 32, 18, [0], True), (14, 'Q6_K', 256, 210, [208], True),
         (11, 'Q3_K', 256, 110, [108], True), (23, 'IQ4_XS', 256, 136, [0], True), (34, 'TQ1_0', 256, 54, [52], True), (35, 'TQ2_0', 256, 66, [64], True), (39, 'MXFP4', 32, 17, [], True),
         (3, 'Q4_1', 32, 20, [0, 2], False), (12, 'Q4_K', 256, 144, [0, 2], False), (13, 'Q5_K', 256, 176, [0, 2], False), (10, 'Q2_K', 256, 84, [80, 82], False)]


def blocks(kind, count):
    out = b''
    for _ in range(count):
        b = bytearray(random.randbytes(kind[3]))
        for at in kind[4]:
            b[at:at + 2] = struct.pack('<e', random.choice([0.5, -0.25, 0.0078125, 1.5]))
        if kind[1] == 'MXFP4':
            b[0] = random.randrange(100, 150)
        out += bytes(b)
    return out


tensors = [(k[1], [4 * k[2], 3], k[0], blocks(k, 12)) for k in KINDS]
tensors += [('Q4_K.again', [256], 12, blocks(KINDS[11], 1)), ('zero', [32], 8, bytes(2) + bytes(range(32))), ('infinite', [32], 8, b'\0\x7c' + bytes(32)), ('plain', [2], 0, f32(1, 2))]
g = write(os.path.join(t, 'g.gguf'), gguf(tensors))
blocky, native = os.path.join(t, 'blocks.hrry'), os.path.join(t, 'native.hrry')
check(expect(DONE, 'convert', g, blocky).err == b'', 'without the option nothing is noted')
r = expect(DONE, 'convert', g, native, '--quantization', 'native')
notes = r.errors.strip().split('\n')
check(len(notes) == 5 and all(n.startswith('hurray: note: ') for n in notes), 'a note for each kind that stays, and for the scale that cannot be said', notes)
check(all(any(k in n for n in notes) for k in ('Q4_1', 'Q4_K', 'Q5_K', 'Q2_K', '"infinite"')), notes)
check(expect(DONE, 'convert', g, native, '--quantization', 'native', '--quiet').err == b'', 'quiet')
check(expect(DONE, 'verify', '--data', native).code == DONE, 'verifies')
for x in expect(DONE, 'inspect', '--json', native).json()['tensors']:
    name = x['name']
    kind = [k for k in KINDS if k[1] == name]
    if name in ('plain', 'infinite', 'Q4_K.again') or kind and not kind[0][5]:
        check('quantization' not in x, name, 'stays')
        check(expect(DONE, 'cat', native, name).out == expect(DONE, 'cat', g, name).out, name, 'the same bytes')
        continue
    check(x.get('ggml') is None and x['quantization']['scheme'] in ('per_block_affine', 'mxfp'), name, x.get('quantization'))
    one, two = (expect(DONE, 'cat', f, name, '--as', 'float32').out for f in (g, native))
    one, two = (struct.unpack('<%df' % (len(v) // 4), v) for v in (one, two))
    check(len(one) == len(two) and all(a == b for a, b in zip(one, two)), name, 'the same values')

# damage is found before anything appears, whether blocks become numbers or another quantization
content = bytearray(read(blocky))
at = [x for x in expect(DONE, 'inspect', '--json', blocky).json()['tensors'] if x['name'] == 'Q6_K'][0]['buffers'][0]['offset']
content[at + 100] ^= 1
damaged, nothing = write(os.path.join(t, 'damaged.hrry'), bytes(content)), os.path.join(t, 'nothing')
for options in (['--quantization', 'native', '--quiet'], ['--to', 'safetensors', '--dense']):
    expect(BAD_INPUT, 'convert', damaged, nothing, *options, says=['damaged.hrry', 'Q6_K', 'CRC-32C'])
    check(not os.path.exists(nothing), 'nothing was written')

# from a .hrry with blocks as well, with choosing and renaming; composites keep their members
again = os.path.join(t, 'again.hrry')
expect(DONE, 'convert', blocky, again, '--quantization', 'native', '--quiet')
check(read(again) == read(native), 'from .hrry: the same file')
expect(DONE, 'convert', g, again, '--quantization', 'native', '--select', 'Q?_0', '--rename', 'Q*=n*')
check([x['name'] for x in expect(DONE, 'inspect', '--json', again).json()['tensors']] == ['n8_0', 'n4_0', 'n5_0'], 'chosen and renamed')
payload = struct.pack('<QIIII', 0x314B4C424C4D4747, 12, 8, 32, 34)
data = blocks(KINDS[0], 1)
head = descriptor([], layout=11, shape=(32,), payload=struct.pack('<BBHI', 1, 0, 0, 1))
slice_ = descriptor([data], layout=0xF0, shape=(32,), payload=payload, flags=2, tail=u64s(32, 0))
group = descriptor([], layout=11, shape=(0,), payload=struct.pack('<BBHI', 3, 0, 0, 1))
member = descriptor([data], layout=0xF0, shape=(32,), payload=payload)
c = write(os.path.join(t, 'c.hrry'), hrry([('p', head, []), ('p.0', slice_, [data]), ('g', group, []), ('g.0', member, [data])]))
r = expect(DONE, 'convert', c, again, '--quantization', 'native')
j = {x['name']: x for x in expect(DONE, 'inspect', '--json', again).json()['tensors']}
check(j['p.0']['descriptor'] == slice_.hex() and 'p.0' in r.errors, 'a slice keeps its place', r)
check('quantization' in j['g.0'] and j['g.0']['parent'] == 'g', 'a member of a group changes')
finish()
