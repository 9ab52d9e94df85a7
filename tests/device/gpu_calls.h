/* The runtime's calls as the suite sees them: the linker leads the library's calls of these here (--wrap), so that failures can be asked
 * for and what is taken and given back can be counted, without a line of the library being different. */
#ifndef TESTS_DEVICE_GPU_CALLS_H
#define TESTS_DEVICE_GPU_CALLS_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct GpuCalls {
    atomic_int refuse_register; /* cudaHostRegister answers "not supported" */
    atomic_int refuse_alloc;    /* cudaHostAlloc answers "out of memory" */
    atomic_int skip_wait;       /* cudaStreamWaitEvent does nothing: the negative control */
    atomic_int fail_copy;       /* the copy of this number fails; 0: none */
    atomic_int copies;          /* host to device, since it was last set to 0 */
    atomic_long pinned;         /* registrations and pinned allocations that live */
    atomic_long device;         /* device allocations that live */
    atomic_long events;         /* events that live */
    atomic_long streams;        /* streams that live */
    atomic_llong pin_ns;        /* inside cudaHostRegister and cudaHostAlloc */
} GpuCalls;
extern GpuCalls gpu_calls;

/* Looks cuCtxGetCurrent up, once, so that no test thread has to. 0: not found. */
int gpu_calls_begin(void);
/* cuCtxGetCurrent on this thread; NULL: none. */
void *gpu_current_context(void);

#endif
