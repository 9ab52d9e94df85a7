#!/usr/bin/env python3
"""The GGML types of bench/dequantize.c, decoded by the packages gguf and numpy: same sizes, same bytes, same unit."""
import time
import numpy as np
from gguf import GGMLQuantizationType as T, GGML_QUANT_SIZES
from gguf.quants import dequantize

ELEMENTS = 4096 * 4096
for name in 'Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4'.split():
    kind = getattr(T, name, None)
    if kind is None:
        print('%-40s not in this gguf' % ('GGML ' + name))
        continue
    per, size = GGML_QUANT_SIZES[kind]
    data = (np.arange(ELEMENTS // per * size) % 61 + 1).astype(np.uint8)
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        out = dequantize(data, kind)
        best = min(best, time.process_time() - start)
    assert out.size == ELEMENTS and out.dtype == np.float32
    print('%-40s %7.2f GB/s out  %8.1f M elements/s' % ('GGML ' + name, out.nbytes / best / 1e9, ELEMENTS / best / 1e6), flush=True)
