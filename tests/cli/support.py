"""What the tests of the command share: running it, inputs made from the format's rules, and a count of what held.

A test is a script called with the path of the command: `python3 test_x.py PATH/hurray`. Exit 0: all held; 1: something did not (each
is a line); 77: skipped, with a printed reason."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

BIN = os.path.abspath(sys.argv[1])
SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
SHARED = os.path.join(os.path.dirname(SOURCE), 'shared')
DONE, BAD_INPUT, USAGE, SYSTEM, NOT_FOUND, DEVICE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

failures = 0
checks = 0


def check(holds, *what):
    global failures, checks
    checks += 1
    if not holds:
        failures += 1
        print('FAILED', *what)
    return holds


def finish():
    print('%d of %d held' % (checks - failures, checks))
    sys.exit(1 if failures else 0)


def skip(reason):
    print('skipped:', reason)
    sys.exit(77)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.errors = err.decode('utf-8', 'replace')

    def json(self):
        return json.loads(self.out.decode('utf-8'))

    def __repr__(self):
        return 'exit %s, out %r, err %r' % (self.code, self.out[:200], self.err[:400])


def run(*arguments, stdin=b'', env=None, cwd=None, timeout=120):
    done = subprocess.run([BIN, *arguments], input=stdin, capture_output=True, timeout=timeout, cwd=cwd, env=dict(os.environ, **(env or {})))
    return Result(done.returncode, done.stdout, done.stderr)


def expect(code, *arguments, says=None, **more):
    """Runs the command; the exit code must be this one, and a failure says why in one line."""
    result = run(*arguments, **more)
    at = ' '.join(repr(a) for a in arguments)
    check(result.code == code, at, 'should end with', code, result)
    check(b'ERROR: AddressSanitizer' not in result.err and b'runtime error' not in result.err, at, 'sanitizer:', result.errors[-600:])
    if code not in (DONE, INTERRUPTED) and result.code == code:
        lines = [line for line in result.errors.split('\n') if line and not line.startswith('hurray: note: ')]
        check(len(lines) == 1, at, 'one line of error, got', lines)
        check(all(line.startswith('hurray: ') for line in lines), at, lines)
        check(not re.search('[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]', result.errors), at, 'control characters in', repr(result.errors))
        for word in [says] if isinstance(says, str) else says or []:
            check(word in result.errors, at, 'should say', repr(word), 'said', result.errors)
    return result


def folder():
    """A temporary folder that goes away with the test."""
    path = tempfile.mkdtemp(prefix='hurray-test-')
    import atexit
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def write(path, content):
    with open(path, 'wb') as f:
        f.write(content)
    return path


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def vectors(name):
    path = os.path.join(SHARED, 'vectors', name)
    return path if os.path.isdir(path) else None


# ---- safetensors ----

def safetensors(tensors, metadata=None):
    """tensors: (name, dtype, shape, bytes), already in the order that writers use."""
    header, at = {}, 0
    if metadata:
        header['__metadata__'] = metadata
    for name, dtype, shape, data in tensors:
        header[name] = {'dtype': dtype, 'shape': list(shape), 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode()
    text += b' ' * (-len(text) % 8)
    return struct.pack('<Q', len(text)) + text + b''.join(t[3] for t in tensors)


def f32(*values):
    return struct.pack('<%df' % len(values), *values)


# ---- .hrry and streams, from the format's rules ----

CRC_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    CRC_TABLE.append(_n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def descriptor(buffers, type_tag=3, layout=1, shape=(2,), payload=b'', flags=0, tail=b'', byte_offset=0, alignment=64):
    """buffers: the bytes of each, or their sizes."""
    sizes = [b if isinstance(b, int) else len(b) for b in buffers]
    body = struct.pack('<IBBI', flags, type_tag, layout, len(shape)) + b''.join(struct.pack('<Q', n) for n in shape)
    body += struct.pack('<Q', byte_offset) + payload + bytes([len(sizes)]) + b''.join(struct.pack('<QIBBBB', n, alignment, 0, 0, 0, 0) for n in sizes) + tail
    return b'HRRY\1\0' + struct.pack('<I', len(body) + 10) + body


def kv_value(value):
    if isinstance(value, bool):
        return 5, bytes([value])
    if isinstance(value, int):
        return 2, struct.pack('<q', value)
    if isinstance(value, float):
        return 4, struct.pack('<d', value)
    if isinstance(value, bytes):
        return 6, struct.pack('<I', len(value)) + value
    if isinstance(value, str):
        return 1, struct.pack('<I', len(value.encode())) + value.encode()
    parts = [kv_value(v) for v in value]
    return 7, bytes([parts[0][0]]) + struct.pack('<I', len(parts)) + b''.join(p[1] for p in parts)


def hrry(items, kv=None, alignment=4096, sorted_index=False):
    """items: (name, descriptor, buffers) in write order."""
    out = bytearray(b'HRRYFILE' + struct.pack('<BBHIIQQ', 1, 0, 0, 4 | 2 * sorted_index, alignment, 64, 2**64 - 1) + bytes(28))
    entries = []
    for name, d, buffers in items:
        out += bytes(-len(out) % 8)
        at = len(out)
        out += d
        data = len(out)
        for i, b in enumerate(buffers):
            out += bytes(-len(out) % alignment)
            if i == 0:
                data = len(out)
            out += b
        name = name if isinstance(name, bytes) else name.encode()
        entries.append((name, struct.pack('<QIQQI', at, len(d), data, len(out) - data, 0)))
    out += bytes(-len(out) % 8)
    kv_at = kv_len = 0
    if kv:
        kv_at = len(out)
        out += struct.pack('<I', len(kv))
        for key, value in kv.items():
            tag, encoded = kv_value(value)
            key = key.encode()
            out += struct.pack('<H', len(key)) + key + bytes([tag]) + encoded
        kv_len = len(out) - kv_at
        out += bytes(-len(out) % 8)
    if sorted_index:
        entries.sort()
    index = struct.pack('<Q', len(entries)) + b''.join(struct.pack('<H', len(n)) + n + e for n, e in entries)
    at = len(out)
    return bytes(out) + index + struct.pack('<QQQIII', at, len(index), kv_at, kv_len, crc32c(index), 0) + b'HRRY'


def stream(items):
    return b''.join(d + b''.join(buffers) for _, d, buffers in items)


def u64s(*values):
    return struct.pack('<%dQ' % len(values), *values)


def layout_items():
    """One tensor for each layout, all of small whole numbers: name -> (descriptor, buffers, logical elements)."""
    made = {}

    def add(name, layout, shape, buffers, values, payload=b'', **more):
        made[name] = (descriptor(buffers, layout=layout, shape=shape, payload=payload, **more), buffers, values)

    count = list(range(1, 7))
    add('row_major', 1, (2, 3), [f32(*count)], count)
    add('column_major', 2, (2, 3), [f32(1, 4, 2, 5, 3, 6)], count)
    add('strided', 3, (2, 3), [f32(6, 5, 4, 3, 2, 1)], count, struct.pack('<2q', -3, -1), byte_offset=20)
    add('tiled', 4, (2, 4), [f32(1, 2, 5, 6, 3, 4, 7, 8)], list(range(1, 9)), struct.pack('<2QBBH', 2, 2, 1, 1, 0))
    add('morton', 5, (2, 2), [f32(1, 3, 2, 4)], [1, 2, 3, 4], struct.pack('<2I', 1, 1))
    add('coo', 6, (2, 3), [f32(7, 8), u64s(0, 1, 1, 2)], [0, 7, 0, 0, 0, 8], struct.pack('<QB7x', 2, 1))
    add('csr', 7, (2, 3), [f32(7, 8), u64s(1, 2), u64s(0, 1, 2)], [0, 7, 0, 0, 0, 8], struct.pack('<Q8x', 2))
    add('csc', 8, (2, 3), [f32(7, 8), u64s(0, 1), u64s(0, 0, 1, 2)], [0, 7, 0, 0, 0, 8], struct.pack('<Q8x', 2))
    add('csf', 9, (1, 2, 2), [f32(9), u64s(0, 1), u64s(0), u64s(0, 1), u64s(1), u64s(0, 1), u64s(1)], [0, 0, 0, 9], struct.pack('<Q3I8x', 1, 0, 1, 2))
    add('block_paged', 10, (4, 1, 1), [f32(3, 4, 1, 2), struct.pack('<2I', 1, 0), struct.pack('<2I', 0, 2)], [1, 2, 3, 4],
        struct.pack('<IQIIBIB6x', 2, 2, 0, 1, 0, 0xFFFFFFFF, 0))
    add('hilbert', 0x40, (2, 2), [f32(1, 2, 4, 3)], [1, 2, 3, 4], struct.pack('<II', 1, 2))
    add('quantized', 1, (4,), [bytes([1, 2, 255, 4])], [0.5, 1, -0.5, 2], type_tag=0x10, flags=1, tail=struct.pack('<IBBHfiI', 16, 1, 1, 0, 0.5, 0, 0))
    return made


def composite_items():
    """A partition of two, an overlay, a group with a nested partition: (name, descriptor, buffers) in write order, and the heads' values."""
    def head(rule, members, shape, op=0):
        return descriptor([], layout=11, shape=shape, payload=struct.pack('<BBHI', rule, op, 0, members))

    def member(values, parent, at, role=None):
        data = f32(*values)
        tail = struct.pack('<QQ', parent, at) + (struct.pack('<B15x', role) if role is not None else b'')
        return descriptor([data], shape=(len(values),), flags=2 | (16 if role is not None else 0), tail=tail), [data]

    plain = f32(10, 11)
    items = [('part', head(1, 2, (4,)), []), ('part.0', *member([1, 2, 3], 4, 0)), ('part.1', *member([4], 4, 3)),
             ('over', head(2, 2, (4,), 2), []), ('over.0', *member([1, 1, 1, 1], 4, 0, 1)), ('over.1', *member([5, 6], 4, 1, 0)),
             ('group', head(3, 2, (0,)), []), ('group.0', head(1, 1, (2,)), []), ('group.0.0', *member([8, 9], 2, 0)),
             ('group.1', descriptor([plain]), [plain])]
    return items, {'part': [1, 2, 3, 4], 'over': [1, 6, 7, 1], 'group.0': [8, 9], 'group.1': [10, 11]}


# ---- GGUF ----

def gguf(tensors, kv=b'', kv_count=0, alignment=32):
    """tensors: (name, dims innermost first, type, bytes)."""
    def text(s):
        s = s.encode()
        return struct.pack('<Q', len(s)) + s
    infos, data = b'', b''
    for name, dims, kind, content in tensors:
        data += bytes(-len(data) % alignment)
        infos += text(name) + struct.pack('<I', len(dims)) + u64s(*dims) + struct.pack('<IQ', kind, len(data))
        data += content
    data += bytes(-len(data) % alignment)
    head = b'GGUF' + struct.pack('<IQQ', 3, len(tensors), kv_count) + kv + infos
    return head + bytes(-len(head) % alignment) + data
