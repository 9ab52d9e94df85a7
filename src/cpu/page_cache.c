#include "cpu/page_cache.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cpu/system.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on every architecture */
#endif

#define PROBES 32u

/* The kernel's own structs, of which C libraries before 2.40 know nothing. */
typedef struct Range {
    uint64_t offset, len;
} Range;
typedef struct Cached {
    uint64_t cache, dirty, writeback, evicted, recently_evicted;
} Cached;

/* len cut to what the file has. */
static uint64_t inside_file(int fd, uint64_t offset, uint64_t len) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return len;
    uint64_t size = (uint64_t)st.st_size, left = offset < size ? size - offset : 0;
    return len < left ? len : left;
}

int hry_page_cache_probe(int fd, uint64_t offset, uint64_t len) {
    unsigned cached = 0;
    len = inside_file(fd, offset, len);
    if (len == 0) return 0;
    uint64_t probes = len / hry_page_size() + 1;
    if (probes > PROBES) probes = PROBES;
    for (uint64_t i = 0; i < probes; i++) {
        char byte;
        struct iovec piece = {&byte, 1};
        ssize_t n = preadv2(fd, &piece, 1, (off_t)(offset + len / probes * i), RWF_NOWAIT);
        if (n < 0 && errno != EAGAIN) return -1;
        cached += n > 0;
    }
    return (int)(cached * 100 / probes);
}

int hry_page_cache_percent(int fd, uint64_t offset, uint64_t len) {
    uint64_t page = hry_page_size();
    Cached cached = {0};
    len = inside_file(fd, offset, len);
    if (len == 0) return 0;
    Range range = {offset, len};
    if (syscall(SYS_cachestat, fd, &range, &cached, 0) != 0) return hry_page_cache_probe(fd, offset, len);
    uint64_t pages = (offset + len - 1) / page - offset / page + 1;
    if (cached.cache >= pages) return 100;
    return (int)(pages > UINT64_MAX / 100 ? cached.cache / (pages / 100) : cached.cache * 100 / pages);
}
