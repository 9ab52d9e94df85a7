#include "support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Header {
    size_t size, alignment;
    void *base;
} Header;

static void *test_allocate(void *ctx, size_t size, size_t alignment) {
    FailAlloc *alloc = ctx;
    pthread_mutex_lock(&alloc->lock);
    uint64_t call = ++alloc->calls;
    int fail = alloc->fail_at && (call == alloc->fail_at || (alloc->sticky && call > alloc->fail_at));
    if (!fail) {
        alloc->live++;
        alloc->live_bytes += size;
        if (alloc->live_bytes > alloc->peak_bytes) alloc->peak_bytes = alloc->live_bytes;
    }
    pthread_mutex_unlock(&alloc->lock);
    if (fail) return NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    unsigned char *base = malloc(size + alignment + sizeof(Header));
    if (!base) abort();
    uintptr_t at = ((uintptr_t)base + sizeof(Header) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    Header header = {size, alignment, base};
    memcpy((void *)(at - sizeof header), &header, sizeof header);
    memset((void *)at, 0xA5, size);
    return (void *)at;
}

static void test_deallocate(void *ctx, void *memory, size_t size, size_t alignment) {
    FailAlloc *alloc = ctx;
    Header header;
    memcpy(&header, (unsigned char *)memory - sizeof header, sizeof header);
    if (header.size != size) {
        print_error("released with size %zu what was allocated with %zu\n", size, header.size);
        abort();
    }
    (void)alignment;
    pthread_mutex_lock(&alloc->lock);
    alloc->live--;
    alloc->live_bytes -= size;
    pthread_mutex_unlock(&alloc->lock);
    free(header.base);
}

void fail_alloc_init(FailAlloc *alloc) {
    memset(alloc, 0, sizeof *alloc);
    pthread_mutex_init(&alloc->lock, NULL);
    HurrayAllocator a = HURRAY_ALLOCATOR_INIT;
    a.ctx = alloc;
    a.allocate = test_allocate;
    a.deallocate = test_deallocate;
    alloc->allocator = a;
}

void fail_alloc_arm(FailAlloc *alloc, uint64_t k, int sticky) {
    alloc->calls = 0;
    alloc->fail_at = k;
    alloc->sticky = sticky;
}

void fail_alloc_assert_empty(const FailAlloc *alloc) { assert_int_equal(alloc->live, 0); }
