#!/usr/bin/env python3
"""Options, help, exit codes, the form of error messages."""
import os

from support import *

COMMANDS = ['inspect', 'verify', 'load', 'convert', 'cat', 'stream', 'devices']
t = folder()
good = write(os.path.join(t, 'good.safetensors'), safetensors([('a', 'F32', [2], f32(1, 2)), ('b', 'F32', [1], f32(3))]))

# help and version
overview = expect(DONE, '--help')
check(all(('\n  %s ' % c) in overview.out.decode() for c in COMMANDS), 'the overview names every command')
check(b'exit codes: 0 done' in overview.out, 'the overview lists exit codes')
check(expect(DONE, '-h').out == overview.out == expect(DONE, 'help').out, '-h and help are --help')
for c in COMMANDS:
    text = expect(DONE, c, '--help').out.decode()
    check(text.startswith('usage: hurray %s ' % c) and '\noptions:\n' in text and '--help' in text, c, 'help:', text[:80])
    check(max(len(line) for line in text.split('\n')) <= 140, c, 'help fits a wide terminal')
    check(expect(DONE, 'help', c).out.decode() == text, 'help', c)
    check(expect(DONE, c, '-h').out.decode() == text, c, '-h')
    check(('--json' in text) == (c in ('inspect', 'verify', 'load', 'devices')), c, 'offers --json exactly where there is a JSON form')
expect(USAGE, 'help', 'bogus', says='bogus')
version = expect(DONE, '--version').out.decode()
check(version.startswith('hurray 0.') and version.count('\n') == 1, version)
bare = run()
check(bare.code == USAGE and b'usage: hurray COMMAND' in bare.err and not bare.out, bare)

# wrong usage: 2, one line, where help is
for arguments, word in [(['bogus'], 'bogus'), (['--bogus'], '--bogus'), (['inspect'], 'FILE'), (['inspect', 'a', 'b'], 'FILE'), (['inspect', '--bogus', good], '--bogus'),
                        (['inspect', '-x', good], '-x'), (['inspect', good, '--hex'], '--hex'), (['inspect', good, '--hex', 'a', '--json'], '--hex'), (['inspect', '--json=yes', good], '--json'), (['inspect', '--h', good], '--h'),
                        (['cat', good], 'NAME'), (['cat', good, 'a', 'b'], 'NAME'), (['cat', good, 'a', '--buffer', 'x'], '--buffer'), (['cat', good, 'a', '--buffer', '-1'], '--buffer'),
                        (['cat', good, 'a', '--as', 'float33'], 'float33'), (['cat', good, 'a', '--dense', '--buffer', '0'], '--buffer'), (['cat', '--json', good, 'a'], '--json'),
                        (['load'], 'FILE'), (['load', good, '--io', 'fast'], '--io: expected auto, uring, threads or mmap'), (['load', good, '--direct', 'yes'], '--direct'),
                        (['load', good, '--threads', '9999'], '--threads: expected a number from 1 to 1024'), (['load', good, '--chunk', '4X'], '--chunk'), (['load', good, '--memory-mb', 'lots'], '--memory-mb'),
                        (['load', good, '--pinned-mb', '0'], '--pinned-mb'), (['load', good, '--queue-depth', '-3'], '--queue-depth'),
                        (['convert', good], 'OUT'), (['convert', good, 'o', '--to', 'gguf'], 'gguf'), (['convert', good, 'o', '--align', '5000'], '--align'),
                        (['convert', good, 'o', '--align', '4M'], '--align'), (['convert', good, 'o', '--rename', 'x'], 'OLD=NEW'), (['convert', good, 'o', '--quantization', 'q9'], 'q9'),
                        (['convert', good, 'o', '--dense'], '--dense'), (['convert', good, 'o.safetensors', '--sorted'], '--sorted'), (['convert', good, 'o', '--shard-size', '0'], '--shard-size'),
                        (['stream'], 'read'), (['stream', 'sideways', good], 'read'), (['stream', 'write'], 'write'), (['stream', 'read', 'a', 'b'], 'read'),
                        (['stream', 'read', '--gzip'], 'gzip'), (['devices', 'x'], 'arguments'), (['inspect', 'a\n\x1b[31mb', '--no\nsuch'], 'such')]:
    r = expect(USAGE, *arguments, says=word, cwd=t)
    check('--help' in r.errors and not r.out, arguments, 'points to help', r)
check(sorted(os.listdir(t)) == ['good.safetensors'], 'wrong usage writes nothing')

# options stand anywhere before --, also where the environment asks for POSIX order
plain = expect(DONE, 'inspect', '--json', good).json()
for order in ([good, '--json'], ['--json', '--', good], ['-q', good, '--json'], ['--quiet', '--json', good]):
    check(expect(DONE, 'inspect', *order).json() == plain, order)
check(expect(DONE, 'inspect', good, '--json', env={'POSIXLY_CORRECT': '1'}).json() == plain, 'POSIXLY_CORRECT')
dashed = safetensors([('--dense', 'F32', [1], f32(7)), ('-', 'F32', [1], f32(8))])
write(os.path.join(t, '--json'), dashed)
check(expect(DONE, 'inspect', '--json', '--', '--json', cwd=t).json()['file'] == '--json', 'a file called --json')
check(expect(DONE, 'cat', '--', '--json', '--dense', cwd=t).out == f32(7), 'a tensor called --dense')
check(expect(DONE, 'cat', '--text', './--json', '-', cwd=t).out == b'8\n', 'a tensor called -')

# exit codes by class
missing = os.path.join(t, 'missing.hrry')
for command in (['inspect'], ['verify'], ['load'], ['stream', 'write'], ['cat']):
    tail = ['a'] if command == ['cat'] else []
    expect(SYSTEM, *command, missing, *tail, says=['missing.hrry: ', 'No such file'])
expect(SYSTEM, 'convert', missing, os.path.join(t, 'o.hrry'), says='missing.hrry')
expect(SYSTEM, 'convert', good, os.path.join(t, 'no', 'such', 'folder.hrry'), says='folder.hrry')
expect(SYSTEM, 'load', good, '--trace', os.path.join(t, 'no', 'such.json'), says='such.json')
for name, content, word in [('empty', b'', 'empty'), ('short', b'HRRY', '4 bytes'), ('noise', bytes(range(200, 256)) * 3, ''), ('page.html', b'<!DOCTYPE html><html>', 'HTML'),
                            ('lfs', b'version https://git-lfs.github.com/spec/v1\n', 'LFS'), ('cut.hrry', hrry([('a', descriptor([f32(1, 2)]), [f32(1, 2)])])[:-7], '')]:
    path = write(os.path.join(t, name), content)
    for command in ('inspect', 'verify', 'load'):
        expect(BAD_INPUT, command, path, says=[name, word])
    expect(BAD_INPUT, 'convert', path, os.path.join(t, 'o.hrry'), says=word)
expect(NOT_FOUND, 'cat', good, 'zz', says=['good.safetensors: tensor "zz"', 'inspect'])
expect(NOT_FOUND, 'cat', good, 'a', '--buffer', '1', says='buffer 1')
expect(NOT_FOUND, 'inspect', good, '--hex', 'zz', says='zz')
expect(NOT_FOUND, 'load', good, 'zz*', says='zz*')
expect(NOT_FOUND, 'convert', good, os.path.join(t, 'o.hrry'), '--select', 'zz', says='zz')
expect(NOT_FOUND, 'convert', good, os.path.join(t, 'o.hrry'), '--rename', 'zz=y', says='zz=y')
expect(NOT_FOUND, 'stream', 'write', good, 'zz', says='zz')
if not expect(DONE, 'devices', '--json').json()['devices']:
    for device in ('cuda', 'cuda:0', 'cuda:77', 'GPU-no-such'):
        expect(DEVICE, 'load', good, '--device', device)
    check(expect(DONE, 'load', good, '--device', 'auto', '--json').json()['device'] == 'cpu', 'auto without a device is the CPU')
check(not os.path.exists(os.path.join(t, 'o.hrry')), 'failed conversions write nothing')
expect(SYSTEM, 'inspect', t + '/no\n\x1b[31msuch', says='no\\x0a\\x1b[31msuch')
two = os.path.join(t, 'two')
os.mkdir(two)
for n in ('x', 'y'):
    write(os.path.join(two, n + '.safetensors'), read(good))
expect(BAD_INPUT, 'inspect', two, says=['x.safetensors', 'y.safetensors'])

# what is no file that can be read at any place says so
for path in ('/dev/null', '/dev/zero'):
    for command in ('inspect', 'load', 'verify'):
        expect(BAD_INPUT, command, path, says=[path, 'pipe'])
    expect(BAD_INPUT, 'convert', path, os.path.join(t, 'o.hrry'), says=path)
done = subprocess.run(['bash', '-c', '"$0" inspect <(cat "$1")', BIN, good], capture_output=True)
check(done.returncode == BAD_INPUT and b'pipe' in done.stderr and done.stderr.count(b'\n') == 1, 'a pipe', done)
expect(BAD_INPUT, 'inspect', '/', says='folder')
expect(SYSTEM, 'convert', good, t, says='directory')
expect(DONE, 'convert', good, '/dev/null')

# devices
d = expect(DONE, 'devices', '--json').json()
check(set(d['host']) >= {'cores', 'numa_nodes', 'memory_bytes', 'pinned_limit', 'io_uring'} and d['host']['cores'] >= 1, d)
check(d['devices'] or d['reason'], 'no devices: a reason', d)
check(b'io_uring' in expect(DONE, 'devices').out, 'devices as text')
expect(DONE, 'devices', '--free')
finish()
