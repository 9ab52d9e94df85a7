/* What this process has in memory, as the kernel counts it. */
#ifndef HRY_TESTS_RESIDENT_H
#define HRY_TESTS_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

/* A line of /proc/self/status that is given in kB: VmRSS, VmHWM, RssAnon, RssFile. 0: it is not there. */
uint64_t resident_bytes(const char *line);
/* VmHWM starts again from what is there now. False: not possible here. */
bool resident_reset_peak(void);
/* Memory that the machine can still give, page cache that can go included. 0: not known. */
uint64_t resident_available(void);

#endif
