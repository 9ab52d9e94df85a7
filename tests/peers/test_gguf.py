#!/usr/bin/env python3
"""GGUF files written by gguf-py: metadata, each tensor's bytes, and the values of its block types."""
from peers import *
import gguf
import numpy

t = folder()
numpy.random.seed(1)
path, out = os.path.join(t, 'm.gguf'), os.path.join(t, 'm.hrry')
Q = gguf.GGMLQuantizationType
writer = gguf.GGUFWriter(path, 'llama')
writer.add_uint32('u32', 7)
writer.add_int32('i32', -7)
writer.add_uint64('u64', 2**63 + 1)
writer.add_int64('i64', -2**63)
writer.add_float32('f32', 0.1)
writer.add_float64('f64', 0.1)
writer.add_bool('b', True)
writer.add_string('s', 'ü"\n')
writer.add_array('as', ['a', 'ö', ''])
writer.add_array('ai', [1, -2, 3])
writer.add_array('af', [0.5, -1.5])
for kind, dtype in (('u8', 'uint8'), ('i8', 'int8'), ('u16', 'uint16'), ('i16', 'int16')):
    getattr(writer, 'add_' + dtype)(kind, 5)
plain = {'F32': 'f4', 'F16': 'f2', 'F64': 'f8', 'I8': 'i1', 'I16': 'i2', 'I32': 'i4', 'I64': 'i8'}
for name, dtype in plain.items():
    writer.add_tensor(name, (numpy.random.randn(3, 5) * 10).astype(dtype))
blocks = {}
for kind in Q:
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    if elements == 1 or kind == Q.Q8_1:  # gguf-py takes a Q8_1 block for 40 bytes; ggml's own has 36 (and never writes one to a file)
        continue
    data = numpy.random.randint(0, 256, (3, 2 * size), dtype=numpy.uint8)
    blocks[kind.name] = data
    writer.add_tensor(kind.name, data, raw_dtype=kind)
quantized = {}
for kind in (Q.Q8_0, Q.Q4_0, Q.Q5_0, Q.Q4_1, Q.Q5_1):
    data = gguf.quants.quantize(numpy.random.randn(2, 64).astype('f4'), kind)
    quantized['real.' + kind.name] = (kind, data)
    writer.add_tensor('real.' + kind.name, data, raw_dtype=kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

reader = gguf.GGUFReader(path)
j = inspect(path)
check([x['name'] for x in j['tensors']] == [x.name for x in reader.tensors], 'names')
check(j['kv']['u64'] == {'kind': 'uint64', 'value': 2**63 + 1} and j['kv']['i64'] == {'kind': 'int64', 'value': -2**63} and j['kv']['u8'] == {'kind': 'uint64', 'value': 5}, j['kv'])
check(j['kv']['f32']['value'] == float(numpy.float32(0.1)) and j['kv']['f64']['value'] == 0.1 and j['kv']['b']['value'] is True and j['kv']['s']['value'] == 'ü"\n', j['kv'])
check(j['kv']['as'] == {'kind': 'array', 'element': 'string', 'value': ['a', 'ö', '']} and j['kv']['ai']['value'] == [1, -2, 3] and j['kv']['af']['value'] == [0.5, -1.5], j['kv'])
check(j['kv']['general.architecture']['value'] == 'llama', 'architecture')
expect(DONE, 'verify', path)
expect(DONE, 'convert', path, out)
expect(DONE, 'verify', '--data', out)
check([(x['name'], x['descriptor']) for x in inspect(out)['tensors']] == [(x['name'], x['descriptor']) for x in j['tensors']], 'converted')
undecodable = []
for x, tensor in zip(j['tensors'], reader.tensors):
    raw = tensor.data.tobytes()
    check(x['shape'] == [int(n) for n in reversed(tensor.shape)], x['name'], x['shape'])
    for file in (path, out):
        check(cat(file, x['name']) == raw, x['name'], 'bytes', file)
    if tensor.tensor_type.name in plain:
        continue
    check(x['ggml'] == tensor.tensor_type.name, x['name'], x.get('ggml'))
    r = run('cat', path, x['name'], '--as', 'float32')
    if r.code != DONE:
        undecodable.append(tensor.tensor_type.name)
        check(r.code == BAD_INPUT and b'lookup table' in r.err, x['name'], r)
        continue
    try:
        with numpy.errstate(all='ignore'):
            want = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype('f4').reshape(-1)
    except NotImplementedError:
        continue
    got = numpy.frombuffer(r.out, 'f4')
    check(got.shape == want.shape and numpy.array_equal(got, want, equal_nan=True), x['name'], 'values', numpy.flatnonzero(~((got == want) | (numpy.isnan(got) & numpy.isnan(want))))[:5] if got.shape == want.shape else got.shape)
check(all(n.startswith('IQ') for n in undecodable) and len(undecodable) == 7, undecodable)

# the format's own quantization has the same values
expect(DONE, 'convert', path, out, '--quantization', 'native', '--quiet', '--select', 'real.*')
for name, (kind, data) in quantized.items():
    got = numpy.frombuffer(cat(out, name, '--as', 'float32'), 'f4')
    check(numpy.array_equal(got, gguf.quants.dequantize(data, kind).reshape(-1)), name, 'native values')
natives = {x['name']: 'quantization' in x for x in inspect(out)['tensors']}
check(natives == {'real.Q8_0': True, 'real.Q4_0': True, 'real.Q5_0': True, 'real.Q4_1': False, 'real.Q5_1': False}, natives)

# a split set
for i in range(2):
    w = gguf.GGUFWriter(os.path.join(t, 's-%05d-of-00002.gguf' % (i + 1)), 'llama')
    w.add_uint16('split.no', i)
    w.add_uint16('split.count', 2)
    w.add_int32('split.tensors.count', 2)
    w.add_tensor('t%d' % i, numpy.arange(4, dtype='f4') + i)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
j = inspect(os.path.join(t, 's-00001-of-00002.gguf'))
check([x['name'] for x in j['tensors']] == ['t0', 't1'], j['tensors'])
check(cat(os.path.join(t, 's-00001-of-00002.gguf'), 't1') == (numpy.arange(4, dtype='f4') + 1).tobytes(), 'the second part')
finish()
