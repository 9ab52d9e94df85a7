#!/usr/bin/env python3
"""Where output goes: broken pipes, full devices, closed descriptors, terminals."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from support import *

t = folder()
many = write(os.path.join(t, 'many.hrry'), hrry([('tensor.%04d' % i, descriptor([f32(i)], shape=(1,)), [f32(i)]) for i in range(2000)]))
big = write(os.path.join(t, 'big.safetensors'), safetensors([('a', 'F32', [1 << 20], bytes(4 << 20)), ('b', 'F32', [1 << 20], bytes(4 << 20))]))
commands = [['inspect', many], ['inspect', '--json', many], ['cat', big, 'a'], ['cat', big, 'a', '--dense'], ['cat', big, 'a', '--text'], ['stream', 'write', big], ['stream', 'write', '--gzip', big],
            ['inspect', many, '--hex', 'tensor.0001'], ['verify', many], ['verify', '--json', many], ['load', '--json', many], ['devices'], ['--help'], ['--version'], ['load', '--help']]


def shell(line, **more):
    done = subprocess.run(['bash', '-c', line, BIN, *more.pop('words', [])], capture_output=True, timeout=120, **more)
    return Result(done.returncode, done.stdout, done.stderr)


for c in commands:
    # a reader that goes away is no error
    r = shell('"$0" "$@" | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}', words=c)
    check(r.code == DONE and r.err == b'', c, 'broken pipe', r)
    # a full device is one
    r = shell('"$0" "$@" > /dev/full', words=c)
    check(r.code == SYSTEM and r.err.count(b'\n') == 1 and b'standard output' in r.err and b'No space' in r.err, c, '/dev/full', r)
    # so is a descriptor that was never open
    r = shell('"$0" "$@" >&-', words=c)
    check(r.code == SYSTEM and r.err.count(b'\n') == 1 and b'standard output' in r.err, c, 'closed standard output', r)
    # standard input and error may be closed
    r = shell('"$0" "$@" <&- 2>&-', words=c)
    check(r.code == DONE, c, 'closed standard input and error', r)

# many elements as text: what nobody reads is not made, and an interrupt ends it
lots = write(os.path.join(t, 'lots.hrry'), hrry([('a', descriptor([64 << 20], shape=(256 << 20,), type_tag=0x4B), [bytes(64 << 20)])]))
r = shell('ulimit -t 10; "$0" "$@" | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}', words=['cat', lots, 'a', '--text'])
check(r.code == DONE and r.err == b'', 'the reader of a long text leaves', r)
process = subprocess.Popen([BIN, 'cat', lots, 'a', '--text'], stdout=subprocess.PIPE)
check(process.stdout.read(1) == b'0', 'a long text begins')
process.send_signal(signal.SIGINT)
check(process.wait(60) in (INTERRUPTED, -signal.SIGINT), 'a long text is interrupted')
os.remove(lots)

# a message never lands in the file that is written
bad = safetensors([('a', 'F32', [1], f32(1))], {'k': 'v'})
names = hrry([('a', descriptor([f32(1)], shape=(1,), type_tag=3), [f32(1)])], {'n': 5})
source = write(os.path.join(t, 'n.hrry'), names)
for closing in ('0<&- 1>&- 2>&-', '2>&-', '1>&-', '0<&-'):
    out = os.path.join(t, 'closed.hrry')
    r = shell('"$0" "$@" ' + closing, words=['convert', big, out])
    check(r.code == DONE and expect(DONE, 'verify', '--data', out).code == DONE, 'convert with', closing, r)
    os.remove(out)
    r = shell('"$0" "$@" ' + closing, words=['convert', source, os.path.join(t, 'x.safetensors')])
    check(r.code == BAD_INPUT and not os.path.exists(os.path.join(t, 'x.safetensors')), 'failing convert with', closing, r)
r = shell('"$0" stream read <&-')
check(r.code in (DONE, SYSTEM), 'stream read with closed standard input', r)
r = shell('"$0" stream read 0> "$1"', words=[os.path.join(t, 'unreadable')])
check(r.code == SYSTEM and b'standard input' in r.err, 'a standard input that cannot be read', r)
r = shell('"$0" stream read < /dev/null')
check(r.code == DONE and b'0 items' in r.out, 'an empty stream', r)

# notes are not printed when quiet; errors are
index = '{"weight_map":{"a":"s.safetensors"}}'
write(os.path.join(t, 's.safetensors'), safetensors([('a', 'F32', [1], f32(1)), ('stray', 'F32', [1], f32(2))]))
write(os.path.join(t, 'm.safetensors.index.json'), index.encode())
r = expect(DONE, 'inspect', os.path.join(t, 'm.safetensors.index.json'))
check(b'hurray: note: ' in r.err and b'stray' in r.err, 'a tensor left out is noted', r)
check(expect(DONE, 'inspect', '-q', os.path.join(t, 'm.safetensors.index.json')).err == b'', 'quiet')
check(expect(SYSTEM, 'inspect', '-q', os.path.join(t, 'missing')).err != b'', 'errors are printed when quiet')


def on_terminal(*arguments):
    """Runs with standard error on a terminal; returns its exit code and what was written there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 120, 0, 0))
    process = subprocess.Popen([BIN, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    seen = b''
    while True:
        ready, _, _ = select.select([master], [], [], 0.1)
        if ready:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        elif process.poll() is not None:
            break
    process.stdout.read()
    os.close(master)
    return process.wait(), seen


# a bar on a terminal, which is wiped at the end; nothing of it elsewhere
try:
    os.close(os.open('/dev/ptmx', os.O_RDWR))
    terminals = os.path.isdir('/dev/pts')
except OSError:
    terminals = False
if not terminals:
    print('no terminals here (/dev/ptmx): the bar is not looked at')
for arguments in () if not terminals else (['load', big], ['convert', big, os.path.join(t, 'o.hrry')], ['load', '--json', big]):
    code, seen = on_terminal(*arguments)
    check(code == DONE and b'%' in seen and b'[####' in seen, arguments, 'a bar', seen[:200])
    check(seen.endswith(b'\r\x1b[K'), arguments, 'the bar is wiped', seen[-40:])
    check(max(len(line) for line in seen.replace(b'\x1b[K', b'').split(b'\r')) < 100, arguments, 'the bar fits a line')
    code, seen = on_terminal(*arguments, '--quiet')
    check(code == DONE and seen == b'', arguments, 'quiet', seen)
    r = expect(DONE, *arguments)
    check(r.err == b'' and b'\x1b' not in r.out and b'\r' not in r.out, arguments, 'no terminal, no bar', r)
# a tensor that is read whole before anything of it is written moves the bar before it is done
one = write(os.path.join(t, 'one.gguf'), gguf([('blocks', [32, 8192], 8, bytes(34 * 8192))]))
for arguments in () if not terminals else (['o.hrry', '--quantization', 'native'], ['o.safetensors', '--dense']):
    code, seen = on_terminal('convert', one, os.path.join(t, arguments[0]), *arguments[1:])
    parts = [float(x) for x in re.findall(rb'([0-9.]+) %', seen)]
    check(code == DONE and parts == sorted(parts) and parts[0] < 100 and parts[-1] == 100, arguments, 'a bar within a tensor', code, parts)
finish()
