/* Quantizes a float32 matrix to int4 in blocks of 32 with a scale each, writes it, reads it back, and measures what was lost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hurray.h"
#include "hurray/dense.h"
#include "hurray/transport.h"

#define PATH "sample_quantize.hrry"
#define ROWS 16
#define COLUMNS 256
#define BLOCK 32

static HurrayError error = HURRAY_ERROR_INIT;

/* Symmetric: value = scale x code, codes -7..7, two codes a byte, the first one in the low half. */
static void quantize(const float *weights, uint8_t *codes, float *scales) {
    for (size_t block = 0; block < ROWS * COLUMNS / BLOCK; block++) {
        const float *from = weights + block * BLOCK;
        float most = 0;
        for (int i = 0; i < BLOCK; i++) most = fmaxf(most, fabsf(from[i]));
        float scale = most > 0 ? most / 7 : 1;
        scales[block] = scale;
        for (size_t i = 0; i < BLOCK; i += 2) {
            unsigned low = (unsigned)lrintf(from[i] / scale) & 15, high = (unsigned)lrintf(from[i + 1] / scale) & 15;
            codes[(block * BLOCK + i) / 2] = (uint8_t)(low | high << 4);
        }
    }
}

static int write_quantized(const float *weights) {
    const uint64_t shape[2] = {ROWS, COLUMNS};
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handles[2];
    size_t count = 2;
    quantization.scheme = HURRAY_QUANT_PER_BLOCK_AFFINE;
    quantization.flags = HURRAY_QUANT_SYMMETRIC;
    quantization.axis = 1;
    quantization.block_size = BLOCK;
    quantization.scale_buffer = 1;
    quantization.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    quantization.scale_type = HURRAY_TYPE_FLOAT32;
    spec.element_type = HURRAY_TYPE_INT4;
    spec.rank = 2;
    spec.shape = shape;
    spec.quantization = &quantization;
    /* The library says how large the buffers are: codes, then scales. */
    if (hurray_descriptor_plan_buffers(&spec, handles, &count, &error) != HURRAY_OK) return 0;
    spec.buffers = handles;
    spec.buffer_count = (uint32_t)count;

    HurrayDescriptor *descriptor = NULL;
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    uint8_t *codes = calloc(1, handles[0].byte_size);
    float *scales = calloc(1, handles[1].byte_size);
    int good = codes && scales && hurray_descriptor_new(&spec, NULL, &descriptor, &error) == HURRAY_OK &&
               hurray_transport_create(PATH, NULL, &transport, &error) == HURRAY_OK;
    if (good && hurray_file_writer_new_ex(&transport, NULL, &writer, &error) != HURRAY_OK) {
        hurray_transport_release(&transport);
        good = 0;
    }
    if (good) {
        quantize(weights, codes, scales);
        const HurrayIoSlice slices[2] = {{codes, handles[0].byte_size}, {scales, handles[1].byte_size}};
        good = hurray_file_writer_write_tensor(writer, "w", 1, descriptor, slices, 2) == HURRAY_OK &&
               hurray_file_writer_finish(writer, NULL, 0) == HURRAY_OK;
        if (!good) error = *hurray_file_writer_last_error(writer);
    }
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    free(codes);
    free(scales);
    return good;
}

/* Decoded by the library, element by element as float32. */
static int read_decoded(float *out) {
    HurrayTransport transport;
    HurrayFileReader *reader = NULL;
    HurrayTensor *tensor = NULL;
    if (hurray_transport_file(PATH, NULL, &transport, &error) != HURRAY_OK) return 0;
    if (hurray_file_reader_new_ex(&transport, NULL, &reader, &error) != HURRAY_OK) {
        hurray_transport_release(&transport);
        return 0;
    }
    HurrayStatus status = hurray_file_reader_read_tensor(reader, "w", 1, &tensor);
    if (status != HURRAY_OK) error = *hurray_file_reader_last_error(reader);
    if (status == HURRAY_OK) status = hurray_tensor_dense(tensor, HURRAY_TYPE_FLOAT32, out, sizeof(float) * ROWS * COLUMNS, &error);
    hurray_tensor_destroy(&tensor);
    hurray_file_reader_destroy(&reader);
    return status == HURRAY_OK;
}

int main(void) {
    static float weights[ROWS * COLUMNS], decoded[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) weights[i] = sinf((float)i * 0.37f) * (1.0f + (float)(i / 500));
    if (!write_quantized(weights) || !read_decoded(decoded)) {
        fprintf(stderr, "%s: %s\n", error.field, error.message);
        return 1;
    }
    float worst = 0, most = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        worst = fmaxf(worst, fabsf(weights[i] - decoded[i]));
        most = fmaxf(most, fabsf(weights[i]));
    }
    printf("largest weight %g, largest error %g\n", (double)most, (double)worst);
    return worst <= most / 13 && worst > 0 ? 0 : 1; /* half a step of the coarsest block, and a little */
}
