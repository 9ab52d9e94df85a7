#!/usr/bin/env python3
"""hurray load: every option, what the report says, trace and picture; names win over patterns."""
import os
import xml.dom.minidom
import zipfile

from support import *

t = folder()
KEYS = {'bytes', 'seconds', 'tensors', 'path', 'direct', 'device', 'peak_pinned', 'peak_rss'}
data = os.urandom(3 << 20)
model = [('t%02d' % i, descriptor([data], type_tag=0x11, shape=(len(data),)), [data]) for i in range(4)] + [('small.%d' % i, descriptor([f32(i)], shape=(1,)), [f32(i)]) for i in range(50)]
model += [('t0?', descriptor([f32(5)], shape=(1,)), [f32(5)])]
total = 4 * len(data) + 51 * 4
plain = write(os.path.join(t, 'plain.hrry'), hrry(model))
path = os.path.join(t, 'm.hrry')
expect(DONE, 'convert', plain, path)
for options in ([], ['--io', 'auto'], ['--io', 'uring'], ['--io', 'threads'], ['--io', 'mmap'], ['--direct', 'auto'], ['--direct', 'on'], ['--direct', 'off'], ['--threads', '1'], ['--threads', '7'],
                ['--memory-mb', '1'], ['--memory-mb', '64', '--pinned-mb', '8'], ['--pinned', 'off'], ['--huge-pages', 'off'], ['--huge-pages', 'on'], ['--queue-depth', '2', '--io', 'uring'],
                ['--chunk', '64K'], ['--chunk', '1M', '--threads', '2'], ['--chunk', '4096', '--direct', 'on'], ['--device', 'cpu'], ['--device', 'auto'], ['--verify'],
                ['--verify', '--io', 'mmap'], ['--verify', '--direct', 'on', '--chunk', '100000'], ['--verify', '--threads', '1'], ['--io', 'mmap', '--direct', 'on'], ['-q']):
    j = expect(DONE, 'load', '--json', path, *options).json()
    check(set(j) >= KEYS, options, 'keys', sorted(j))
    check(j['bytes'] == total and j['tensors'] == len(model), options, j)
    check(isinstance(j['seconds'], float) and j['seconds'] > 0 and j['peak_rss'] > 0 and j['direct'] in (True, False) and j['path'] in ('uring', 'threads', 'mmap'), options, j)
    if '--io' in options:
        want = options[options.index('--io') + 1]
        check(want == 'auto' or j['path'] == want or j['reason'], options, 'another way has a reason', j['path'], j['reason'])
    else:
        check(j['path'] != 'mmap', options, 'never mapped unasked')
    if '--direct' in options and options[-1] == 'off':
        check(j['direct'] is False, options)
    if '--verify' in options:
        check(j['bytes_verified'] == total, options, j['bytes_verified'])
    if j['path'] == 'mmap':
        check(j['bytes_in_place'] == total, options, j['bytes_in_place'])
    text = expect(DONE, 'load', path, *options).out.decode()
    check(bool(re.search('in [0-9]+ reads?, ', text)) == (j['ranges'] > 0), 'reads are told where there are some', options, text)
    check('each summed over what ran at once' in text and 'overlap' not in text, 'times are sums; without copies nothing overlaps', text)
    check('%d tensors' % len(model) in text and 'GB/s' in text or '/s' in text, options, text)
check(expect(DONE, 'load', '--json', plain, '--verify').json()['bytes_verified'] == 0, 'nothing to verify without stored sums')

# what was really done, and why it is not what was asked: a file mapped in part, one mapped and checked, wishes beyond a limit
def aligned(tensors):
    head, at = {}, 0
    for name, data in tensors:
        head[name] = {'dtype': 'U8', 'shape': [len(data)], 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b' ' * (-(8 + len(text)) % 64)
    return struct.pack('<Q', len(text)) + text + b''.join(d for _, d in tensors)


parted = write(os.path.join(t, 'parted.safetensors'), aligned([('a', data), ('odd', b'abc'), ('b', data)]))
j = expect(DONE, 'load', '--json', parted, '--io', 'mmap').json()
ways = {p['path']: p for p in j['paths']}
check(set(ways) == {'mmap', 'threads'} and ways['mmap']['bytes'] == j['bytes_in_place'] == len(data) + 3 and ways['mmap']['reason'] == '', j)
check(ways['threads']['bytes'] == j['bytes_read'] == len(data) and 'multiples of 64 bytes' in ways['threads']['reason'], j)
text = expect(DONE, 'load', parted, '--io', 'mmap').out.decode()
check(len(re.findall('^path .*parted', text, re.M)) == 2 and 'mmap to cpu, 3.15 MB\n' in text and 'unaligned in the file' in text, text)
j = expect(DONE, 'load', '--json', parted, 'b', '--io', 'mmap').json()
check(j['path'] == 'threads' and j['reason'] and j['bytes_in_place'] == 0, 'nothing was mapped', j)
j = expect(DONE, 'load', '--json', path, '--io', 'mmap', '--verify').json()
check(j['paths'][0]['bytes'] == total and j['ranges'] == 0 and j['bytes_read'] == 0, 'a check of what is mapped is no read', j)
check('a mapping was used' in expect(DONE, 'load', '--json', path, '--io', 'mmap', '--direct', 'on').json()['reason'], 'direct reads of a mapping')
for options, says in ((['--queue-depth', '4096'], 'queue depth is 1024, the most'), (['--chunk', '1'], 'chunk size is 4096, the least'), (['--chunk', '100G'], 'chunk size is 1073741824, the most'),
                      (['--threads', '1024'], 'thread count is')):
    check(says in expect(DONE, 'load', '--json', path, *options).json()['reason'], options, 'should say', says)
reason = expect(DONE, 'load', '--json', path, '--queue-depth', '4096', '--chunk', '1').json()['reason']
check('queue depth' in reason and '; the chunk size' in reason, 'each wish has its sentence', reason)
if 'HugePages_Total:       0' in open('/proc/meminfo').read():
    check('reserved huge pages were not used' in expect(DONE, 'load', '--json', path, '--huge-pages', 'on').json()['reason'], 'no huge pages are reserved')

# an archive's members have sums of their own, and their bytes in the file are what is read
def npy(values):
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    head += b' ' * (63 - (10 + len(head)) % 64) + b'\n'
    return b'\x93NUMPY\1\0' + struct.pack('<H', len(head)) + head + f32(*values)


for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
    npz = os.path.join(t, 'a.npz')
    with zipfile.ZipFile(npz, 'w', method) as z:
        z.writestr('w.npy', npy([1] * 1000000))
    j = expect(DONE, 'load', '--json', npz).json()
    check(j['bytes'] == j['bytes_verified'] == 4000000, 'the CRC of a member is checked', j)
    check(j['bytes_read'] == 4000000 if method == zipfile.ZIP_STORED else 0 < j['bytes_read'] < 100000, 'bytes of the file are read', j)

# choosing
for names, count in ((['t00'], 1), (['t0?'], 1), (['t0[0-1]'], 2), (['small.*'], 50), (['t00', 'small.1?'], 11), (['*'], len(model)), (['t00', 't00', 't0[0]'], 1)):
    j = expect(DONE, 'load', '--json', path, *names).json()
    check(j['tensors'] == count, names, 'chooses', j['tensors'])
expect(NOT_FOUND, 'load', path, 't00', 'nobody', says='nobody')
expect(NOT_FOUND, 'load', path, 'none*', says='none*')

# items of a stream have names here, for patterns, too
items = write(os.path.join(t, 'items.stream'), stream([(None, descriptor([f32(i)], shape=(1,)), [f32(i)]) for i in range(12)]))
for names, count in ((['*'], 12), (['1?'], 2), (['3', '1*'], 4)):
    check(expect(DONE, 'load', '--json', items, *names).json()['tensors'] == count, names, 'of a stream')
check(expect(DONE, 'load', '--json', items, 'p.?', '--name-prefix', 'p').json()['tensors'] == 10, 'a prefix and a pattern')
expect(NOT_FOUND, 'load', items, 'none*', says='none*')

# many files: one line of the report where they went the same way, and more of them than descriptors at first
parts = os.path.join(t, 'parts')
os.mkdir(parts)
for i in range(100):
    write(os.path.join(parts, '%d.safetensors' % i), safetensors([('t%d' % i, 'F32', [1], f32(i))]))
write(os.path.join(parts, 'model.safetensors.index.json'), json.dumps({'weight_map': {'t%d' % i: '%d.safetensors' % i for i in range(100)}}).encode())
r = subprocess.run(['bash', '-c', 'ulimit -Sn 40; exec "$0" "$@"', BIN, 'load', parts], capture_output=True)
lines = [line for line in r.stdout.decode().splitlines() if line.startswith('path')]
check(r.returncode == DONE and len(lines) == 1 and '100 files: ' in lines[0] and '400 B in 100 reads' in lines[0], r)

# trace and picture
trace, picture = os.path.join(t, 'trace.json'), os.path.join(t, 'a <b> & c.svg')
for options in ([], ['--threads', '1'], ['--io', 'mmap'], ['--io', 'uring', '--chunk', '64K'], ['--verify', '--chunk', '64K']):
    expect(DONE, 'load', path, '--trace', trace, '--picture', picture, *options)
    events = json.loads(read(trace))['traceEvents']
    named = {(e['pid'], e['tid']) for e in events if e['ph'] == 'M' and e['name'] == 'thread_name'}
    events = sorted((e for e in events if e['ph'] != 'M'), key=lambda e: (e['pid'], e['tid'], e['ts']))
    check({(e['pid'], e['tid']) for e in events} == named, options, 'each row has a name', named)
    check(all((a['pid'], a['tid']) != (b['pid'], b['tid']) or a['ts'] + a['dur'] <= b['ts'] + 0.002 for a, b in zip(events, events[1:])), options,
          'what happens at once has rows of its own')
    check(all(e['ph'] == 'X' and e['dur'] >= 0 and e['ts'] >= 0 and e['name'] in ('read', 'copy', 'check', 'wait') for e in events), options, events[:3])
    check(all(e['args']['name'] == model[e['args']['tensor']][0] for e in events if 'tensor' in e['args']), options, 'names of tensors')
    if 'mmap' not in options:
        check(sum(e['args']['bytes'] for e in events if e['name'] == 'read') >= total, options, 'all bytes are in the trace')
    if '--verify' in options:
        check(any(e['name'] == 'check' for e in events), options, 'checks are in the trace')
    svg = xml.dom.minidom.parse(picture).documentElement
    check(svg.tagName == 'svg' and (len(svg.getElementsByTagName('rect')) > 1 or not events), options, 'picture')
odd = write(os.path.join(t, 'a <b> & \x01"\xff.hrry'), read(path))
expect(DONE, 'load', odd, '--picture', picture)
xml.dom.minidom.parse(picture)
expect(SYSTEM, 'load', path, '--trace', '/dev/full', says='/dev/full')
for option in ('--trace', '--picture'):  # known before the load, which would fail here
    hole = write(os.path.join(t, 'hole.hrry'), read(path)[:5000] + bytes([read(path)[5000] ^ 1]) + read(path)[5001:])
    expect(SYSTEM, 'load', hole, '--verify', option, os.path.join(t, 'no', 'such.svg'), says='such.svg')
    expect(BAD_INPUT, 'load', hole, '--verify', option, os.path.join(t, 'new.json'), says='CRC')
    check(not os.path.exists(os.path.join(t, 'new.json')), 'a load that fails leaves no file')
    old = write(os.path.join(t, 'old.json'), b'old')
    expect(BAD_INPUT, 'load', hole, '--verify', option, old, says='CRC')
    check(read(old) == b'old', 'nor takes one away')
    write(old, b'x' * 10000000)
    expect(DONE, 'load', path, option, old)
    check(len(read(old)) < 1000000, 'what was there before is gone')

# every format, every composite, and nothing at all
items, _ = composite_items()
c = write(os.path.join(t, 'c.hrry'), hrry(items))
check(expect(DONE, 'load', '--json', c).json()['tensors'] == len(items), 'composites')
check(expect(DONE, 'load', '--json', c, 'part').json()['bytes'] == 16, 'a head brings its members')
check(expect(DONE, 'load', '--json', c, 'part.1').json()['bytes'] == 4, 'a member alone')
for name, content in (('e.hrry', hrry([])), ('e.safetensors', safetensors([])), ('z.hrry', hrry([('z', descriptor([b''], shape=(0,)), [b''])])),
                      ('g.gguf', gguf([('q', [32], 8, bytes(34))])), ('s.stream', stream(items))):
    e = write(os.path.join(t, name), content)
    for options in ([], ['--io', 'mmap'], ['--threads', '1'], ['--verify']):
        j = expect(DONE, 'load', '--json', e, *options).json()
        check(set(j) >= KEYS, name, sorted(j))

# a file that ends early, or has a hole, says which tensor
whole = gguf([('a name', [32], 8, bytes(34))])
for end in range(20, len(whole) - 40):
    expect(BAD_INPUT, 'load', write(os.path.join(t, 'cut.gguf'), whole[:end]), says=['cut.gguf', 'incomplete download?'])
cut = write(os.path.join(t, 'cut.safetensors'), safetensors([('a', 'F32', [2], f32(1, 2))])[:-1])
expect(BAD_INPUT, 'load', cut, says=['cut.safetensors', 'incomplete'])
finish()
