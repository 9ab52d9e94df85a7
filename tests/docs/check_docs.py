#!/usr/bin/env python3
"""Do the pages say what is so? Programs in them are compiled (whole ones run), links lead somewhere, the man page and the completions know every
option of every command, tests named in docs/conformance.md exist, and docs/errors.md has a row for each status.
usage: check_docs.py SOURCE-DIR LIBRARY-FILE HURRAY-COMMAND CC-AND-FLAGS..."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

source, library, command, compiler = sys.argv[1], sys.argv[2], sys.argv[3], [a for a in sys.argv[4:] if a]
pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'] + sorted('docs/' + f for f in os.listdir(source + '/docs') if f.endswith('.md'))
faults = []


def read(name):
    with open(os.path.join(source, name), encoding='utf-8') as f:
        return f.read()


def run(arguments, **more):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **more)


def anchor(title):
    return re.sub(r'[^\w\- ]', '', re.sub(r'`|\*', '', title).strip().lower()).replace(' ', '-')


def check_links(page, text):
    prose = re.sub(r'```.*?```', '', text, flags=re.S)
    for target in re.findall(r'\]\(([^)]+)\)', prose):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, place = target.partition('#')
        path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        if not os.path.exists(os.path.join(source, path)):
            faults.append('%s: the link %s leads nowhere' % (page, target))
        elif place and place not in [anchor(t) for t in re.findall(r'^#+ (.*)$', read(path), flags=re.M)]:
            faults.append('%s: %s has no heading for the link %s' % (page, path, target))


def check_programs(page, text, folder):
    for number, code in enumerate(re.findall(r'^```c\n(.*?)^```$', text, flags=re.M | re.S), 1):
        whole = re.search(r'^int main\(', code, flags=re.M)
        if whole:
            unit = code
        elif re.match(r'static \w[\w ]*\*?\w+\(', code):
            unit = '#include "docs/prelude.h"\n' + code
        else:
            unit = '#define HURRAY_DOCS_INSIDE_A_FUNCTION\n#include "docs/prelude.h"\nvoid *piece(void);\nvoid *piece(void) {\n' + code + '\nreturn NULL;\n}\n'
        name = os.path.join(folder, 'piece.c')
        with open(name, 'w', encoding='utf-8') as f:
            f.write(unit)
        flags = ['-std=gnu17', '-Wall', '-Wextra', '-Werror', '-Wno-unused', '-I' + source + '/tests']
        program = os.path.join(folder, 'piece')
        ending = ['-o', program, name, library, '-Wl,-rpath,' + os.path.dirname(library)] if whole else ['-fsyntax-only', name]
        made = run(compiler + flags + ending)
        if made.returncode != 0:
            faults.append('%s: C piece %d does not compile:\n%s' % (page, number, made.stdout))
        elif whole:
            data = b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}   '
            with open(os.path.join(folder, 'x.safetensors'), 'wb') as f:
                f.write(len(data).to_bytes(8, 'little') + data + b'abcd')
            for argument, code_wanted in (('x.safetensors', 0), ('nothing', 1)):
                ran = run([program, argument], cwd=folder)
                if ran.returncode != code_wanted:
                    faults.append('%s: program %d with %s ends with %d:\n%s' % (page, number, argument, ran.returncode, ran.stdout))


def check_cpp(page, text, folder):
    for number, code in enumerate(re.findall(r'^```cpp\n(.*?)^```$', text, flags=re.M | re.S), 1):
        name = os.path.join(folder, 'piece.cpp')
        with open(name, 'w', encoding='utf-8') as f:
            f.write('#include "hurray.hpp"\nvoid use(std::string_view name, const void *data);\nvoid piece();\nvoid piece() {\n' + code + '\n}\n')
        includes = [a for a in compiler if a.startswith('-I')]
        made = run(['c++', '-std=c++17', '-Wall', '-Wextra', '-Werror', '-Wno-unused', '-fsyntax-only'] + includes + [name])
        if made.returncode != 0:
            faults.append('%s: C++ piece %d does not compile:\n%s' % (page, number, made.stdout))


def check_options():
    man = read('docs/hurray.1').replace('\\-', '-')
    bash, zsh = read('scripts/completion/hurray.bash'), read('scripts/completion/_hurray')
    commands = re.findall(r'^  ([a-z]+) ', run([command, '--help']).stdout.split('commands:')[1], flags=re.M)
    for name in commands:
        known = set(re.findall(r'^  (--[a-z-]+)', run([command, name, '--help']).stdout, flags=re.M))
        if not known:
            faults.append('hurray %s --help lists no options' % name)
        for text, what in ((man, 'the man page'), (bash, 'the bash completion'), (zsh, 'the zsh completion')):
            for word in sorted(known | {name}):
                if not re.search(re.escape(word) + r'(?![a-z-])', text):
                    faults.append('%s lacks %s of hurray %s' % (what, word, name))


def check_errors():
    header, page = read('include/hurray/error.h'), read('docs/errors.md')
    for name, number in re.findall(r'^#define (HURRAY_\w+) \(?(-?\d+)\)?', header, flags=re.M):
        if not re.search(r'^\| `%s` \| %s \|' % (name, number), page, flags=re.M):
            faults.append('docs/errors.md has no row for %s (%s)' % (name, number))


def check_tests_named(page, text):
    for room, test, names in re.findall(r'`([a-z]+)\.([a-z0-9_]+)`: ((?:`\w+`(?:, )?)+)', text):
        name = 'tests/%s/test_%s.c' % (room, test)
        if not os.path.exists(os.path.join(source, name)):
            faults.append('%s names %s, which is not there' % (page, name))
            continue
        for case in re.findall(r'`(\w+)`', names):
            if not re.search(r'\b%s\b' % case, read(name)):
                rest = [f for f in os.listdir(source + '/tests/' + room) if re.search(r'\b%s\b' % case, read('tests/%s/%s' % (room, f)))]
                faults.append('%s: %s has no test %s; it is in: %s' % (page, name, case, ', '.join(rest) or 'no file of that folder'))


with tempfile.TemporaryDirectory() as scratch:
    for page in pages:
        text = read(page)
        check_links(page, text)
        check_programs(page, text, scratch)
        if shutil.which('c++'):
            check_cpp(page, text, scratch)
        check_tests_named(page, text)
check_errors()
if os.path.exists(command):
    check_options()
for fault in faults:
    print(fault)
print('%d pages, %d faults' % (len(pages), len(faults)))
sys.exit(1 if faults else 0)
