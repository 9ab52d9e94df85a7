#!/usr/bin/env python3
"""Writes one line of C for every function that the public headers declare: CALL(returns, name, arguments all zero), WITH_ERROR for
those whose last argument is an error record.
usage: null_calls.py OUT HEADER..."""
import re
import sys

lines = []
for path in sys.argv[2:]:
    text = re.sub(r'/\*.*?\*/', ' ', open(path, encoding='utf-8').read(), flags=re.S)
    text = re.sub(r'^\s*#.*$', '', text, flags=re.M)
    for found in re.finditer(r'HURRAY_API\s+([^;]*?)\b(hurray_\w+)\s*\(([^;]*)\)\s*;', text, flags=re.S):
        returns, name, inside = ' '.join(found[1].split()), found[2], ' '.join(found[3].split())
        parts, depth, start = [], 0, 0
        for at, c in enumerate(inside):
            depth += (c == '(') - (c == ')')
            if c == ',' and depth == 0:
                parts.append(inside[start:at].strip())
                start = at + 1
        parts.append(inside[start:].strip())
        if parts == ['void']:
            parts = []
        kind = {'HurrayStatus': 'STATUS', 'const HurrayError *': 'RECORD'}.get(returns, 'OTHER')
        lines.append('CALL_%s(%s, %s)' % (kind, name, ', '.join('0' for _ in parts)))
        if kind == 'STATUS' and parts and re.match(r'HurrayError \*\s*\w+$', parts[-1]):
            lines.append('CALL_ERROR(%s, %s)' % (name, ', '.join(['0'] * (len(parts) - 1) + ['&error'])))
if len(lines) < 100:
    sys.exit('only %d functions found: has the form of the headers changed?' % len(lines))
with open(sys.argv[1], 'w', encoding='utf-8') as out:
    out.write('\n'.join(lines) + '\n')
