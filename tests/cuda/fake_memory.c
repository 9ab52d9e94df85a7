/* The stand-in's memory: device memory as a memfd mapped twice (what the program knows is PROT_NONE), pinned ranges, source pages that
 * are read-only while a copy from them is pending. */
#include "cuda/fake_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATTERN_BYTES (64u << 10) /* filled at the begin of fresh memory; the bits say the rest */

static size_t whole_pages(size_t size) { return (size + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE; }

static FakeBlock *add(FakeMemory kind, int device, uintptr_t base, size_t size) {
    if (fake.block_count == fake.block_capacity) {
        fake.block_capacity = fake.block_capacity ? fake.block_capacity * 2 : 64;
        fake.blocks = realloc(fake.blocks, fake.block_capacity * sizeof *fake.blocks);
    }
    FakeBlock *block = calloc(1, sizeof *block);
    block->kind = kind;
    block->device = device;
    block->base = base;
    block->size = size;
    block->live = true;
    fake.blocks[fake.block_count++] = block;
    if (kind == FAKE_DEVICE || kind == FAKE_MANAGED) {
        fake.counts.device_bytes += size;
        fake.counts.device_blocks++;
        if (fake.counts.device_bytes > fake.counts.device_peak) fake.counts.device_peak = fake.counts.device_bytes;
    } else {
        fake.counts.pinned_bytes += size;
        fake.counts.pinned_blocks++;
        if (fake.counts.pinned_bytes > fake.counts.pinned_peak) fake.counts.pinned_peak = fake.counts.pinned_bytes;
    }
    return block;
}

static void *map(int protection, int flags, int fd, size_t len) {
    void *memory = mmap(NULL, len, protection, flags, fd, 0);
    if (memory == MAP_FAILED) {
        perror("stand-in: mmap");
        _exit(99);
    }
    return memory;
}

FakeBlock *fake_block_new(FakeMemory kind, int device, size_t size) {
    size_t shift = 256 * (1 + fake.block_count % 15), mapped = whole_pages(size + shift);
    if (kind == FAKE_HOST) {
        uint8_t *memory = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, mapped);
        FakeBlock *block = add(kind, device, (uintptr_t)memory + shift, size);
        block->map = memory;
        block->mapped = mapped;
        block->alias = memory + shift;
        return block;
    }
    int fd = memfd_create("hurray stand-in device memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)mapped) != 0) {
        perror("stand-in: memfd");
        _exit(99);
    }
    uint8_t *known = map(kind == FAKE_MANAGED ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, fd, mapped);
    uint8_t *alias = (uint8_t *)map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, mapped) + shift;
    close(fd);
    FakeBlock *block = add(kind, device, (uintptr_t)known + shift, size);
    block->map = known;
    block->mapped = mapped;
    block->alias = alias;
    block->written = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, size / 8 + 1); /* shared, as all of the device's memory */
    uint64_t word = (++fake.fills + fake.settings.seed) * 0x9e3779b97f4a7c15u;
    for (size_t at = 0; at + 8 <= size && at < PATTERN_BYTES; at += 8) {
        memcpy(alias + at, &word, 8);
        word = word * 6364136223846793005u + 1442695040888963407u;
    }
    return block;
}

FakeBlock *fake_block_register(void *memory, size_t size) {
    uintptr_t base = (uintptr_t)memory;
    for (size_t i = 0; i < fake.block_count; i++) {
        const FakeBlock *other = fake.blocks[i];
        if (other->live && other->kind == FAKE_REGISTERED && base < other->base + other->size && other->base < base + size) return NULL;
    }
    FakeBlock *block = add(FAKE_REGISTERED, -1, base, size);
    block->alias = memory;
    return block;
}

FakeBlock *fake_block_find(const void *memory, bool host, bool dead_too) {
    uintptr_t at = (uintptr_t)memory;
    for (int live = 1; live >= (dead_too ? 0 : 1); live--) {
        for (size_t i = fake.block_count; i-- > 0;) {
            FakeBlock *block = fake.blocks[i];
            bool is_host = block->kind == FAKE_REGISTERED || block->kind == FAKE_HOST;
            if (is_host == host && block->live == (live == 1) && at >= block->base && at < block->base + block->size) return block;
        }
    }
    return NULL;
}

/* The address range stays taken, so that it is never handed out again. */
void fake_block_release(FakeBlock *block) {
    bool host = block->kind == FAKE_REGISTERED || block->kind == FAKE_HOST;
    block->live = false;
    *(host ? &fake.counts.pinned_bytes : &fake.counts.device_bytes) -= block->size;
    --*(host ? &fake.counts.pinned_blocks : &fake.counts.device_blocks);
    if (block->kind == FAKE_REGISTERED) return;
    mmap(block->map, block->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (!host) munmap(block->alias - (block->base - (uintptr_t)block->map), block->mapped);
    block->alias = NULL;
    if (block->written) munmap(block->written, block->size / 8 + 1);
    block->written = NULL;
}

/* Whole pages of a shared mapping inside a range of it: empty again. */
static void drop_pages(uint8_t *begin, size_t len) {
    uintptr_t from = ((uintptr_t)begin + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE, to = ((uintptr_t)begin + len) / FAKE_PAGE * FAKE_PAGE;
    if (from < to && madvise((void *)from, to - from, MADV_REMOVE) != 0) perror("stand-in: MADV_REMOVE");
}

void fake_block_forget(FakeBlock *block, size_t offset, size_t len) {
    drop_pages(block->alias + offset, len);
    drop_pages(block->written + (offset + 7) / 8, (offset + len) / 8 - (offset + 7) / 8);
}

void fake_blocks_drop_all(void) {
    for (size_t i = 0; i < fake.block_count; i++) {
        FakeBlock *block = fake.blocks[i];
        if (block->live) fake_block_release(block);
        if (block->kind != FAKE_REGISTERED) munmap(block->map, block->mapped);
        free(block);
    }
    free(fake.blocks);
    fake.blocks = NULL;
    fake.block_count = fake.block_capacity = 0;
}

void fake_block_mark(FakeBlock *block, size_t offset, size_t len) {
    if (!block->written) return;
    size_t at = offset, end = offset + len;
    for (; at < end && at % 8 != 0; at++) block->written[at / 8] |= (uint8_t)(1u << at % 8);
    if (at < end) memset(block->written + at / 8, 0xff, (end - at) / 8);
    for (at += (end - at) / 8 * 8; at < end; at++) block->written[at / 8] |= (uint8_t)(1u << at % 8);
}

bool fake_block_is_written(const FakeBlock *block, size_t offset, size_t len, size_t *first) {
    for (size_t at = offset; at < offset + len; at++) {
        uint64_t word = 0;
        if (at % 64 == 0 && offset + len - at >= 64) memcpy(&word, block->written + at / 8, 8);
        if (word == UINT64_MAX) {
            at += 63;
            continue;
        }
        if (!(block->written[at / 8] >> at % 8 & 1)) {
            *first = at;
            return false;
        }
    }
    return true;
}

/* ---- busy sources ---- */

/* Whole pages inside the range only: what shares a page with it may be somebody else's. */
static bool inner_pages(const FakeOp *op, uintptr_t *begin, uintptr_t *end) {
    *begin = ((uintptr_t)op->from + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
    *end = ((uintptr_t)op->from + op->len) / FAKE_PAGE * FAKE_PAGE;
    return *begin < *end;
}

static void set_protection(const FakeOp *op, int protection) {
    uintptr_t begin, end;
    if (!op->snapshot && op->source && inner_pages(op, &begin, &end)) mprotect((void *)begin, end - begin, protection);
}

void fake_protect(FakeOp *op) {
    if (fake.pending_count == fake.pending_capacity) {
        fake.pending_capacity = fake.pending_capacity ? fake.pending_capacity * 2 : 64;
        fake.pending = realloc(fake.pending, fake.pending_capacity * sizeof *fake.pending);
    }
    fake.pending[fake.pending_count++] = op;
    op->pending = true;
    op->target->pending++;
    if (op->source) op->source->pending++;
    set_protection(op, PROT_READ);
}

void fake_unprotect(FakeOp *op) {
    if (!op->pending) return;
    op->pending = false;
    op->target->pending--;
    if (op->source) op->source->pending--;
    for (size_t i = 0; i < fake.pending_count; i++) {
        if (fake.pending[i] != op) continue;
        fake.pending[i] = fake.pending[--fake.pending_count];
        break;
    }
    set_protection(op, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < fake.pending_count; i++) {
        const FakeOp *other = fake.pending[i];
        if (other->from < op->from + op->len && op->from < other->from + other->len) set_protection(other, PROT_READ);
    }
}

/* Says what was touched, where the system only says that it was. No lock: the thread may hold it. */
static void on_fault(int number, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t)info->si_addr;
    (void)context;
    for (size_t i = 0; i < fake.pending_count; i++) {
        const FakeOp *op = fake.pending[i];
        if (at >= (uintptr_t)op->from && at < (uintptr_t)op->from + op->len)
            fake_report(FAKE_CHECK_SOURCE_CHANGED, "a store", info->si_addr, "into memory that a pending copy of %zu bytes reads", op->len);
    }
    for (size_t i = 0; i < fake.block_count; i++) {
        const FakeBlock *block = fake.blocks[i];
        if (block->kind != FAKE_REGISTERED && at >= (uintptr_t)block->map && at < (uintptr_t)block->map + block->mapped)
            fake_report(block->live ? FAKE_CHECK_HOST_ACCESS : FAKE_CHECK_USE_AFTER_FREE, "the host", info->si_addr, "touches %s memory %s",
                        block->kind == FAKE_DEVICE ? "device" : "pinned", block->live ? "" : "that was freed");
    }
    sigaction(number, number == SIGSEGV ? &fake.old_segv : &fake.old_bus, NULL); /* not ours: again, without us */
}

void fake_faults_install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &fake.old_segv);
    sigaction(SIGBUS, &action, &fake.old_bus);
}

void fake_faults_remove(void) {
    sigaction(SIGSEGV, &fake.old_segv, NULL);
    sigaction(SIGBUS, &fake.old_bus, NULL);
}
