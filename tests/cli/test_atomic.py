#!/usr/bin/env python3
"""hurray convert replaces its output as a whole or not at all: signals at any moment, no space left, output = input."""
import os
import random
import signal
import time

from support import *

SIZE = int(os.environ.get('HURRAY_TEST_BYTES', 300 << 20))
t = folder()
if shutil.disk_usage(t).free < 4 * SIZE:
    skip('%d MB of temporary space are needed' % (4 * SIZE >> 20))
random.seed(int(os.environ.get('HURRAY_TEST_SEED', '1')))

# a big model, made of one random MiB
block = os.urandom(1 << 20)
count = SIZE // (20 << 20)
big = os.path.join(t, 'big.safetensors')
header = {'t%03d' % i: {'dtype': 'U8', 'shape': [20 << 20], 'data_offsets': [i * (20 << 20), (i + 1) * (20 << 20)]} for i in range(count)}
text = json.dumps(header, separators=(',', ':')).encode()
text += b' ' * (-len(text) % 8)
with open(big, 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text)
    for _ in range(20 * count):
        f.write(block)
old = b'the file that was there before'
out = os.path.join(t, 'out')
os.mkdir(out)


def start(*arguments):
    return subprocess.Popen([BIN, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


began = time.time()
process = start('convert', big, os.path.join(out, 'o.hrry'))
check(process.wait() == DONE, 'an undisturbed conversion', process.stderr.read())
whole = max(time.time() - began, 0.02)
complete = os.path.join(t, 'complete.hrry')
os.rename(os.path.join(out, 'o.hrry'), complete)
ended = {}
for n in range(12):
    sig = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[n % 3]
    name = ('o.hrry', 'o.safetensors')[n // 3 % 2]
    path = os.path.join(out, name)
    if os.path.exists(path):
        os.remove(path)
    existed = n % 4 != 3
    if existed:
        write(path, old)
    process = start('convert', big, path)
    time.sleep(random.random() * whole * 0.4)
    process.send_signal(sig)
    stdout, stderr = process.communicate(timeout=60)
    code = process.returncode
    ended[code] = ended.get(code, 0) + 1
    if code == DONE:  # the signal came after the end
        check(os.path.getsize(path) > SIZE, 'it was written whole')
        continue
    check(code in ((INTERRUPTED, -signal.SIGINT, -signal.SIGTERM) if sig != signal.SIGKILL else (-signal.SIGKILL,)), 'ended by', sig, 'with', code, stderr)
    check(stderr.count(b'\n') <= 1, 'at most one line', stderr)
    check(not existed or read(path) == old, 'the old file is as it was after', sig)
    check(existed or not os.path.exists(path), 'no file appeared')
    check(sorted(os.listdir(out)) == sorted({name} if existed else set()) or set(os.listdir(out)) <= {'o.hrry', 'o.safetensors'}, 'nothing is left behind', os.listdir(out))
check(any(code != DONE for code in ended), 'some signal came in time', ended)
print('ended with', ended)

# a load and a verification can be interrupted as well
for arguments in (['load', big], ['verify', '--data', complete], ['load', '--threads', '1', '--chunk', '64K', big]):
    process = start(*arguments)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    check(process.returncode in (INTERRUPTED, -signal.SIGINT, DONE), arguments, process.returncode, stderr)

# output = input: the old content is read to the end, or stays
small = os.path.join(out, 'same.safetensors')
shutil.copy(big, small)
process = start('convert', small, small)
time.sleep(random.random() * whole * 0.5)
process.send_signal(signal.SIGTERM)
process.communicate(timeout=60)
check(os.path.getsize(small) == os.path.getsize(big), 'output = input, interrupted')
os.remove(small)

# waiting for a stream can be interrupted too
process = subprocess.Popen([BIN, 'stream', 'read', os.path.join(out, 'waiting.hrry')], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
time.sleep(0.5)
process.send_signal(signal.SIGINT)
check(process.wait(timeout=60) in (INTERRUPTED, -signal.SIGINT) and not os.path.exists(os.path.join(out, 'waiting.hrry')), 'stream read', process.returncode)
process.stdin.close()

# a hole punched into the payload is damage that the stored sums find
hole = complete
at = [x for x in expect(DONE, 'inspect', '--json', hole).json()['tensors'] if x['name'] == 't003'][0]['buffers'][0]['offset']
if subprocess.run(['fallocate', '-p', '-o', str(at + (1 << 20)), '-l', '65536', hole], capture_output=True).returncode == 0:
    for arguments in (['verify', '--data', hole], ['load', '--verify', hole], ['convert', hole, os.path.join(out, 'x.hrry')], ['convert', hole, hole]):
        expect(BAD_INPUT, *arguments, says=['t003', 'CRC-32C'])
    check(not os.path.exists(os.path.join(out, 'x.hrry')), 'nothing was written')
else:
    print('not tried: a hole (fallocate cannot punch one here)')

# no space left
tiny = os.path.join(t, 'tiny')
os.mkdir(tiny)
if os.geteuid() == 0 and subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', tiny], capture_output=True).returncode == 0:
    try:
        for name in ('o.hrry', 'o.safetensors'):
            path = write(os.path.join(tiny, name), old)
            expect(SYSTEM, 'convert', big, path, says=[name, 'writing failed', 'No space left'])
            check(read(path) == old, 'the old file is as it was', name)
            check(sorted(os.listdir(tiny)) == [name], 'nothing is left behind', os.listdir(tiny))
            os.remove(path)
        d = descriptor([bytes(16 << 20)], type_tag=0x11, shape=(16 << 20,))
        expect(SYSTEM, 'stream', 'read', os.path.join(tiny, 's.hrry'), stdin=d + bytes(16 << 20), says=['s.hrry', 'No space left'])
        several = write(os.path.join(t, 'several.safetensors'), safetensors([('s%d' % i, 'U8', [2 << 20], block * 2) for i in range(6)]))
        first = write(os.path.join(tiny, 'm-00001-of-00006.safetensors'), old)
        expect(SYSTEM, 'convert', several, os.path.join(tiny, 'm.safetensors'), '--shard-size', '2M', says='No space left')
        check(os.listdir(tiny) == [os.path.basename(first)] and read(first) == old, 'of several files none appears', os.listdir(tiny))
    finally:
        subprocess.run(['umount', tiny])
else:
    print('not tried: a full file system (a tmpfs cannot be mounted)')
finish()
