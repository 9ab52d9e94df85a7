/* How much of a file is in the page cache: a warm file is read through it or mapped, a cold one directly. */
#ifndef HRY_CPU_PAGE_CACHE_H
#define HRY_CPU_PAGE_CACHE_H

#include <stdint.h>

/* 0 to 100, or -1 where the system does not tell. Exact and without side effects on Linux 6.5 and later; before, from a
 * few probes, each of which may begin a small read-ahead. A piece behind the end of the file is cold. */
int hry_page_cache_percent(int fd, uint64_t offset, uint64_t len);

/* The probing way, for kernels without the call. */
int hry_page_cache_probe(int fd, uint64_t offset, uint64_t len);

#endif
