"""The independent decoder, which lies beside the repository."""
import importlib.util
import os
import sys


def load(shared):
    """The module shared/checks/decode_check.py; exit 77 when it is not there."""
    path = os.path.join(shared, 'checks', 'decode_check.py')
    if not os.path.exists(path):
        print('skipped: %s is not there' % path)
        sys.exit(77)
    spec = importlib.util.spec_from_file_location('decode_check', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
