#!/usr/bin/env python3
"""Feeds files and streams, whole and damaged, to the library and to an independent decoder and compares verdicts and contents.

usage: compare_containers.py PROBE SHARED [EDITS-PER-PART | all]
PROBE is the program file_probe, SHARED the folder with checks/decode_check.py and vectors/. Exit 77 when SHARED is not there.
all: instead of a sample, each bit of header, trailer, index, KV and streams flipped once; minutes.
"""
import functools
import glob
import itertools
import os
import random
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
from oracle import load  # noqa: E402

PROBE, SHARED = sys.argv[1:3]
ALL = sys.argv[3:] == ['all']
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 and not ALL else 60
oracle = load(SHARED)

AT_ONCE = 4096  # inputs for one run of the probe
NUMBERS = (0, 1, 7, 8, 20, 35, 64, 4096, 1 << 31, 2**32 - 1, 1 << 32, 1 << 60, 1 << 61, 2**63, 2**64 - 8, 2**64 - 1)


def crc32c_fast():
    """The oracle's own sum is exact but slow; a table of the same polynomial."""
    table = []
    for i in range(256):
        for _ in range(8): i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)

    def crc(b):
        c = 0xFFFFFFFF
        for x in b: c = c >> 8 ^ table[(c ^ x) & 255]
        return c ^ 0xFFFFFFFF
    assert crc(b'123456789') == oracle.crc32c(b'123456789') == 0xE3069283
    return crc


def parts(b):
    """The stretches of a file that have meaning."""
    io, il, ko, kl = struct.unpack_from('<QQQI', b, len(b) - 40)
    found = [(0, 64), (len(b) - 40, 40), (io, il)]
    if ko: found.append((ko, kl))
    for e in oracle.open_file(b)['entries']: found.append((e['do'], e['dl']))
    return found


def edits(b, is_file, r):
    """(edits, mend, cut) of one container."""
    yield [], 0, None
    places = parts(b) if is_file else [(0, len(b))]
    heavy = len(b) > 1 << 19
    for n, (at, length) in enumerate(places):
        wanted = COUNT if n < 4 else max(2, COUNT // 8)
        if heavy: wanted //= 8
        for _ in range(wanted):
            where = at + r.randrange(length)
            if r.random() < .5: yield [(where, bytes([b[where] ^ 1 << r.randrange(8)]))], r.randrange(2), None
            else:
                width = r.choice((1, 2, 4, 8)); value = r.choice(NUMBERS)
                if r.random() < .3 and where + 8 <= len(b): value = struct.unpack_from('<Q', b, where)[0] + r.choice((-8, -1, 1, 8, 4096))
                yield [(where, (value % 2**(8 * width)).to_bytes(width, 'little'))], r.randrange(2), None
    for _ in range(COUNT): yield [], 0, r.randrange(len(b))
    yield [], 0, len(b) + 1


def flips(b, is_file):
    """Each bit once. In a file those of header and trailer also with the index's checksum put right, those of the index with none in use."""
    places = [(0, len(b), (0,), [])]
    if is_file:
        io, il, ko, kl = struct.unpack_from('<QQQI', b, len(b) - 40)
        no_crc = [(12, bytes([b[12] & ~4])), (len(b) - 12, bytes(4))]
        places = [(0, 64, (0, 1), []), (len(b) - 40, 40, (0, 1), []), (io, il, (0,), no_crc), (ko, kl, (0,), [])]
    for at, length, mends, first in places:
        for bit in range(8 * length):
            where = at + bit // 8
            for mend in mends: yield [*first, (where, bytes([b[where] ^ 1 << bit % 8]))], mend, None


def applied(b, changes, mend, cut):
    x = bytearray(b[:cut] if cut is None or cut <= len(b) else b + b'\0' * (cut - len(b)))
    for at, v in changes:
        v = v[:max(0, len(x) - at)]; x[at:at + len(v)] = v
    if mend and len(x) >= 112 and x[12] & 4:
        io, il, ko, kl = struct.unpack_from('<QQQI', x, len(x) - 40)
        t = x[len(x) - 40:]
        ok = il >= 8 and io % 8 == 0 and io >= 64 and io + il <= len(x) - 40 and not any(t[32:36]) and bytes(t[36:]) == b'HRRY'
        ok = ok and (ko == 0) == (kl == 0) and (not ko or ko % 8 == 0 and ko >= 64 and kl >= 4 and ko + kl <= io)
        if ok: struct.pack_into('<I', x, len(x) - 12, oracle.crc32c(bytes(x[io:io + il])))
    return bytes(x)


def verdict(b, is_file):
    """What the oracle says, as the probe prints it, without codes."""
    if not is_file:
        try: return 'ok %d' % len(oracle.stream(b)), ''
        except oracle.Reject as e: return 'no', str(e)
    try: f = oracle.open_file(b)
    except oracle.Reject as e: return 'no', str(e)
    # data_length tells already that it is no head: the library then holds the place against section 9.4 while it opens.
    if any(e['dal'] and (e['dao'] % f['A'] or e['dao'] < e['do'] + e['dl']) for e in f['order']): return 'no', 'data_offset'
    words, flat, why = ['ok'], [], ''
    ends = [e['do'] for e in f['order'][1:]] + [f['ko'] or f['io']]
    for e, end in zip(f['order'], ends):
        try:
            d, rest = oracle.tensor(b, f, e); sum = 0
            # Where no bytes lie the oracle lets data_offset point behind the next descriptor; section 9.4 does not.
            oracle.need(d['layout'] == 11 or e['dao'] + e['dal'] <= end, 'data_offset past the next descriptor')
            for x in rest['bufs']: sum = zlib.crc32(x, sum)
            words.append('0:%08x' % sum); flat.append((d, rest))
        except oracle.Reject as x: words.append('-'); why = str(x)
    if '-' in words: return words, why
    try: oracle.assemble(flat); words.append('items 0')
    except oracle.Reject as x: words.append('items -'); why = str(x)
    return words, why


def differs(line, want, is_file):
    if want == 'no': return not line.startswith('no ')
    if not is_file: return line != want
    got = line.split(' ')
    if got[0] != 'ok': return True
    for w, g in zip(want[1:], got[1:]):
        if w.startswith('items'): return (w == 'items 0') != (got[-1] == '0')
        if g.startswith('0:') if w == '-' else w != g: return True
    return False


def compare(path, b, is_file, cases, shown):
    """How many of these damaged forms of one container the library and the oracle see in different ways; the first ones are printed."""
    lines = ['%s %d %s %s' % (path, m, '-' if c is None else c, ','.join('%d:%s' % (at, v.hex()) for at, v in e) or '-') for e, m, c in cases]
    answer = subprocess.run([PROBE], input='\n'.join(lines) + '\n', capture_output=True, text=True)
    if answer.returncode: sys.exit(answer.stderr[-4000:] or 'the probe ended with %d' % answer.returncode)
    out = answer.stdout.splitlines()
    assert len(out) == len(cases), (path, len(out), len(cases))
    wrong = 0
    for case, line in zip(cases, out):
        want, why = verdict(applied(b, *case), is_file)
        if line.startswith('no ') and len(line.split(' ', 2)) < 3 or differs(line, want, is_file):
            wrong += 1
            if wrong <= shown: print('%s %r\n  library: %s\n  oracle: %s %s' % (os.path.basename(path), case, line[:300], str(want)[:200], why))
    return wrong


def main():
    r = random.Random(int(os.environ.get('SEED', '11')))
    oracle.crc32c = functools.lru_cache(64)(crc32c_fast())
    oracle.decode = functools.lru_cache(4096)(oracle.decode)
    wrong = total = 0
    for path in sorted(glob.glob(os.path.join(SHARED, 'vectors', '*', '*.hrry')) + glob.glob(os.path.join(SHARED, 'vectors', '*', '*.stream')) +
                       glob.glob(os.path.join(SHARED, 'vectors', 'reference', 'files', '*.hrry'))):
        b = open(path, 'rb').read(); is_file = path.endswith('.hrry')
        damaged = flips(b, is_file) if ALL else edits(b, is_file, r)
        while cases := list(itertools.islice(damaged, AT_ONCE)):
            total += len(cases)
            wrong += compare(path, b, is_file, cases, 20 - wrong)
    print('%d containers compared, %d differ' % (total, wrong))
    return 1 if wrong or not total else 0


sys.exit(main())
