"""The command beside other implementations: runs again under the virtual environment build/peers, or skips with a reason."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(HERE, '..', '..', 'build', 'peers')
MODELS = os.path.join(VENV, 'models')
sys.path.insert(0, os.path.join(HERE, '..', 'cli'))
from support import *  # noqa: E402,F401,F403

if not os.path.exists(os.path.join(VENV, 'ready')):
    skip('no build/peers; scripts/peer-packages makes it')
if os.path.realpath(sys.prefix) != os.path.realpath(VENV):
    os.execv(os.path.join(VENV, 'bin', 'python'), [os.path.join(VENV, 'bin', 'python'), *sys.argv])

FORMAT = ('container', 'kv', 'tensors')


def inspect(path):
    return expect(DONE, 'inspect', '--json', path).json()


def cat(path, name, *options):
    return expect(DONE, 'cat', *options, '--', path, name).out


def wheel(name):
    """The archive of a package in build/peers/models; skips when it is not there."""
    found = [n for n in (os.listdir(MODELS) if os.path.isdir(MODELS) else []) if n.startswith(name + '-') and n.endswith('.whl')]
    return os.path.join(MODELS, found[0]) if found else None
