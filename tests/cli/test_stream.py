#!/usr/bin/env python3
"""hurray stream: write and read, plain and gzip, through pipes; what a torn or foreign stream says."""
import gzip
import os

from support import *

t = folder()
items, heads = composite_items()
layouts = [(n, d, b) for n, (d, b, _) in layout_items().items()]
everything = layouts + items
a = write(os.path.join(t, 'a.hrry'), hrry(everything, {'k': 'v'}))
b = os.path.join(t, 'b.hrry')

# what is written is the format's concatenation, in write order
check(expect(DONE, 'stream', 'write', a).out == stream(everything), 'plain')
zipped = expect(DONE, 'stream', 'write', '--gzip', a).out
check(gzip.decompress(zipped) == stream(everything), 'gzip')
check(expect(DONE, 'stream', 'write', a, 'part', 'coo').out == stream([x for x in everything if x[0] in ('coo', 'part', 'part.0', 'part.1')]), 'a head brings its members; write order')
check(expect(DONE, 'stream', 'write', a, 'cs?').out == stream([x for x in everything if x[0] in ('csr', 'csc', 'csf')]), 'a pattern')

# through a pipe, and compared
for option in ('', '--gzip'):
    for prefix in ('', '--name-prefix it'):
        r = subprocess.run(['bash', '-c', 'set -o pipefail; "$0" stream write %s "$1" | "$0" stream read %s "$2"' % (option, prefix), BIN, a, b], capture_output=True)
        check(r.returncode == 0 and r.stderr == b'' and r.stdout == b'', option, prefix, r)
        check(expect(DONE, 'stream', 'write', b).out == stream(everything), option, prefix, 'the same items')
        names = [x['name'] for x in expect(DONE, 'inspect', '--json', b).json()['tensors']]
        first = 'it.' if prefix else ''
        check(names[:3] == [first + '0', first + '1', first + '2'] and names[len(layouts) + 1] == '%s%d.0' % (first, len(layouts)), names)
        check(names[len(layouts) + 8] == '%s%d.0.0' % (first, len(layouts) + 2), names)
        check(b'checksums right' in expect(DONE, 'verify', '--data', b).out, 'sums')

# listed
for data in (stream(everything), zipped, gzip.compress(stream(layouts)) + gzip.compress(stream(items))):
    r = expect(DONE, 'stream', 'read', stdin=data)
    check(r.out.decode().count('\n') == len(everything) + 3 and '%d items' % (len(layouts) + 3) in r.out.decode(), r.out.decode()[-300:])
check(b'0 items' in expect(DONE, 'stream', 'read', stdin=b'').out, 'an empty stream')
expect(DONE, 'stream', 'read', b, stdin=b'')
check(os.path.getsize(b) == 112, 'an empty stream is an empty file')

# a stream in a file is a model like any other
s = write(os.path.join(t, 's.stream'), stream(everything))
check(expect(DONE, 'stream', 'write', s).out == stream(everything), 'stream -> stream')
check(b'right' in expect(DONE, 'verify', s).out, 'verify')
check(expect(DONE, 'load', '--json', s).json()['tensors'] == len([x for x in everything]), 'load')
expect(BAD_INPUT, 'inspect', write(os.path.join(t, 's.gz'), zipped), says=['gzip', 'stream read'])

# foreign formats can be streamed
m = write(os.path.join(t, 'm.safetensors'), safetensors([('a', 'F32', [2], f32(1, 2)), ('flags', 'BOOL', [9], bytes([1, 0, 0, 0, 0, 0, 0, 0, 1]))]))
check(expect(DONE, 'stream', 'write', m).out == stream([('a', descriptor([8]), [f32(1, 2)]), ('flags', descriptor([2], type_tag=0x20, shape=(9,)), [b'\1\1'])]), 'safetensors as a stream')

# damage: one line, nothing written, whatever was there before stays
write(b, b'old')
whole = stream(everything)
for cut in (1, 5, 9, 30, len(whole) - 1):
    for data in (whole[:cut], gzip.compress(whole[:cut])):
        expect(BAD_INPUT, 'stream', 'read', b, stdin=data, says='standard input')
for data, says in ((zipped[:-5], 'the gzip data ends early'), (zipped[:len(zipped) // 2], 'the gzip data ends early'), (zipped[:-6] + bytes([zipped[-6] ^ 1]) + zipped[-5:], 'checksum does not match'),
                   (zipped + b'something else', 'the gzip data is damaged')):
    r = expect(BAD_INPUT, 'stream', 'read', stdin=data, says=['standard input', says])
    check('callback' not in r.errors, 'no words of the library', r.errors)
for data in (zipped[:-5], zipped[:len(zipped) // 2], b'\x1f\x8b\x08', b'HRRYFILE' + bytes(100), b'garbage that is no stream', stream(items[:2]), whole + b'x'):
    r = expect(BAD_INPUT, 'stream', 'read', b, stdin=data, says='standard input')
    r = expect(BAD_INPUT, 'stream', 'read', stdin=data, says='standard input')
check(read(b) == b'old' and not [n for n in os.listdir(t) if n.startswith('.')], 'the old file is as it was')
expect(BAD_INPUT, 'stream', 'read', stdin=b'foo\n\x1b', says='begins with `foo\\x0a\\x1b`')
expect(BAD_INPUT, 'stream', 'read', stdin=read(a), says='a .hrry file')
expect(SYSTEM, 'stream', 'read', os.path.join(t, 'no', 'such'), stdin=whole, says='such')
r = subprocess.run(['bash', '-c', '"$0" stream read <&-', BIN], capture_output=True)
check(r.returncode == SYSTEM and r.stdout == b'' and b'standard input: Bad file descriptor' in r.stderr, 'a closed input is no empty stream', r)
finish()
