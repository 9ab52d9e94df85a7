/* What the files of the stand-in share. `fake.lock` guards everything but what is marked as a thread's own. */
#ifndef HRY_TESTS_FAKE_INSIDE_H
#define HRY_TESTS_FAKE_INSIDE_H

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include "cuda/api.h"
#include "cuda/fake_cuda.h"

#define FAKE_DEVICES 4
#define FAKE_PAGE 4096u

typedef enum FakeMemory { FAKE_DEVICE, FAKE_MANAGED, FAKE_REGISTERED, FAKE_HOST } FakeMemory;

typedef struct FakeBlock {
    FakeMemory kind;
    int device;
    uintptr_t base;   /* the address the program knows: aligned to 256 bytes and no more, as the runtime promises */
    uint8_t *map;     /* the mapping that holds it */
    size_t size, mapped;
    uint8_t *alias;   /* where the stand-in reads and writes */
    uint8_t *written; /* a bit per byte; device memory */
    bool live, caller; /* caller: not the library's */
    unsigned pending; /* copies enqueued and not run that touch it */
} FakeBlock;

typedef enum FakeHandleKind { FAKE_CONTEXT = 1, FAKE_STREAM, FAKE_EVENT } FakeHandleKind;

typedef enum FakeOpKind { FAKE_OP_COPY, FAKE_OP_RECORD, FAKE_OP_WAIT } FakeOpKind;

struct FakeHandle;
typedef struct FakeOp {
    FakeOpKind kind;
    struct FakeHandle *of; /* wait: the stream to wait for */
    size_t position;       /* wait: this many of its ops */
    uint8_t *to;           /* copy: in the alias */
    const uint8_t *from;
    uint8_t *snapshot;     /* copy from pageable memory: the bytes, taken inside the call */
    FakeBlock *target, *source;
    size_t offset, len;    /* copy: in the target */
    uint64_t hash;
    bool pending;          /* copy: not yet run, its source pages read-only */
} FakeOp;

typedef struct FakeHandle {
    FakeHandleKind kind;
    int device;
    bool live, caller, handed_out, stop;
    unsigned asked; /* queries in a row that answered "not ready" */
    /* stream */
    FakeOp **ops;
    size_t count, capacity, run;
    pthread_t thread;
    bool has_thread;
    /* event */
    struct FakeHandle *recorded_on;
    size_t position;
} FakeHandle;

typedef struct FakeContextState {
    unsigned retained;
    int dead; /* the sticky code */
    uint64_t engine_free_ns;
    FakeHandle *handle;
} FakeContextState;

typedef struct FakeFailure {
    bool armed, onward, happened;
    FakeCall call;
    uint64_t n, seen;
    int code;
    uint64_t copy_n, copies_seen; /* failures of running copies */
    int copy_code;
} FakeFailure;

typedef struct FakeRuntime {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    FakeSettings settings;
    char test[128];
    pid_t pid;
    unsigned generation;
    bool open;
    uint64_t random;
    FakeBlock **blocks;
    size_t block_count, block_capacity;
    FakeHandle **handles;
    size_t handle_count, handle_capacity;
    uintptr_t handle_base;
    FakeOp **pending; /* copies whose source pages are read-only, for the fault handler too */
    size_t pending_count, pending_capacity;
    FakeContextState contexts[FAKE_DEVICES];
    FakeHandle *legacy[FAKE_DEVICES], *per_thread;
    pthread_t per_thread_owner;
    FakeFailure failure;
    FakeCounts counts;
    int64_t pushed; /* over all threads */
    uint64_t fills;
    uint64_t same_answers, errors_in_a_row; /* a query's same handle and answer in a row; failures of cudaGetLastError in a row */
    const void *asked_handle;
    int asked_code;
    struct sigaction old_segv, old_bus;
    size_t threads_before, files_before;
} FakeRuntime;

typedef struct FakeThread {
    unsigned generation;
    int last_error, capture_mode;
    unsigned depth;
    int stack[16], mode_at_push[16];
    bool mode_excused;
    int locks; /* of the ring, held */
    int sticky_seen; /* bit per device: this thread has been told */
} FakeThread;

extern FakeRuntime fake;
FakeThread *fake_thread(void);

_Noreturn void fake_report(int check, const char *call, const void *handle, const char *format, ...) __attribute__((format(printf, 4, 5)));
uint64_t fake_random(void);
uint64_t fake_now_ns(void);
uint64_t fake_hash(const uint8_t *bytes, size_t len);

/* ---- memory; lock held ---- */
FakeBlock *fake_block_new(FakeMemory kind, int device, size_t size);          /* device and host memory */
FakeBlock *fake_block_register(void *memory, size_t size);                    /* NULL: overlaps another one */
FakeBlock *fake_block_find(const void *memory, bool host, bool dead_too);     /* that holds the address; the newest first */
void fake_block_release(FakeBlock *block);
void fake_blocks_drop_all(void);
void fake_block_mark(FakeBlock *block, size_t offset, size_t len);
void fake_block_forget(FakeBlock *block, size_t offset, size_t len); /* device memory */
bool fake_block_is_written(const FakeBlock *block, size_t offset, size_t len, size_t *first);
void fake_protect(FakeOp *op);
void fake_unprotect(FakeOp *op);
void fake_faults_install(void);
void fake_faults_remove(void);

/* ---- order; lock held ---- */
FakeHandle *fake_handle_new(FakeHandleKind kind, int device);
void *fake_handle_name(const FakeHandle *handle);
FakeHandle *fake_handle_find(const void *name, FakeHandleKind kind, const char *call); /* reports what is no live handle */
FakeHandle *fake_stream_find(const void *name, int device, const char *call);          /* the special streams too */
void fake_enqueue(FakeHandle *stream, const FakeOp *op);
void fake_run_until(FakeHandle *stream, size_t position); /* lazy, eager, random: runs it; threaded: waits for it */
bool fake_stream_is_done(const FakeHandle *stream, size_t position);
void fake_run_some(void); /* random */
void fake_context_kill(int device, int code);
void fake_stream_stop(FakeHandle *stream);
void fake_handles_drop_all(void);

#endif
