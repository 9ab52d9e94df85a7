/* The places of all members of all public structs, as programs were compiled with them. A number here never changes: a struct grows at
 * its end (docs/design.md), and what may not grow keeps its size. Checked by the compiler; for 64-bit systems. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hurray.h"
#include "hurray/core.h"
#include "hurray/cuda.h"
#include "hurray/import.h"
#include "hurray/loader.h"
#include "hurray/transport.h"

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " has another size")
#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member " has another place")

#if UINTPTR_MAX == UINT64_MAX

SIZE(HurrayAllocator, 32);
AT(HurrayAllocator, struct_size, 0);
AT(HurrayAllocator, reserved, 4);
AT(HurrayAllocator, ctx, 8);
AT(HurrayAllocator, allocate, 16);
AT(HurrayAllocator, deallocate, 24);

SIZE(HurrayTransport, 72);
AT(HurrayTransport, ctx, 0);
AT(HurrayTransport, read, 8);
AT(HurrayTransport, write, 16);
AT(HurrayTransport, read_at, 24);
AT(HurrayTransport, size, 32);
AT(HurrayTransport, release, 40);
AT(HurrayTransport, finish, 48);
AT(HurrayTransport, struct_size, 56);
AT(HurrayTransport, flags, 60);
AT(HurrayTransport, io_alignment, 64);
AT(HurrayTransport, reserved, 68);

SIZE(HurrayIoSlice, 16);
AT(HurrayIoSlice, ptr, 0);
AT(HurrayIoSlice, len, 8);

SIZE(HurrayMemory, 16);
AT(HurrayMemory, ptr, 0);
AT(HurrayMemory, len, 8);

SIZE(HurrayKvValue, 32);
AT(HurrayKvValue, kind, 0);
AT(HurrayKvValue, element, 4);
AT(HurrayKvValue, data, 8);
AT(HurrayKvValue, data_len, 16);
AT(HurrayKvValue, i64, 24);
AT(HurrayKvValue, u64, 24);
AT(HurrayKvValue, f64, 24);
AT(HurrayKvValue, boolean, 24);

SIZE(HurrayKvEntry, 48);
AT(HurrayKvEntry, key, 0);
AT(HurrayKvEntry, key_len, 8);
AT(HurrayKvEntry, value, 16);

SIZE(HurraySyncEventPayload, 32);
AT(HurraySyncEventPayload, sync_handle, 0);
AT(HurraySyncEventPayload, sync_handle_device_tag, 8);
AT(HurraySyncEventPayload, event_release_fn, 16);
AT(HurraySyncEventPayload, event_release_context, 24);

SIZE(HurraySyncConsumerStreamPayload, 16);
AT(HurraySyncConsumerStreamPayload, consumer_stream, 0);
AT(HurraySyncConsumerStreamPayload, consumer_stream_device_tag, 8);

SIZE(HurrayBufferInfo, 96);
AT(HurrayBufferInfo, struct_size, 0);
AT(HurrayBufferInfo, flags, 4);
AT(HurrayBufferInfo, data, 8);
AT(HurrayBufferInfo, byte_size, 16);
AT(HurrayBufferInfo, alignment, 24);
AT(HurrayBufferInfo, device_index, 28);
AT(HurrayBufferInfo, device_tag, 32);
AT(HurrayBufferInfo, sync_mode, 33);
AT(HurrayBufferInfo, memory_class, 34);
AT(HurrayBufferInfo, reserved, 35);
AT(HurrayBufferInfo, release, 40);
AT(HurrayBufferInfo, release_context, 48);
AT(HurrayBufferInfo, event, 56);
AT(HurrayBufferInfo, order, 88);

SIZE(HurrayBufferHandle, 16);
AT(HurrayBufferHandle, byte_size, 0);
AT(HurrayBufferHandle, alignment, 8);
AT(HurrayBufferHandle, device_tag, 12);
AT(HurrayBufferHandle, sync_mode, 13);
AT(HurrayBufferHandle, memory_class, 14);
AT(HurrayBufferHandle, reserved, 15);

SIZE(HurrayTileLevel, 32);
AT(HurrayTileLevel, tile_shape, 0);
AT(HurrayTileLevel, outer_strides, 8);
AT(HurrayTileLevel, inner_strides, 16);
AT(HurrayTileLevel, outer, 24);
AT(HurrayTileLevel, inner, 25);
AT(HurrayTileLevel, reserved, 26);

SIZE(HurrayLayout, 112);
AT(HurrayLayout, struct_size, 0);
AT(HurrayLayout, tag, 4);
AT(HurrayLayout, is_sorted, 5);
AT(HurrayLayout, rule, 6);
AT(HurrayLayout, combine_op, 7);
AT(HurrayLayout, nnz, 8);
AT(HurrayLayout, strides, 16);
AT(HurrayLayout, tiles, 24);
AT(HurrayLayout, tile_count, 32);
AT(HurrayLayout, order, 36);
AT(HurrayLayout, bits, 40);
AT(HurrayLayout, mode_order, 48);
AT(HurrayLayout, num_pages, 56);
AT(HurrayLayout, page_size, 64);
AT(HurrayLayout, paged_axis, 68);
AT(HurrayLayout, num_seqs, 72);
AT(HurrayLayout, layer_index, 76);
AT(HurrayLayout, kv_role, 80);
AT(HurrayLayout, index_type, 81);
AT(HurrayLayout, reserved, 82);
AT(HurrayLayout, member_count, 84);
AT(HurrayLayout, private_id, 88);
AT(HurrayLayout, private_data, 96);
AT(HurrayLayout, private_len, 104);
AT(HurrayLayout, reserved2, 108);

SIZE(HurrayQuantization, 32);
AT(HurrayQuantization, struct_size, 0);
AT(HurrayQuantization, scheme, 4);
AT(HurrayQuantization, scale_type, 5);
AT(HurrayQuantization, flags, 6);
AT(HurrayQuantization, axis, 8);
AT(HurrayQuantization, block_size, 12);
AT(HurrayQuantization, scale_buffer, 16);
AT(HurrayQuantization, zero_point_buffer, 20);
AT(HurrayQuantization, scale, 24);
AT(HurrayQuantization, zero_point, 28);

SIZE(HurrayStatistics, 72);
AT(HurrayStatistics, struct_size, 0);
AT(HurrayStatistics, computed_mask, 4);
AT(HurrayStatistics, nnz, 8);
AT(HurrayStatistics, sparsity_ratio, 16);
AT(HurrayStatistics, min, 24);
AT(HurrayStatistics, max, 32);
AT(HurrayStatistics, abs_max, 40);
AT(HurrayStatistics, mean, 48);
AT(HurrayStatistics, stddev, 56);
AT(HurrayStatistics, nm_n, 64);
AT(HurrayStatistics, nm_m, 65);
AT(HurrayStatistics, has_nan, 66);
AT(HurrayStatistics, has_inf, 67);
AT(HurrayStatistics, reserved, 68);

SIZE(HurrayExtensionType, 20);
AT(HurrayExtensionType, struct_size, 0);
AT(HurrayExtensionType, bit_width, 4);
AT(HurrayExtensionType, packing_factor, 8);
AT(HurrayExtensionType, is_float, 9);
AT(HurrayExtensionType, is_signed, 10);
AT(HurrayExtensionType, sign_bits, 11);
AT(HurrayExtensionType, exponent_bits, 12);
AT(HurrayExtensionType, mantissa_bits, 13);
AT(HurrayExtensionType, has_nan, 14);
AT(HurrayExtensionType, has_inf, 15);
AT(HurrayExtensionType, exponent_bias, 16);

SIZE(HurrayShard, 24);
AT(HurrayShard, struct_size, 0);
AT(HurrayShard, reserved, 4);
AT(HurrayShard, parent_shape, 8);
AT(HurrayShard, offset, 16);

SIZE(HurrayCompositeMember, 8);
AT(HurrayCompositeMember, struct_size, 0);
AT(HurrayCompositeMember, role, 4);
AT(HurrayCompositeMember, reserved, 5);

SIZE(HurrayDescriptorSpec, 88);
AT(HurrayDescriptorSpec, struct_size, 0);
AT(HurrayDescriptorSpec, rank, 4);
AT(HurrayDescriptorSpec, shape, 8);
AT(HurrayDescriptorSpec, byte_offset, 16);
AT(HurrayDescriptorSpec, element_type, 24);
AT(HurrayDescriptorSpec, reserved, 25);
AT(HurrayDescriptorSpec, buffer_count, 28);
AT(HurrayDescriptorSpec, buffers, 32);
AT(HurrayDescriptorSpec, layout, 40);
AT(HurrayDescriptorSpec, quantization, 48);
AT(HurrayDescriptorSpec, shard, 56);
AT(HurrayDescriptorSpec, statistics, 64);
AT(HurrayDescriptorSpec, extension_type, 72);
AT(HurrayDescriptorSpec, composite_member, 80);

SIZE(HurrayCompositeNode, 64);
AT(HurrayCompositeNode, kind, 0);
AT(HurrayCompositeNode, member_count, 4);
AT(HurrayCompositeNode, name, 8);
AT(HurrayCompositeNode, name_len, 16);
AT(HurrayCompositeNode, descriptor, 24);
AT(HurrayCompositeNode, slices, 32);
AT(HurrayCompositeNode, slice_count, 40);
AT(HurrayCompositeNode, reserved, 48);

SIZE(HurrayItemNode, 56);
AT(HurrayItemNode, kind, 0);
AT(HurrayItemNode, member_count, 4);
AT(HurrayItemNode, name, 8);
AT(HurrayItemNode, name_len, 16);
AT(HurrayItemNode, tensor, 24);
AT(HurrayItemNode, parent, 32);
AT(HurrayItemNode, reserved, 40);

SIZE(HurrayFileReaderOptions, 88);
AT(HurrayFileReaderOptions, struct_size, 0);
AT(HurrayFileReaderOptions, flags, 4);
AT(HurrayFileReaderOptions, verify_data, 8);
AT(HurrayFileReaderOptions, max_composite_depth, 12);
AT(HurrayFileReaderOptions, max_tensors, 16);
AT(HurrayFileReaderOptions, max_index_bytes, 24);
AT(HurrayFileReaderOptions, max_kv_bytes, 32);
AT(HurrayFileReaderOptions, max_descriptor_bytes, 40);
AT(HurrayFileReaderOptions, max_tensor_bytes, 48);
AT(HurrayFileReaderOptions, allocator, 56);
AT(HurrayFileReaderOptions, destination, 64);
AT(HurrayFileReaderOptions, label, 72);
AT(HurrayFileReaderOptions, label_len, 80);

SIZE(HurraySourceInfo, 48);
AT(HurraySourceInfo, struct_size, 0);
AT(HurraySourceInfo, format, 4);
AT(HurraySourceInfo, major, 8);
AT(HurraySourceInfo, minor, 9);
AT(HurraySourceInfo, reserved, 10);
AT(HurraySourceInfo, flags, 12);
AT(HurraySourceInfo, data_buffer_alignment, 16);
AT(HurraySourceInfo, byte_size, 24);
AT(HurraySourceInfo, label, 32);
AT(HurraySourceInfo, label_len, 40);

SIZE(HurrayTensorInfo, 96);
AT(HurrayTensorInfo, struct_size, 0);
AT(HurrayTensorInfo, source_index, 4);
AT(HurrayTensorInfo, index, 8);
AT(HurrayTensorInfo, parent, 16);
AT(HurrayTensorInfo, name, 24);
AT(HurrayTensorInfo, name_len, 32);
AT(HurrayTensorInfo, descriptor, 40);
AT(HurrayTensorInfo, descriptor_offset, 48);
AT(HurrayTensorInfo, data_offset, 56);
AT(HurrayTensorInfo, data_length, 64);
AT(HurrayTensorInfo, buffer_offsets, 72);
AT(HurrayTensorInfo, buffer_count, 80);
AT(HurrayTensorInfo, member_count, 84);
AT(HurrayTensorInfo, fault, 88);

SIZE(HurrayFileWriterOptions, 40);
AT(HurrayFileWriterOptions, struct_size, 0);
AT(HurrayFileWriterOptions, flags, 4);
AT(HurrayFileWriterOptions, data_buffer_alignment, 8);
AT(HurrayFileWriterOptions, reserved, 12);
AT(HurrayFileWriterOptions, allocator, 16);
AT(HurrayFileWriterOptions, label, 24);
AT(HurrayFileWriterOptions, label_len, 32);

SIZE(HurrayReaderOptions, 72);
AT(HurrayReaderOptions, struct_size, 0);
AT(HurrayReaderOptions, flags, 4);
AT(HurrayReaderOptions, max_composite_depth, 8);
AT(HurrayReaderOptions, reserved, 12);
AT(HurrayReaderOptions, max_descriptor_bytes, 16);
AT(HurrayReaderOptions, max_buffer_bytes, 24);
AT(HurrayReaderOptions, max_tensor_bytes, 32);
AT(HurrayReaderOptions, allocator, 40);
AT(HurrayReaderOptions, destination, 48);
AT(HurrayReaderOptions, label, 56);
AT(HurrayReaderOptions, label_len, 64);

SIZE(HurrayWriterOptions, 32);
AT(HurrayWriterOptions, struct_size, 0);
AT(HurrayWriterOptions, flags, 4);
AT(HurrayWriterOptions, allocator, 8);
AT(HurrayWriterOptions, label, 16);
AT(HurrayWriterOptions, label_len, 24);

SIZE(HurrayStep, 64);
AT(HurrayStep, kind, 0);
AT(HurrayStep, reason, 4);
AT(HurrayStep, offset, 8);
AT(HurrayStep, len, 16);
AT(HurrayStep, reserved, 24);

SIZE(HurrayCudaOptions, 72);
AT(HurrayCudaOptions, struct_size, 0);
AT(HurrayCudaOptions, flags, 4);
AT(HurrayCudaOptions, pinned, 8);
AT(HurrayCudaOptions, device_index, 12);
AT(HurrayCudaOptions, pinned_cap, 16);
AT(HurrayCudaOptions, slot_bytes, 24);
AT(HurrayCudaOptions, sync_mode, 32);
AT(HurrayCudaOptions, memory_class, 33);
AT(HurrayCudaOptions, reserved, 34);
AT(HurrayCudaOptions, consumer_stream, 40);
AT(HurrayCudaOptions, copy_stream, 48);
AT(HurrayCudaOptions, device_memory, 56);
AT(HurrayCudaOptions, allocator, 64);

SIZE(HurrayDestinationRequest, 104);
AT(HurrayDestinationRequest, struct_size, 0);
AT(HurrayDestinationRequest, flags, 4);
AT(HurrayDestinationRequest, byte_size, 8);
AT(HurrayDestinationRequest, source_offset, 16);
AT(HurrayDestinationRequest, source_index, 24);
AT(HurrayDestinationRequest, alignment, 28);
AT(HurrayDestinationRequest, io_alignment, 32);
AT(HurrayDestinationRequest, buffer_index, 36);
AT(HurrayDestinationRequest, device_index, 40);
AT(HurrayDestinationRequest, device_tag, 44);
AT(HurrayDestinationRequest, sync_mode, 45);
AT(HurrayDestinationRequest, memory_class, 46);
AT(HurrayDestinationRequest, reserved, 47);
AT(HurrayDestinationRequest, consumer_stream, 48);
AT(HurrayDestinationRequest, copy_stream, 56);
AT(HurrayDestinationRequest, name, 64);
AT(HurrayDestinationRequest, name_len, 72);
AT(HurrayDestinationRequest, descriptor, 80);
AT(HurrayDestinationRequest, user, 88);
AT(HurrayDestinationRequest, into, 96);

SIZE(HurrayDestination, 24);
AT(HurrayDestination, struct_size, 0);
AT(HurrayDestination, flags, 4);
AT(HurrayDestination, id, 8);
AT(HurrayDestination, data, 16);

SIZE(HurrayWindow, 64);
AT(HurrayWindow, struct_size, 0);
AT(HurrayWindow, reserved, 4);
AT(HurrayWindow, offset, 8);
AT(HurrayWindow, len, 16);
AT(HurrayWindow, source_offset, 24);
AT(HurrayWindow, ptr, 32);
AT(HurrayWindow, slack_before, 40);
AT(HurrayWindow, slack_after, 48);
AT(HurrayWindow, token, 56);

SIZE(HurrayDestinationAlloc, 88);
AT(HurrayDestinationAlloc, struct_size, 0);
AT(HurrayDestinationAlloc, flags, 4);
AT(HurrayDestinationAlloc, ctx, 8);
AT(HurrayDestinationAlloc, retain, 16);
AT(HurrayDestinationAlloc, reserve, 24);
AT(HurrayDestinationAlloc, allocate, 32);
AT(HurrayDestinationAlloc, window, 40);
AT(HurrayDestinationAlloc, commit, 48);
AT(HurrayDestinationAlloc, freeze, 56);
AT(HurrayDestinationAlloc, discard, 64);
AT(HurrayDestinationAlloc, wait, 72);
AT(HurrayDestinationAlloc, release, 80);

SIZE(HurrayDeviceMemory, 32);
AT(HurrayDeviceMemory, struct_size, 0);
AT(HurrayDeviceMemory, reserved, 4);
AT(HurrayDeviceMemory, ctx, 8);
AT(HurrayDeviceMemory, allocate, 16);
AT(HurrayDeviceMemory, deallocate, 24);

SIZE(HurrayHostOptions, 24);
AT(HurrayHostOptions, struct_size, 0);
AT(HurrayHostOptions, huge_pages, 4);
AT(HurrayHostOptions, numa_node, 8);
AT(HurrayHostOptions, min_alignment, 12);
AT(HurrayHostOptions, allocator, 16);

SIZE(HurrayError, 1024);
AT(HurrayError, struct_size, 0);
AT(HurrayError, code, 4);
AT(HurrayError, cause, 8);
AT(HurrayError, system_error, 12);
AT(HurrayError, device_error, 16);
AT(HurrayError, offset, 24);
AT(HurrayError, tensor_index, 32);
AT(HurrayError, buffer_index, 40);
AT(HurrayError, source_index, 44);
AT(HurrayError, source, 48);
AT(HurrayError, tensor, 248);
AT(HurrayError, field, 384);
AT(HurrayError, message, 448);

SIZE(HurrayExportEntry, 40);
AT(HurrayExportEntry, name, 0);
AT(HurrayExportEntry, name_len, 8);
AT(HurrayExportEntry, descriptor, 16);
AT(HurrayExportEntry, reserved, 24);

SIZE(HurrayExportOptions, 16);
AT(HurrayExportOptions, struct_size, 0);
AT(HurrayExportOptions, flags, 4);
AT(HurrayExportOptions, allocator, 8);

SIZE(HurrayPlacement, 56);
AT(HurrayPlacement, struct_size, 0);
AT(HurrayPlacement, action, 4);
AT(HurrayPlacement, device_index, 8);
AT(HurrayPlacement, device_tag, 12);
AT(HurrayPlacement, sync_mode, 13);
AT(HurrayPlacement, memory_class, 14);
AT(HurrayPlacement, reserved, 15);
AT(HurrayPlacement, consumer_stream, 16);
AT(HurrayPlacement, copy_stream, 24);
AT(HurrayPlacement, into, 32);
AT(HurrayPlacement, into_count, 40);
AT(HurrayPlacement, user, 48);

SIZE(HurrayProgress, 64);
AT(HurrayProgress, struct_size, 0);
AT(HurrayProgress, reserved, 4);
AT(HurrayProgress, bytes_done, 8);
AT(HurrayProgress, bytes_total, 16);
AT(HurrayProgress, tensors_done, 24);
AT(HurrayProgress, tensors_total, 32);
AT(HurrayProgress, elapsed_ns, 40);
AT(HurrayProgress, name, 48);
AT(HurrayProgress, name_len, 56);

SIZE(HurrayTraceEvent, 48);
AT(HurrayTraceEvent, struct_size, 0);
AT(HurrayTraceEvent, stage, 4);
AT(HurrayTraceEvent, begin_ns, 8);
AT(HurrayTraceEvent, end_ns, 16);
AT(HurrayTraceEvent, bytes, 24);
AT(HurrayTraceEvent, tensor_index, 32);
AT(HurrayTraceEvent, source_index, 40);
AT(HurrayTraceEvent, lane, 44);

SIZE(HurrayLoaderOptions, 216);
AT(HurrayLoaderOptions, struct_size, 0);
AT(HurrayLoaderOptions, flags, 4);
AT(HurrayLoaderOptions, target, 8);
AT(HurrayLoaderOptions, device_index, 12);
AT(HurrayLoaderOptions, device_tag, 16);
AT(HurrayLoaderOptions, sync_mode, 17);
AT(HurrayLoaderOptions, memory_class, 18);
AT(HurrayLoaderOptions, reserved, 19);
AT(HurrayLoaderOptions, consumer_stream, 24);
AT(HurrayLoaderOptions, copy_stream, 32);
AT(HurrayLoaderOptions, place, 40);
AT(HurrayLoaderOptions, deliver, 48);
AT(HurrayLoaderOptions, progress, 56);
AT(HurrayLoaderOptions, trace, 64);
AT(HurrayLoaderOptions, ctx, 72);
AT(HurrayLoaderOptions, progress_interval_ms, 80);
AT(HurrayLoaderOptions, io, 84);
AT(HurrayLoaderOptions, direct, 88);
AT(HurrayLoaderOptions, huge_pages, 92);
AT(HurrayLoaderOptions, pinned, 96);
AT(HurrayLoaderOptions, verify_data, 100);
AT(HurrayLoaderOptions, threads, 104);
AT(HurrayLoaderOptions, queue_depth, 108);
AT(HurrayLoaderOptions, chunk_bytes, 112);
AT(HurrayLoaderOptions, pinned_cap, 120);
AT(HurrayLoaderOptions, memory_cap, 128);
AT(HurrayLoaderOptions, destination, 136);
AT(HurrayLoaderOptions, device_memory, 144);
AT(HurrayLoaderOptions, device_alignment, 152);
AT(HurrayLoaderOptions, allocator, 160);
AT(HurrayLoaderOptions, max_tensors, 168);
AT(HurrayLoaderOptions, max_index_bytes, 176);
AT(HurrayLoaderOptions, max_kv_bytes, 184);
AT(HurrayLoaderOptions, max_descriptor_bytes, 192);
AT(HurrayLoaderOptions, max_tensor_bytes, 200);
AT(HurrayLoaderOptions, max_composite_depth, 208);
AT(HurrayLoaderOptions, reserved2, 212);

SIZE(HurrayDeviceInfo, 240);
AT(HurrayDeviceInfo, struct_size, 0);
AT(HurrayDeviceInfo, numa_node, 4);
AT(HurrayDeviceInfo, total_bytes, 8);
AT(HurrayDeviceInfo, free_bytes, 16);
AT(HurrayDeviceInfo, sync_modes, 24);
AT(HurrayDeviceInfo, memory_classes, 28);
AT(HurrayDeviceInfo, name, 32);
AT(HurrayDeviceInfo, pci, 160);
AT(HurrayDeviceInfo, uuid, 192);

SIZE(HurrayHostInfo, 176);
AT(HurrayHostInfo, struct_size, 0);
AT(HurrayHostInfo, cores, 4);
AT(HurrayHostInfo, numa_nodes, 8);
AT(HurrayHostInfo, uring, 12);
AT(HurrayHostInfo, memory_bytes, 16);
AT(HurrayHostInfo, pinned_limit, 24);
AT(HurrayHostInfo, page_size, 32);
AT(HurrayHostInfo, huge_page_size, 40);
AT(HurrayHostInfo, uring_reason, 48);

SIZE(HurraySource, 48);
AT(HurraySource, path, 0);
AT(HurraySource, transport, 8);
AT(HurraySource, label, 16);
AT(HurraySource, label_len, 24);
AT(HurraySource, reserved, 32);

SIZE(HurrayLoadStats, 128);
AT(HurrayLoadStats, struct_size, 0);
AT(HurrayLoadStats, path_count, 4);
AT(HurrayLoadStats, tensors, 8);
AT(HurrayLoadStats, payload_bytes, 16);
AT(HurrayLoadStats, bytes_read, 24);
AT(HurrayLoadStats, bytes_copied, 32);
AT(HurrayLoadStats, bytes_in_place, 40);
AT(HurrayLoadStats, bytes_verified, 48);
AT(HurrayLoadStats, ranges, 56);
AT(HurrayLoadStats, peak_pinned, 64);
AT(HurrayLoadStats, peak_host, 72);
AT(HurrayLoadStats, total_ns, 80);
AT(HurrayLoadStats, read_ns, 88);
AT(HurrayLoadStats, copy_ns, 96);
AT(HurrayLoadStats, verify_ns, 104);
AT(HurrayLoadStats, wait_ns, 112);
AT(HurrayLoadStats, overlap_ns, 120);

SIZE(HurrayPathStats, 72);
AT(HurrayPathStats, struct_size, 0);
AT(HurrayPathStats, source_index, 4);
AT(HurrayPathStats, io, 8);
AT(HurrayPathStats, direct, 12);
AT(HurrayPathStats, staging, 16);
AT(HurrayPathStats, device_index, 20);
AT(HurrayPathStats, numa_node, 24);
AT(HurrayPathStats, device_tag, 28);
AT(HurrayPathStats, sync_mode, 29);
AT(HurrayPathStats, memory_class, 30);
AT(HurrayPathStats, reserved, 31);
AT(HurrayPathStats, threads, 32);
AT(HurrayPathStats, queue_depth, 36);
AT(HurrayPathStats, bytes, 40);
AT(HurrayPathStats, ranges, 48);
AT(HurrayPathStats, busy_ns, 56);
AT(HurrayPathStats, reason, 64);

SIZE(HurrayTransportOptions, 24);
AT(HurrayTransportOptions, struct_size, 0);
AT(HurrayTransportOptions, flags, 4);
AT(HurrayTransportOptions, direct, 8);
AT(HurrayTransportOptions, level, 12);
AT(HurrayTransportOptions, allocator, 16);
#endif

static void the_structs_lie_in_memory_as_ever(void **state) {
    (void)state;
    assert_int_equal(sizeof(HurrayStatus), 4);
    assert_int_equal(sizeof(HurrayDescriptorField), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_structs_lie_in_memory_as_ever)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
