#!/usr/bin/env python3
"""Feeds descriptors, whole and damaged, to the library and to an independent decoder and compares verdicts and meaning.

usage: compare_decoders.py PROBE SHARED [MUTATIONS-PER-DESCRIPTOR | all]
PROBE is the program decode_probe, SHARED the folder with checks/decode_check.py and vectors/. Exit 77 when SHARED is not there.
all: each bit flipped once, not a sample of them, and many mutations; minutes.
"""
import glob
import json
import os
import random
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
from oracle import load  # noqa: E402

PROBE, SHARED = sys.argv[1:3]
ALL = sys.argv[3:] == ['all']
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 and not ALL else 300
oracle = load(SHARED)


def rule_cases():
    """The oracle's own hand-made cases, caught as it decodes them."""
    caught, real = [], oracle.decode

    def spy(b):
        caught.append(bytes(b))
        return real(b)
    oracle.decode = spy
    try: oracle.rules()
    finally: oracle.decode = real
    return caught


def corpus():
    found = []
    for name in ('pyhurray', 'handmade'):
        text = json.load(open(os.path.join(SHARED, 'vectors', name, 'manifest.json')))
        stack = [text]
        while stack:
            x = stack.pop()
            if isinstance(x, dict):
                if 'descriptor_hex' in x: found.append(bytes.fromhex(x['descriptor_hex']))
                stack += x.values()
            elif isinstance(x, list): stack += x
    for path in sorted(glob.glob(os.path.join(SHARED, 'vectors', 'reference', 'descriptors', '*.bin'))):
        found.append(open(path, 'rb').read())
    return found


def meaning(b):
    """What a descriptor says, without what carries no meaning (minor version, lengths, fields that nothing may depend on)."""
    d = oracle.decode(b)
    d.pop('minor'); d.pop('length')
    if 'stats' in d:
        s = d['stats']; mask = s['mask']
        f = [struct.pack('<d', x) for x in s['f']]
        d['stats'] = (mask, mask & 1 and s['nnz'], mask & 2 and f[0], mask & 4 and f[1:4], mask & 8 and f[4:6], mask & 16 and s['nm'], mask & 32 and s['ni'])
    if 'ext' in d and not d['ext']['float']: d['ext'].pop('nan'); d['ext'].pop('inf')
    if 'q' in d and 'scale' in d['q']: d['q']['scale'] = struct.pack('<f', d['q']['scale'])
    return d


def damaged(b, r):
    """One descriptor with one to three changes of the kinds that find missing checks."""
    b = bytearray(b)
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        at = r.randrange(10, len(b)) if len(b) > 10 else 0
        how = r.randrange(9)
        if how == 0: b[at] ^= 1 << r.randrange(8)
        elif how == 1: b[at] = r.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 0x0A, 0x0B, 0x40, 0x49, 0x7F, 0x80, 0xEF, 0xF0, 0xFE, 0xFF))
        elif how == 2 and at + 8 <= len(b): b[at:at + 8] = struct.pack('<Q', r.choice((0, 1, 2, 3, 16, 63, 64, 65, 1 << 31, 1 << 32, 1 << 40, 1 << 60, 1 << 61, 1 << 63, (1 << 63) - 1, 2**64 - 2, 2**64 - 1)))
        elif how == 3 and at + 4 <= len(b): b[at:at + 4] = struct.pack('<I', r.choice((0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 2048, 4096, 1 << 31, 2**32 - 1)))
        elif how == 4: del b[at:at + r.choice((1, 4, 8, 16))]
        elif how == 5: b[at:at] = bytes(r.choice((1, 4, 8, 16)))
        elif how == 6: b[at:at] = b[at:at + r.choice((1, 4, 8, 16))]
        elif how == 7: b[5] = r.choice((1, 255))
        elif how == 8 and at + 8 <= len(b):
            v, = struct.unpack_from('<Q', b, at)
            b[at:at + 8] = struct.pack('<Q', (v + r.choice((-8, -1, 1, 8))) % 2**64)
        if r.random() < .8 and len(b) >= 10: b[6:10] = struct.pack('<I', len(b))
    return bytes(b)


def generated(r):
    """A descriptor of random kind whose buffer sizes the oracle has settled; then one byte less and more in each, and neighbours of
    its other numbers."""
    P = struct.pack
    layout = r.choice((1, 2, 3, 3, 4, 4, 4, 5, 5, 6, 7, 8, 9, 10, 0x40))
    types = list(oracle.T) + [0xF0]
    scheme = r.choice((0, 0, 1, 2, 3, 4, 5))
    typ = r.choice(sorted(oracle.STORAGE[scheme])) if scheme else r.choice(types)
    rank = {7: 2, 8: 2, 9: r.choice((3, 4)), 10: 3, 0x40: r.choice((2, 3))}.get(layout, r.choice((1, 2, 2, 3, 4)))
    shape = [r.choice((1, 2, 3, 4, 5, 7, 8, 16, 31, 32)) for _ in range(rank)]
    if r.random() < .1: shape[r.randrange(rank)] = r.choice((0, 2**64 - 1, 2**63))
    off = 0 if 6 <= layout <= 10 else r.choice((0, 0, 1, 64, 1000))
    strides = lambda: b''.join(P('<q', r.choice((-64, -5, -1, 0, 0, 1, 2, 3, 8, 100))) for _ in range(rank))
    tiles = lambda: [r.choice((1, 2, 2, 3, 4, 8)) for _ in range(rank)]
    pay, own = b'', 1
    if layout == 3: pay = strides()
    if layout == 4:
        levels = r.choice((1, 1, 2, 3, 8))
        for level in range(levels):
            o, i = r.choice((1, 2, 3)), r.choice((1, 2, 3)) if level + 1 == levels else 4
            pay += b''.join(P('<Q', x) for x in tiles()) + bytes((o, i, 0, 0)) + (strides() if o == 3 else b'') + (strides() if i == 3 else b'')
    if layout == 5: pay = b''.join(P('<I', max(1, (min(s, 2**40) - 1).bit_length() + r.choice((0, 0, 1)))) for s in shape)
    if layout == 0x40:
        order = r.choice((1, 2, 3, 5)); shape = [1 << order] * rank; pay = P('<II', order, rank)
    nnz = r.choice((0, 1, 2, 5, 9, 2**61))
    if layout == 6: pay, own = P('<QB7x', nnz, r.choice((0, 1))), 2
    if layout in (7, 8): pay, own = P('<Q8x', nnz), 3
    if layout == 9:
        order = list(range(rank)); r.shuffle(order); pay, own = P('<Q', nnz) + P('<%dI8x' % rank, *order), 2 * rank + 1
    page = r.choice((1, 2, 4, 16))
    if layout == 10: pay, own = P('<IQIIBIB6x', page, r.choice((0, 1, 4)), 0, r.choice((0, 1, 3)), r.choice((0, 1, 2)), r.choice((0, 2**32 - 1)), r.choice((0, 1))), 3
    flags, tail, count = 0, b'', own
    if scheme:
        axis = r.randrange(rank); block = r.choice((2, 4, 8, 16, 32))
        if scheme == 5:
            block = r.choice((16, 32))
            if layout != 0x40: shape[axis] = block * r.choice((1, 2, 3))
        if layout == 10 and scheme == 3: axis, block = r.choice(((0, page), (0, page), (1, 2)))
        one = r.random() < .3; fl = r.choice((0, 1)) if scheme in (2, 3) else 0
        count += 0 if scheme == 1 else 1 if fl or one or scheme > 3 else 2
        zero = 0xFFFFFFFF if fl else own if one else own + 1
        body = {1: P('<fiI', .25, r.choice((0, 1)), 0), 2: P('<IIIBxxx', axis, own, zero, 3), 3: P('<IIIIBxxx', axis, block, own, zero, r.choice((1, 2, 3))),
                4: P('<III', axis, block, own), 5: P('<III', axis, block, own)}[scheme]
        body = P('<BBH', scheme, 1, fl) + body
        flags |= 1; tail += P('<I', len(body)) + body
    if r.random() < .2: flags |= 2; tail += b''.join(P('<Q', x) for x in shape) + bytes(8 * rank)
    if typ == 0xF0:
        w = r.choice((1, 2, 4, 8, 16, 24, 2**20)); flags |= 4; tail += P('<IBBB3BHIBBH', w, 8 // w if w < 8 else 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    sizes = [0] * count

    def make(sizes, off, pay=pay, shape=shape):
        x = P('<IBBI', flags, typ, layout, rank) + b''.join(P('<Q', s) for s in shape) + P('<Q', off) + pay + bytes([count])
        x += b''.join(P('<QIBBBB', n, 64, 0, 0, 0, 0) for n in sizes) + tail
        return b'HRRY\1\0' + P('<I', len(x) + 10) + x
    made = []
    for _ in range(12):
        b = make(sizes, off); made.append(b)
        try: oracle.decode(b); break
        except oracle.Reject as e: why = str(e)
        m = re.search(r'buffer (\d+) has \d+ bytes, needs (\d+)', why)
        dense = re.search(r'bytes \[(-?\d+), (\d+)\) of', why)
        if m: sizes[int(m[1])] = int(m[2])
        elif dense and int(dense[1]) < 0: off -= int(dense[1])
        elif dense: sizes[0] = int(dense[2])
        elif 'byte_offset above' in why: sizes[0] = off
        elif 'zero-point buffer size' in why: sizes[-1] = 4 * (sizes[own] // {1: 2, 2: 2, 3: 4}[tail[4 + 20]]) if scheme == 3 else sizes[own]
        else:
            m = re.search(r'scale buffer has \d+ bytes, wants (\d+)', why)
            if not m: break
            sizes[own] = int(m[1])
        if max(sizes) >= 2**64 or off >= 2**64: break
    for k in range(count):
        for more in (-1, 1):
            near = list(sizes); near[k] = (near[k] + more) % 2**64
            if max(near) < 2**64: made.append(make(near, off % 2**64))
    if max(sizes) < 2**64 and 0 < off < 2**64: made += [make(sizes, off - 1), make(sizes, (off + 1) % 2**64)]
    for k in range(rank):
        for more in (-1, 1):
            near = list(shape); near[k] = (near[k] + more) % 2**64
            if max(sizes) < 2**64: made.append(make(sizes, off % 2**64, shape=near))
    return [b for b in made if len(b) < 1 << 16]


def main():
    r = random.Random(20)
    seeds = list(dict.fromkeys(corpus() + rule_cases()))
    good = []
    for b in seeds:
        try: oracle.decode(b); good.append(b)
        except oracle.Reject: pass
    inputs = dict.fromkeys(seeds)
    for b in good:
        if len(b) > 700: continue
        for cut in range(len(b)): inputs[b[:cut]] = None
        for bit in range(8 * len(b)):
            if not ALL and len(good) > 100 and r.random() > .25: continue
            x = bytearray(b); x[bit // 8] ^= 1 << bit % 8; inputs[bytes(x)] = None
    for b in seeds:
        if len(b) <= 1500:
            for _ in range(COUNT): inputs[damaged(b, r)] = None
    for _ in range(COUNT * 50): inputs.update(dict.fromkeys(generated(r)))
    inputs = [b for b in inputs if len(b) < 1 << 16]
    answer = subprocess.run([PROBE], input='\n'.join(b.hex() for b in inputs) + '\n', capture_output=True, text=True)
    if answer.returncode:
        print(answer.stderr[-4000:]); return 1
    lines = answer.stdout.splitlines()
    assert len(lines) == len(inputs), (len(lines), len(inputs))
    wrong = accepted = 0
    for b, line in zip(inputs, lines):
        verdict, _, rest = line.partition(' ')
        try: oracle.decode(b); why = None
        except oracle.Reject as e: why = str(e)
        problem = None
        if (why is None) != (verdict == 'ok'): problem = 'library: %s; oracle: %s' % (line[:300], why or 'accepts')
        elif why is None:
            accepted += 1
            again = bytes.fromhex(rest)
            if meaning(b) != meaning(again): problem = 'canonical form means something else: ' + rest
            elif again[5] != 0: problem = 'canonical form has minor version %d' % again[5]
        elif not rest.split(' ', 3)[3:]: problem = 'no message: ' + line
        if problem:
            wrong += 1
            if wrong <= 20: print(b.hex(), problem, sep='\n  ')
    for b in corpus():
        if lines[inputs.index(b)] != 'ok ' + b.hex(): wrong += 1; print('not the same bytes again: ' + b.hex())
    print('%d descriptors, %d of them accepted, %d differences' % (len(inputs), accepted, wrong))
    return wrong != 0


sys.exit(main())
