#!/usr/bin/env python3
"""The command in hard environments: each must give the right bytes and exit 0, or say in one line what was refused.
usage: environments.py HURRAY LAUNCHER NO_DIRECT_LIBRARY SANITIZERS"""
import errno
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
from support import BAD_INPUT, BIN, DONE, SOURCE, SYSTEM, check, finish, folder, read  # noqa: E402

LAUNCHER, NO_DIRECT, SANITIZED = sys.argv[2], sys.argv[3], sys.argv[4] != ''
NOBODY = 65534
at = folder()
os.chmod(at, 0o755)
tensors, model, archive = {}, os.path.join(at, 'm.safetensors'), os.path.join(at, 'm.hrry')


def missing(what, why):
    print('not tested: %s: %s' % (what, why))


def run(*arguments, before=(), limits=(), cores=None, user=None, env=None, closed=(), cwd=None, timeout=120):
    def prepare():
        for fd in closed:
            os.close(fd)
        if cores:
            os.sched_setaffinity(0, cores)
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        for which, value in limits:
            resource.setrlimit(which, (value, value))

    done = subprocess.run([*before, BIN, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, env=env, cwd=cwd,
                          preexec_fn=prepare)
    return done.returncode, done.stdout, done.stderr.decode('utf-8', 'replace')


def expect(code, where, *arguments, says='', **how):
    result = run(*arguments, **how)
    check(result[0] == code, where, arguments, 'ended with', result[0], 'expected', code, result[1][:200], result[2][-600:])
    check(says in result[2], where, arguments, 'should say', repr(says), 'said', result[2][-300:])
    if code not in (DONE,) and 2 not in how.get('closed', ()):
        lines = [line for line in result[2].splitlines() if not line.startswith(('hurray: note: ', 'profiling:'))]  # profiling: a coverage build that may not write
        check(len(lines) == 1 and lines[0].startswith('hurray: '), where, arguments, 'one line of error, got', lines)
    return result


def make():
    subprocess.run([sys.executable, os.path.join(SOURCE, 'scripts', 'make-model'), model, '3', '128', '1500'], check=True, stdout=subprocess.DEVNULL)
    data = read(model)
    length = int.from_bytes(data[:8], 'little')
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != '__metadata__':
            tensors[name] = data[8 + length + entry['data_offsets'][0]:8 + length + entry['data_offsets'][1]]
    expect(DONE, 'plainly', 'convert', model, archive)


def works(where, roads=('auto', 'threads', 'uring', 'mmap'), **how):
    """Everything that moves bytes, compared with the bytes that went in."""
    total = sum(len(bytes_) for bytes_ in tensors.values())
    for io in roads:
        for direct in ('auto', 'on'):
            code, out, _ = expect(DONE, where, 'load', archive, '--io', io, '--direct', direct, '--verify', '--json', **how)
            said = json.loads(out) if code == DONE else {}
            check(said.get('bytes') == total and said.get('bytes_verified') == total, where, io, direct, 'loaded and compared', said)
    for name in ('lm_head.weight', 'model.norm.weight'):
        check(expect(DONE, where, 'cat', archive, name, '--dense', **how)[1] == tensors[name], where, name, 'other bytes by load')
        check(expect(DONE, where, 'cat', model, name, **how)[1] == tensors[name], where, name, 'other bytes piece by piece')
    again = os.path.join(at, 'again.hrry')
    expect(DONE, where, 'convert', model, again, **how)
    check(os.path.exists(again) and read(again) == read(archive), where, 'converted to other bytes')
    if os.path.exists(again):
        os.unlink(again)
    expect(DONE, where, 'verify', archive, '--data', **how)
    return said


def reason(where, io='uring', **how):
    code, out, _ = expect(DONE, where, 'load', archive, '--io', io, '--direct', 'on', '--json', **how)
    return json.loads(out) if code == DONE else {}


def refused_calls():
    """A seccomp filter, as container runtimes install one, or an old kernel."""
    launched = [LAUNCHER, str(errno.EPERM), 'io_uring_setup']
    if subprocess.run([*launched, '/bin/true'], capture_output=True).returncode == 77:
        return missing('refused system calls', 'no seccomp filter can be installed here')
    for number in (errno.EPERM, errno.ENOSYS, errno.ENOMEM):
        before = [LAUNCHER, str(number), 'io_uring_setup']
        works('io_uring refused (%s)' % errno.errorcode[number], before=before)
        said = reason('io_uring refused', before=before)
        check(said.get('path') == 'threads' and 'uring' in said.get('reason', ''), 'io_uring refused', number, said)
        code, out, _ = expect(DONE, 'io_uring refused', 'devices', '--json', before=before)
    more = '' if SANITIZED else ',sched_getaffinity'  # sanitizers want this one for themselves
    works('mlock, mbind, affinity, advice, links refused', before=[LAUNCHER, str(errno.EPERM), 'mlock,mbind,sched_setaffinity,madvise,fadvise,linkat' + more])
    works('an old kernel', before=[LAUNCHER, str(errno.ENOSYS), 'io_uring_setup,statx,preadv2,getrandom'])
    if not SANITIZED:  # their runtime wants threads of its own
        works('no thread can be started', before=[LAUNCHER, str(errno.EAGAIN), 'clone3,clone'])


def limits():
    works('64 KiB of locked memory', limits=[(resource.RLIMIT_MEMLOCK, 65536)], roads=('auto', 'uring'))
    works('one core', cores={min(os.sched_getaffinity(0))})
    works('eight descriptors', limits=[(resource.RLIMIT_NOFILE, 8)])
    for most in (4, 5, 6, 7):
        code, _, err = run('load', archive, '--io', 'uring', '--direct', 'on', '--verify', limits=[(resource.RLIMIT_NOFILE, most)])
        check(code in (DONE, SYSTEM, 127), most, 'descriptors ended with', code, err)
    if SANITIZED:
        return missing('an address-space limit', 'sanitizers reserve terabytes')
    works('400 MiB of address space', limits=[(resource.RLIMIT_AS, 400 << 20)])
    outcomes = set()
    for kib in range(3000, 90000, 3000):
        for arguments in (['load', archive], ['load', archive, '--io', 'mmap'], ['cat', archive, 'lm_head.weight', '--dense'], ['inspect', model, '--json']):
            code, out, err = run(*arguments, limits=[(resource.RLIMIT_AS, kib << 10)])
            outcomes.add(code)
            started = 'error while loading shared libraries' not in err and code != 127 and code >= 0
            if started or err.startswith('hurray'):
                check(code in (DONE, SYSTEM), kib, 'KiB of address space', arguments, 'ended with', code, err[-300:])
                check(code == DONE or 'memory' in err.lower(), kib, 'KiB of address space', arguments, 'said', err)
    check(DONE in outcomes and SYSTEM in outcomes, 'address-space limits: both outcomes were wanted, got', outcomes)


def no_direct():
    if SANITIZED:
        return missing('a file system without O_DIRECT', 'sanitizers want to be preloaded first')
    env = dict(os.environ, LD_PRELOAD=NO_DIRECT)
    works('no O_DIRECT', env=env)
    said = reason('no O_DIRECT', io='threads', env=env)
    check(said.get('direct') is False and 'direct' in said.get('reason', ''), 'no O_DIRECT: said', said)


def surroundings():
    works('empty environment', env={}, roads=('auto',))
    works('TMPDIR is no folder', env=dict(os.environ, TMPDIR='/nonexistent/folder', HOME='/nonexistent'), roads=('auto',))
    gone = os.path.join(at, 'gone')
    os.mkdir(gone)
    where = os.open(gone, os.O_RDONLY)
    os.rmdir(gone)
    os.close(where)
    for closed in ((0,), (1,), (2,), (0, 1, 2)):
        out = os.path.join(at, 'closed.hrry')
        expect(DONE, 'closed %s' % (closed,), 'convert', model, out, closed=closed)
        check(read(out) == read(archive), 'closed', closed, 'wrote other bytes')
        expect(DONE if 1 not in closed else SYSTEM, 'closed %s' % (closed,), 'load', archive, closed=closed)
        os.unlink(out)
    if SANITIZED:
        missing('no /proc', 'sanitizers look into it')
    elif os.getuid() == 0 and subprocess.run(['unshare', '-m', 'mount', '-t', 'tmpfs', 'none', '/proc'], capture_output=True).returncode == 0:
        works('no /proc', before=['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'])
    else:
        missing('no /proc', 'this needs a mount namespace')


def parents(path):
    path = os.path.dirname(os.path.abspath(path))
    while True:
        yield path
        if path == os.path.dirname(path):
            return
        path = os.path.dirname(path)


def outputs():
    ro = os.path.join(at, 'ro')
    os.mkdir(ro)
    os.chmod(ro, 0o555)
    reachable = all(os.stat(folder).st_mode & 0o001 for folder in parents(BIN))
    if os.getuid() == 0 and not reachable:
        missing('a read-only folder', 'another user cannot reach the command here')
    elif os.getuid() == 0:
        expect(SYSTEM, 'a read-only folder', 'convert', model, os.path.join(ro, 'x.hrry'), user=NOBODY, says='ermission denied')
        secret = os.path.join(at, 'secret.hrry')
        with open(secret, 'wb') as f:
            f.write(read(archive))
        os.chmod(secret, 0o600)
        expect(SYSTEM, 'an unreadable file', 'inspect', secret, user=NOBODY, says='ermission denied')
        works_ro = run('load', archive, user=NOBODY)
        check(works_ro[0] == DONE, 'as another user', works_ro)
    elif os.access(ro, os.W_OK):
        missing('a read-only folder', 'everything is writable for this user')
    else:
        expect(SYSTEM, 'a read-only folder', 'convert', model, os.path.join(ro, 'x.hrry'), says='ermission denied')
    check(os.listdir(ro) == [], 'left behind in a read-only folder', os.listdir(ro))
    small = os.path.join(at, 'small')
    os.mkdir(small)
    for name in ('x.hrry', 'x.safetensors'):
        expect(SYSTEM, 'files of 100 KiB at most', 'convert', archive, os.path.join(small, name), limits=[(resource.RLIMIT_FSIZE, 100 << 10)], says='too large')
    expect(SYSTEM, 'no such folder', 'convert', model, os.path.join(at, 'none', 'x.hrry'))
    expect(SYSTEM, 'a folder as the output', 'convert', model, small)
    expect(SYSTEM, 'a full device', 'convert', model, '/dev/full', '--to', 'hrry', says='space')
    check(os.listdir(small) == [], 'left behind', os.listdir(small))


def inputs():
    fifo, path = os.path.join(at, 'fifo'), os.path.join(at, 'socket')
    os.mkfifo(fifo)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    loop = os.path.join(at, 'loop')
    os.symlink(loop, loop)
    for command in ('inspect', 'load', 'verify'):
        for strange in (fifo, '/dev/zero', '/dev/null', '/dev/tty' if os.path.exists('/dev/tty') and sys.stdin.isatty() else '/dev/random'):
            expect(BAD_INPUT, 'no file', command, strange, says='pipe or a device', timeout=20)
        for refused in (path, loop, os.path.join(at, 'x' * 300), archive + '/x', os.path.join(at, 'nothing')):
            expect(SYSTEM, 'cannot be opened', command, refused)
        expect(BAD_INPUT, 'a folder without a model', command, os.path.join(at, 'small'), says='open one by its name')
    listener.close()


def shrinking():
    """A file that is cut while it is read: an error of one line, or the whole load was quicker."""
    big = os.path.join(at, 'big.safetensors')
    size = 192 << 20
    header = json.dumps({'t%d' % i: {'dtype': 'U8', 'shape': [size // 8], 'data_offsets': [i * size // 8, (i + 1) * size // 8]} for i in range(8)}).encode()
    header += b' ' * (-len(header) % 8)
    cut = 0
    for how in (['--threads', '1', '--chunk', '4096'], ['--threads', '2'], ['--io', 'uring', '--direct', 'on']):
        for delay in (0.02, 0.05, 0.1):
            with open(big, 'wb') as f:
                f.write(len(header).to_bytes(8, 'little') + header)
                f.truncate(8 + len(header) + size)
            child = subprocess.Popen([BIN, 'load', big, *how], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(delay)
            os.truncate(big, size // 3)
            err = child.communicate(timeout=120)[1].decode('utf-8', 'replace')
            check(child.returncode in (DONE, BAD_INPUT), 'a shrinking file', how, 'ended with', child.returncode, err)
            if child.returncode == BAD_INPUT:
                cut += 1
                check(len(err.splitlines()) == 1 and ('ends' in err or 'short' in err), 'a shrinking file: said', err)
    print('a shrinking file: %d of 9 loads were cut' % cut)
    os.unlink(big)


make()
works('plainly')
refused_calls()
limits()
no_direct()
surroundings()
outputs()
inputs()
shrinking()
check(stat.S_ISREG(os.stat(archive).st_mode), 'the model is still there')
finish()
