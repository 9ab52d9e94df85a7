#!/usr/bin/env python3
"""Writes small seeds for the fuzz targets, one folder per target. usage: make_corpus.py FOLDER [FILES-TO-COPY...]"""
import os, struct, sys, zlib

ROOT = sys.argv[1]


def put(target, name, data):
    folder = os.path.join(ROOT, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), 'wb') as f:
        f.write(data)


def st(header, data=b''):
    h = header.encode() if isinstance(header, str) else header
    return struct.pack('<Q', len(h)) + h + data


def entry(name, dtype, shape, begin, end):
    return '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (name, dtype, shape, begin, end)


safetensors = {
    'empty': st('{}      '),
    'plain': st('{"__metadata__":{"format":"pt","a":"b"},' + entry('x', 'F32', '[2,1]', 0, 8) + ',' + entry('y', 'BOOL', '[9]', 8, 17) + '}  ', bytes(17)),
    'types': st('{' + ','.join(entry('t%d' % i, d, '[8]', sum(b[:i]), sum(b[:i + 1])) for i, d in enumerate(
        ['F8_E4M3FNUZ', 'F4', 'F6_E2M3', 'C64', 'F8_E8M0']) for b in [[8, 4, 6, 64, 8]]) + '}', bytes(90)),
    'escapes': st('{' + entry('\\u00e9\\ud83d\\ude00\\n\\u0000', 'U8', '[]', 0, 1) + '}', b'x'),
    'unknown': st('{"t":{"x":[[{"y":[1]}]],"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b'x'),
    'twice': st('{' + entry('a', 'U8', '[1]', 0, 1) + ',' + entry('\\u0061', 'U8', '[1]', 1, 2) + '}', b'xy'),
    'scalar_zero': st('{' + entry('e', 'F32', '[0,3]', 0, 0) + ',' + entry('s', 'I64', '[]', 0, 8) + '}', bytes(8)),
}


def s(text):
    b = text.encode()
    return struct.pack('<Q', len(b)) + b


def gguf(kvs, infos, data=b'', version=3, alignment=32):
    out = b'GGUF' + struct.pack('<IQQ', version, len(infos), len(kvs)) + b''.join(kvs) + b''.join(infos)
    if infos:
        out += bytes(-len(out) % alignment)
    return out + data


def info(name, dims, kind, offset):
    return s(name) + struct.pack('<I', len(dims)) + b''.join(struct.pack('<Q', d) for d in dims) + struct.pack('<IQ', kind, offset)


kinds = [s('k%d' % k) + struct.pack('<I', k) + b'\x01' * n for k, n in ((0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8), (11, 8), (12, 8))]
ggufs = {
    'empty': gguf([], []),
    'kinds': gguf(kinds + [s('text') + struct.pack('<I', 8) + s('value')], []),
    'arrays': gguf([s('a') + struct.pack('<IIQ', 9, 8, 3) + s('x') + s('yy') + s(''), s('b') + struct.pack('<IIQ', 9, 0, 4) + b'abcd',
                    s('n') + struct.pack('<IIQIQHIQ', 9, 9, 2, 2, 1, 7, 7, 0)], []),
    'tensors': gguf([s('general.alignment') + struct.pack('<II', 4, 8)], [info('a', [32, 2], 8, 0), info('b', [3], 1, 72), info('c', [], 28, 80)], bytes(96), alignment=8),
    'empty-array-first': gguf([s('k' * 171) + struct.pack('<IIQ', 9, 4, 0)], []),
    'split': gguf([s('split.no') + struct.pack('<IH', 2, 0), s('split.count') + struct.pack('<IH', 2, 2)], []),
    'mxfp4': gguf([], [info('m', [64, 1, 2], 39, 0)], bytes(68)),
}


def npy(descr, shape, data, fortran=False, version=1):
    h = ("{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)).encode() + b'\n'
    return b'\x93NUMPY' + bytes([version, 0]) + struct.pack('<H' if version == 1 else '<I', len(h)) + h + data


npys = {
    'f4': npy("'<f4'", '(2, 3)', bytes(24)),
    'big': npy("'>c8'", '(2,)', bytes(16), True),
    'bool': npy("'|b1'", '(10,)', b'\1\0' * 5, version=2),
    'py2': npy("u'<i2'", '(2L, 1L)', bytes(4), True),
    'object': npy("'|O'", '()', b'x'),
    'structured': npy("[('x', '<f4')]", '(1,)', bytes(4), version=3),
}


def npz(members, zip64=False, comment=b''):
    out, directory = b'', b''
    for name, data, method in members:
        packed = data
        if method == 8:
            z = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = z.compress(data) + z.flush()
        n, at = name.encode(), len(out)
        crc = zlib.crc32(data)
        out += struct.pack('<IHHHHHIIIHH', 0x04034b50, 20, 0, method, 0, 0, crc, len(packed), len(data), len(n), 0) + n + packed
        ones = 0xffffffff
        extra = struct.pack('<HHQQQ', 1, 24, len(data), len(packed), at) if zip64 else b''
        directory += struct.pack('<IHHHHHHIIIHHHHHII', 0x02014b50, 20, 20, 0, method, 0, 0, crc, ones if zip64 else len(packed), ones if zip64 else len(data), len(n),
                                 len(extra), 0, 0, 0, 0, ones if zip64 else at) + n + extra
    at, count = len(out), len(members)
    out += directory
    if zip64:
        end = len(out)
        out += struct.pack('<IQHHIIQQQQ', 0x06064b50, 44, 45, 45, 0, 0, count, count, len(directory), at) + struct.pack('<IIQI', 0x07064b50, 0, end, 1)
        return out + struct.pack('<IHHHHIIH', 0x06054b50, 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, len(comment)) + comment
    return out + struct.pack('<IHHHHIIH', 0x06054b50, 0, 0, count, count, len(directory), at, len(comment)) + comment


npzs = {
    'empty': npz([]),
    'stored': npz([('a.npy', npys['f4'], 0), ('b', npys['bool'], 0)], comment=b'hello'),
    'deflated': npz([('a.npy', npys['f4'], 8), ('folder/', b'', 0), ('b.npy', npys['big'], 8), ('c', b'no array', 8)]),
    'zip64': npz([('a.npy', npys['f4'], 0), ('x.npy', npys['py2'], 8)], True),
    'pickle': npz([('m/data.pkl', b'\x80\2K\1.', 0)]),
}

for target, seeds in (('safetensors', safetensors), ('gguf', ggufs), ('npy', npys), ('npz', npzs)):
    for name, data in seeds.items():
        put(target, name, data)
        put('sniff', target + '_' + name, data)
put('sniff', 'index', b' {"metadata":{},"weight_map":{"a":"b"}}')
put('sniff', 'html', b'\n<!DOCTYPE html><html>')
put('sniff', 'lfs', b'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n')

# descriptors: row-major float32 [2,3]; strided; GGML blocks; quantized per block
header = lambda length, flags, type_tag, layout, rank: b'HRRY' + struct.pack('<BBIIBBI', 1, 0, length, flags, type_tag, layout, rank)
handle = lambda n: struct.pack('<QIBBBB', n, 64, 0, 0, 0, 0)


def descriptor(type_tag, layout, shape, payload, handles, flags=0, sections=b''):
    body = b''.join(struct.pack('<Q', d) for d in shape) + bytes(8) + payload + bytes([len(handles)]) + b''.join(handle(n) for n in handles) + sections
    return header(20 + len(body), flags, type_tag, layout, len(shape)) + body


descriptors = {
    'row_major': descriptor(3, 1, [2, 3], b'', [24]),
    'strided': descriptor(3, 3, [2, 3], struct.pack('<qq', 1, 2), [24]),
    'tiled': descriptor(3, 4, [6, 8], struct.pack('<QQBBH', 2, 4, 1, 1, 0), [192]),
    'csr': descriptor(3, 7, [2, 3], struct.pack('<QQ', 2, 0), [8, 16, 24]),
    'composite': descriptor(3, 11, [2, 3], struct.pack('<BBHI', 1, 0, 0, 2), []),
    'blocks': descriptor(3, 0xF0, [2, 32], b'GGMLBLK1' + struct.pack('<IIII', 12, 8, 32, 34), [68]),
    'quantized': descriptor(0x10, 1, [2, 32], b'', [64, 4], 1, struct.pack('<I', 24) + struct.pack('<BBHIIIIBBH', 3, 1, 1, 1, 32, 1, 0xffffffff, 1, 0, 0)),
    'shard': descriptor(3, 1, [2], b'', [8], 2, struct.pack('<QQ', 4, 1)),
    'private_type': descriptor(0xF0, 1, [2], b'', [2], 4, bytes.fromhex('0800000001010001040300000800000001000000')),
}
for name, data in descriptors.items():
    put('descriptor', name, data)
    put('stream', name, data + bytes(sum(struct.unpack_from('<Q', data, len(data) - 16 * (i + 1))[0] for i in range(1)) % 256 if name == 'row_major' else 300))
put('stream', 'two', descriptors['row_major'] + bytes(24) + descriptors['row_major'] + bytes(24))

# contents: streams that hold, of layouts and quantizations whose buffers steer what is read
u64s = lambda *values: struct.pack('<%dQ' % len(values), *values)
floats = lambda *values: struct.pack('<%df' % len(values), *values)
member = struct.pack('<QQ', 2, 0), struct.pack('<QQ', 2, 1)
contents = {
    'rows': descriptors['row_major'] + floats(1, 2, 3, 4, 5, 6),
    'bits': descriptor(0x20, 1, [3, 3], b'', [2]) + b'\xa5\x01',
    'six': descriptor(0x44, 2, [2, 3], b'', [6]) + b'\x81\x40\x20\x01\x02\x00',
    'mirrored': descriptor(0x12, 3, [2, 3], struct.pack('<qq', 0, 1), [6]) + b'\1\0\2\0\3\0',
    'tiled': descriptor(0x11, 4, [3, 5], struct.pack('<QQBBH', 2, 4, 1, 2, 0), [32]) + bytes(range(32)),
    'morton': descriptor(0x11, 5, [4, 3], struct.pack('<II', 2, 2), [16]) + bytes(range(16)),
    'hilbert': descriptor(0x11, 0x40, [4, 4], struct.pack('<II', 2, 2), [16]) + bytes(range(16)),
    'coo': descriptor(3, 6, [2, 3], struct.pack('<QQ', 2, 1), [8, 32]) + floats(1, 2) + u64s(0, 1, 1, 2),
    'coo_unsorted': descriptor(3, 6, [2, 3], struct.pack('<QQ', 2, 0), [8, 32]) + floats(1, 2) + u64s(1, 2, 0, 1),
    'csr': descriptors['csr'] + floats(1, 2) + u64s(0, 2, 0, 1, 2),
    'csf': descriptor(3, 9, [2, 3, 2], struct.pack('<QIIIQ', 2, 0, 1, 2, 0), [8, 16, 16, 24, 16, 24, 16]) + floats(1, 2) + u64s(0, 2, 0, 1, 0, 1, 2, 1, 2, 0, 1, 2, 0, 1),
    'paged': descriptor(3, 10, [4, 1, 1], struct.pack('<IQIIBIB6x', 2, 3, 0, 1, 2, 0, 0), [24, 8, 8]) + floats(1, 2, 3, 4, 5, 6) + struct.pack('<IIII', 2, 0, 0, 2),
    'per_block': descriptors['quantized'] + bytes(range(64)) + bytes.fromhex('003c0038'),
    'per_channel': descriptor(0x10, 1, [2, 3], b'', [6, 8, 8], 1, struct.pack('<IBBHIIIB3x', 20, 2, 1, 0, 0, 1, 2, 3)) + bytes(range(6)) + floats(.5, 2) + struct.pack('<ii', 1, -1),
    'nf4': descriptor(0x49, 1, [8], b'', [4, 4], 1, struct.pack('<IBBHIII', 16, 4, 1, 0, 0, 8, 1)) + bytes(range(4)) + floats(2),
    'mxfp': descriptor(0x43, 1, [32], b'', [16, 1], 1, struct.pack('<IBBHIII', 16, 5, 1, 0, 0, 32, 1)) + bytes(range(16)) + b'\x80',
    'blocks': descriptors['blocks'] + bytes(range(68)),
    'partition': descriptor(3, 11, [2], struct.pack('<BBHI', 1, 0, 0, 2), []) + b''.join(
        descriptor(3, 1, [1], b'', [4], 2, u64s(2, at)) + floats(at) for at in (0, 1)),
    'overlay': descriptor(3, 11, [2], struct.pack('<BBHI', 2, 2, 0, 2), []) + descriptor(3, 1, [2], b'', [8], 18, u64s(2, 0) + b'\1' + bytes(15)) + floats(1, 2)
    + descriptor(3, 6, [1], struct.pack('<QQ', 1, 1), [4, 8], 18, u64s(2, 1) + bytes(16)) + floats(3) + u64s(0),
    'statistics': descriptor(3, 1, [2], b'', [8], 8, struct.pack('<IIQ6dBBBB4x', 63, 0, 2, 0, 1, 2, 2, 1.5, .5, 2, 4, 0, 0)) + floats(1, 2),
}
for name, data in contents.items():
    put('contents', name, data)

# indexes of the two shards that parse_index.c makes
indexes = {
    'all': b'{"metadata":{"total_size":4},"weight_map":{"x":"a","y":"a","z":"b"}}',
    'part': b' {"weight_map":{"z":"b","x":"./a"},"other":[{"k":[1,2.5e3,null,true]}]}',
    'escapes': b'{"weight_map":{"\\u007a":"\\u0062"}}',
    'elsewhere': b'{"weight_map":{"x":"b"}}',
    'missing': b'{"weight_map":{"x":"a","w":"c.safetensors"}}',
    'outside': b'{"weight_map":{"x":"../a"}}',
    'twice': b'{"weight_map":{"x":"a","x":"a"}}',
    'empty': b'{"weight_map":{}}',
}
for name, data in indexes.items():
    put('index', name, data)

# whole files named on the command line, by folder name
for path in sys.argv[2:]:
    if not os.path.isdir(path):
        continue
    for folder, _, files in os.walk(path):
        for name in files:
            full = os.path.join(folder, name)
            if name.endswith('.hrry') and os.path.getsize(full) < 100000:
                put('hrry', name, open(full, 'rb').read())

# what any format opens with goes through the loader, too
for target in ('safetensors', 'gguf', 'npz', 'npy', 'contents', 'hrry'):
    folder = os.path.join(ROOT, target)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if os.path.getsize(os.path.join(folder, name)) < 20000:
            put('load', target + '_' + name, open(os.path.join(folder, name), 'rb').read())
