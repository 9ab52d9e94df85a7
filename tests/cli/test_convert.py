#!/usr/bin/env python3
"""hurray convert: what is kept, what options change, what is refused; round trips."""
import os

from support import *

t = folder()


def path(name):
    return os.path.join(t, name)


def listing(file):
    """Everything that inspect says, file and place apart."""
    j = expect(DONE, 'inspect', '--json', file).json()
    tensors = []
    for x in j['tensors']:
        x = dict(x)
        x['buffers'] = [{k: v for k, v in b.items() if k != 'offset'} for b in x['buffers']]
        tensors.append(x)
    return tensors, {k: v for k, v in j['kv'].items() if k != 'libhurray.crc32c'}, j['container']['data_buffer_alignment'] if 'container' in j else None


def same_bytes(a, b, names=None):
    for x in expect(DONE, 'inspect', '--json', a).json()['tensors']:
        if names is None or x['name'] in names:
            for i in range(len(x['buffers'])):
                one, two = run('cat', a, x['name'], '--buffer', str(i)), run('cat', b, (names or {}).get(x['name'], x['name']), '--buffer', str(i))
                check(one.code == two.code == DONE and one.out == two.out, x['name'], 'buffer', i)


def leftovers(*expected):
    check(sorted(os.listdir(t)) == sorted(expected), 'files', sorted(os.listdir(t)), 'expected', sorted(expected))


# .hrry to .hrry keeps names, order, descriptors, metadata, alignment
items, _ = composite_items()
layouts = [(n, d, b) for n, (d, b, _) in layout_items().items()]
kv = {'s': 'text', 'i': -5, 'f': 1.5, 'b': True, 'x': b'\0\xff', 'a': ['p', 'q'], 'e\0': 'n\0l'}
a = write(path('a.hrry'), hrry(layouts + items + [('zz', descriptor([f32(1)], shape=(1,)), [f32(1)]), ('aa\0b', descriptor([f32(2)], shape=(1,)), [f32(2)])], kv, alignment=65536))
o = path('o.hrry')
expect(DONE, 'convert', a, o)
check(listing(a) == listing(o), 'the same listing')
same = [n for n, _, _ in layouts + items]
same_bytes(a, o, dict(zip(same, same)))
j = expect(DONE, 'inspect', '--json', o).json()
check(j['container']['data_buffer_alignment'] == 65536 and j['container']['flags'] == 4, j['container'])
check(list(j['kv'])[-1] == 'libhurray.crc32c' and j['kv']['libhurray.crc32c']['kind'] == 'bytes', 'sums are the last metadata entry')
check(all(x['buffers'] == [] or x['buffers'][0]['offset'] % 65536 == 0 for x in j['tensors']), 'places follow the alignment')
check(b'checksums right' in expect(DONE, 'verify', '--data', o).out, 'its sums hold')
expect(DONE, 'convert', o, path('o2.hrry'))
check(read(o) == read(path('o2.hrry')), 'converting again gives the same bytes')
expect(DONE, 'convert', a, path('plain.hrry'), '--no-checksums')
check('libhurray.crc32c' not in expect(DONE, 'inspect', '--json', path('plain.hrry')).json()['kv'], '--no-checksums')
check(b'no checksums' in expect(DONE, 'verify', '--data', path('plain.hrry')).out, 'verify says that there are none')
expect(DONE, 'convert', o, path('plain2.hrry'), '--no-checksums')
check(read(path('plain.hrry')) == read(path('plain2.hrry')), 'sums are dropped')
expect(DONE, 'convert', a, path('b.hrry'), '--align', '4K', '--sorted')
j = expect(DONE, 'inspect', '--json', path('b.hrry')).json()
check(j['container']['data_buffer_alignment'] == 4096 and j['container']['flags'] == 6, j['container'])
check(listing(path('b.hrry'))[:2] == listing(a)[:2], 'a sorted index changes neither order nor content')
for size in ('4096', '8K', '2M'):
    expect(DONE, 'convert', a, path('b.hrry'), '--align', size, '--select', 'row_major')

# input = output, and a path through a link
before = listing(o)
expect(DONE, 'convert', o, o, '--align', '4096')
check(listing(o)[:2] == before[:2] and listing(o)[2] == 4096, 'converted in place')
os.symlink('o.hrry', path('link.hrry'))
expect(DONE, 'convert', a, path('link.hrry'))
check(expect(DONE, 'verify', path('link.hrry')).code == DONE, 'through a link')
os.chmod(o, 0o640)
os.remove(path('link.hrry'))

# memory does not grow with the tensors: 192 MiB pass through less than 64, and 217 MB of blocks, decoded or changed on the way
large = path('large.safetensors')
with open(large, 'wb') as f:
    header = json.dumps({'large': {'dtype': 'U8', 'shape': [192 << 20], 'data_offsets': [0, 192 << 20]}}).encode()
    f.write(struct.pack('<Q', len(header)) + header)
    f.truncate(8 + len(header) + (192 << 20))
blocks = path('blocks.gguf')
with open(blocks, 'wb') as f:
    header = gguf([('large', [32 * 6400000], 8, b'')])
    f.write(header)
    f.truncate(len(header) + 34 * 6400000)
small = dict(os.environ, ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':quarantine_size_mb=1')
for file, out, options in ((large, 'large.hrry', []), (large, 'large2.safetensors', []), (blocks, 'blocks.hrry', ['--quantization', 'native']), (blocks, 'blocks.safetensors', ['--dense'])):
    process = subprocess.Popen([BIN, 'convert', file, path(out), *options], env=small)
    _, status, usage = os.wait4(process.pid, 0)
    check(status == 0 and usage.ru_maxrss < 64 << 10, out, 'takes', usage.ru_maxrss, 'KiB')
    os.remove(path(out))
os.remove(large)
os.remove(blocks)

# a name of a format that is not written
r = expect(DONE, 'convert', a, path('o.gguf'))
check(b'o.gguf: written in the .hrry format' in r.err and expect(DONE, 'inspect', '--json', path('o.gguf')).json()['format'] == 'hrry', 'is noted', r)
check(expect(DONE, 'convert', a, path('o.gguf'), '--to', 'hrry').err == b'', 'is not noted where the format was asked for')
os.remove(path('o.gguf'))

# choosing and renaming
expect(DONE, 'convert', a, o, '--select', 'part', '--select', 'c*', '--rename', 'part=whole', '--rename', 'c*=k.*')
tensors, _, _ = listing(o)
check([(x['name'], x['parent']) for x in tensors] == [('k.olumn_major', None), ('k.oo', None), ('k.sr', None), ('k.sc', None), ('k.sf', None), ('whole', None), ('part.0', 'whole'), ('part.1', 'whole')],
      [(x['name'], x['parent']) for x in tensors])
check(expect(DONE, 'cat', o, 'whole', '--dense').out == f32(1, 2, 3, 4), 'a renamed head')
expect(DONE, 'convert', a, o, '--rename', 'zz=*', '--select', 'zz')
check([x['name'] for x in listing(o)[0]] == ['*'], 'a * without one in OLD is just a character')
expect(BAD_INPUT, 'convert', a, path('x.hrry'), '--rename', 'zz=row_major', says='row_major')
expect(BAD_INPUT, 'convert', a, path('x.hrry'), '--rename', 'zz=', says='name')
for out in ('x.hrry', 'x.safetensors'):
    expect(BAD_INPUT, 'convert', a, path(out), '--select', 'cs[rc]', '--rename', 'cs*=same', says=['tensor "same"', '"csr" and "csc"', '--rename'])
letters = write(path('letters.safetensors'), safetensors([(n, 'F32', [1], f32(1)) for n in ('a\u00e9b', 'axb', 'axyb')]))
for glob in ('a?b', 'a[\u00e9x]b', 'a[!y]b'):
    expect(DONE, 'convert', letters, o, '--select', glob)
    check([x['name'] for x in expect(DONE, 'inspect', '--json', o).json()['tensors']] == ['a\u00e9b', 'axb'], glob, 'is about characters')
    check(expect(DONE, 'load', '--json', letters, glob).json()['tensors'] == 2, glob, 'is the same pattern for load')
bracket = write(path('bracket.safetensors'), safetensors([(n, 'F32', [1], f32(1)) for n in ('t1', 't[1]', 't[2]')]))
for pattern, names in (('t[1]', ['t[1]']), ('t[12]', ['t1']), ('t\\[[12]\\]', ['t[1]', 't[2]'])):
    expect(DONE, 'convert', bracket, o, '--select', pattern)
    check([x['name'] for x in listing(o)[0]] == names, pattern, 'a name wins over a pattern')
    check(expect(DONE, 'load', '--json', bracket, pattern).json()['tensors'] == len(names), pattern, 'and so for load')
    check(expect(DONE, 'load', '--json', bracket, pattern, 't1').json()['tensors'] == len(set(names + ['t1'])), pattern, 'beside another')
expect(DONE, 'convert', a, o, '--select', 'part.1', '--select', 'over.1')
check([x['name'] for x in listing(o)[0]] == ['part.1', 'over.1'] and expect(DONE, 'cat', o, 'over.1').out == f32(5, 6), 'members alone')
for f in ('b.hrry', 'o2.hrry', 'plain2.hrry', 'letters.safetensors', 'bracket.safetensors'):
    os.remove(path(f))
leftovers('a.hrry', 'o.hrry', 'plain.hrry')

# a stream: items get names
s = write(path('s.stream'), stream(items))
expect(DONE, 'convert', s, o, '--name-prefix', 'it')
check([x['name'] for x in listing(o)[0]] == ['it.0', 'it.0.0', 'it.0.1', 'it.1', 'it.1.0', 'it.1.1', 'it.2', 'it.2.0', 'it.2.0.0', 'it.2.1'], [x['name'] for x in listing(o)[0]])
expect(DONE, 'convert', s, o)
check([x['name'] for x in listing(o)[0]][:3] == ['0', '0.0', '0.1'], 'without a prefix: numbers')

# safetensors and back, byte for byte
tensors = [('w8', 'F64', [1], bytes(8)), ('a', 'F32', [2, 3], f32(1, 2, 3, 4, 5, 6)), ('z', 'F32', [], f32(9)), ('é/name "q"', 'BF16', [0, 4], b''), ('i', 'I8', [3], b'abc'),
           ('u', 'U8', [2], b'\xfe\xff'), ('flags', 'BOOL', [9], bytes([1, 0, 0, 1, 1, 0, 1, 0, 1]))]
st = write(path('m.safetensors'), safetensors(tensors, {'format': 'pt'}))
expect(DONE, 'convert', st, o)
expect(DONE, 'convert', o, path('back.safetensors'))
check(read(st) == read(path('back.safetensors')), 'safetensors -> hrry -> safetensors')
expect(DONE, 'convert', st, path('again.safetensors'))
check(read(st) == read(path('again.safetensors')), 'safetensors -> safetensors')
expect(DONE, 'convert', st, path('named'), '--to', 'safetensors')
check(read(st) == read(path('named')), '--to decides, not the name')
expect(DONE, 'convert', st, path('named'), '--to', 'hrry')
check(read(path('named'))[:8] == b'HRRYFILE', '--to hrry')
empty = write(path('empty.safetensors'), safetensors([]))
expect(DONE, 'convert', empty, o)
check(os.path.getsize(o) == 112, 'nothing at all is 112 bytes')
expect(DONE, 'convert', o, path('again.safetensors'))
check(read(path('again.safetensors')) == struct.pack('<Q', 8) + b'{}      ', 'and back')

# what safetensors cannot hold is refused by name, decoded when asked for
st2 = path('x.safetensors')
for name in ('coo', 'csr', 'csf', 'block_paged', 'quantized', 'part', 'over'):
    expect(BAD_INPUT, 'convert', a, st2, '--select', name, '--kv-as-text', says=name)
    expect(DONE, 'convert', a, st2, '--select', name, '--dense', '--kv-as-text')
    j = expect(DONE, 'inspect', '--json', st2).json()
    check([x['name'] for x in j['tensors']] == [name] and j['tensors'][0]['type'] == 'float32', name, 'decoded', j['tensors'])
    check(expect(DONE, 'cat', st2, name).out == expect(DONE, 'cat', a, name, '--as', 'float32').out, name, 'decoded values')
for name in ('column_major', 'strided', 'tiled', 'morton', 'hilbert'):
    expect(DONE, 'convert', a, st2, '--select', name, '--kv-as-text')
    check(expect(DONE, 'cat', st2, name).out == expect(DONE, 'cat', a, name, '--dense').out, name, 'row-major')
os.remove(st2)
expect(BAD_INPUT, 'convert', a, st2, '--select', 'group', '--dense', '--kv-as-text', says='group')
expect(BAD_INPUT, 'convert', a, st2, '--select', 'zz', says='kv-as-text')
m = write(path('m.hrry'), hrry([('__metadata__', descriptor([f32(1)], shape=(1,)), [f32(1)])]))
expect(BAD_INPUT, 'convert', m, st2, says='__metadata__')
m = write(path('m.hrry'), hrry([('four', descriptor([b'\x21'], type_tag=0x48), [b'\x21'])]))
expect(BAD_INPUT, 'convert', m, st2, says=['four', 'int4'])
expect(DONE, 'convert', a, path('kv.safetensors'), '--select', 'zz', '--kv-as-text')
j = expect(DONE, 'inspect', '--json', path('kv.safetensors')).json()
check(j['kv']['i']['value'] == '-5' and j['kv']['b']['value'] == 'true' and j['kv']['s']['value'] == 'text', j['kv'])
check(not os.path.exists(st2), 'what was refused left nothing')

# shards, with an index that reads back as one model
many = [('t%02d' % i, 'F32', [256], f32(*[i] * 256)) for i in range(10)]
write(st, safetensors(many, {'k': 'v'}))
os.mkdir(path('shards'))
expect(DONE, 'convert', st, path('shards/model.safetensors'), '--shard-size', '3K')
check(sorted(os.listdir(path('shards'))) == ['model-%05d-of-00004.safetensors' % i for i in (1, 2, 3, 4)] + ['model.safetensors.index.json'], os.listdir(path('shards')))
index = json.loads(read(path('shards/model.safetensors.index.json')))
check(index['metadata']['total_size'] == 10240 and index['weight_map']['t03'] == 'model-00002-of-00004.safetensors', index)
expect(DONE, 'convert', path('shards'), path('joined.safetensors'))
check(read(path('joined.safetensors')) == read(st), 'shards -> one file')
check(expect(DONE, 'load', '--json', path('shards/model.safetensors.index.json')).json()['bytes'] == 10240, 'shards load')
expect(DONE, 'convert', st, path('shards/one.safetensors'), '--shard-size', '1G')
check(os.path.exists(path('shards/one-00001-of-00001.safetensors')), 'one shard is numbered too')
os.remove(path('shards/model-00002-of-00004.safetensors'))
expect(BAD_INPUT, 'inspect', path('shards/model.safetensors.index.json'), says='model-00002-of-00004.safetensors')

# damage is found, and no fresh sum goes over it
damaged = path('damaged.hrry')
expect(DONE, 'convert', st, damaged)
content = bytearray(read(damaged))
at = [x for x in expect(DONE, 'inspect', '--json', damaged).json()['tensors'] if x['name'] == 't04'][0]['buffers'][0]['offset']
content[at:at + 512] = bytes(512)
write(damaged, bytes(content))
expect(DONE, 'load', damaged)
expect(DONE, 'verify', damaged)
for arguments in (['verify', '--data', damaged], ['load', '--verify', damaged], ['load', '--verify', '--threads', '1', damaged], ['load', '--verify', '--io', 'mmap', damaged],
                  ['cat', damaged, 't04', '--dense'], ['convert', damaged, path('x.hrry')], ['convert', damaged, st2], ['convert', damaged, damaged]):
    r = expect(BAD_INPUT, *arguments, says=['damaged.hrry', 't04', 'CRC-32C'])
check(read(damaged) == bytes(content) and not os.path.exists(path('x.hrry')) and not os.path.exists(st2), 'nothing was written')
expect(DONE, 'load', '--verify', damaged, 't03', 't05')
expect(DONE, 'convert', damaged, path('x.hrry'), '--select', 't0[0-3]')
j = expect(BAD_INPUT, 'verify', '--data', '--json', damaged).json()
check(j['ok'] is False and len(j['findings']) == 1 and j['findings'][0]['tensor'] == 't04', j)
check(not [n for n in os.listdir(t) if n.startswith('.hurray')], 'no temporaries')
finish()
