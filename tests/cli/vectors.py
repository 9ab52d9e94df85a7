#!/usr/bin/env python3
"""Runs the checker of a folder of vectors that lies beside the repository. usage: vectors.py BIN FOLDER"""
import os
import resource
import runpy
import sys

binary, folder = sys.argv[1:3]
shared = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'shared')
script = os.path.join(shared, 'checks', 'check_foreign.py' if folder == 'foreign' else 'check_vectors.py')
vectors = os.path.join(shared, 'vectors', folder)
if not os.path.isfile(script) or not os.path.isdir(vectors):
    print('skipped: no', vectors)
    sys.exit(77)
with open(binary, 'rb') as f:
    if b'__asan_init' in f.read() or b'__tsan_init' in open(binary, 'rb').read():
        resource.setrlimit = lambda *_: None  # sanitizers reserve more address space than the checker grants
sys.argv = [script, binary, vectors]
runpy.run_path(script, run_name='__main__')
