"""peer_models.py SOURCE.safetensors OUT: the same tensors as OUT, a .pt by torch or a .gguf by the package gguf. Run by run.py with the Python of
build/peers."""
import os
import sys

import torch
from safetensors.torch import load_file

source, out = sys.argv[1:3]
tensors = load_file(source)
if out.endswith('.pt'):
    torch.save(tensors, out + '.part')
else:
    from gguf import GGMLQuantizationType, GGUFWriter

    types = {torch.bfloat16: GGMLQuantizationType.BF16, torch.float16: GGMLQuantizationType.F16, torch.float32: GGMLQuantizationType.F32}
    writer = GGUFWriter(out + '.part', 'llama')
    for name, tensor in tensors.items():
        if tensor.dtype not in types:
            sys.exit('%s is %s: no such type in GGUF' % (name, tensor.dtype))
        writer.add_tensor(name, tensor.view(torch.uint8).numpy(), raw_dtype=types[tensor.dtype])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
os.replace(out + '.part', out)
