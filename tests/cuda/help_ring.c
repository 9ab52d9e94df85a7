#include "cuda/help_ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda/api.h"

#define SLOTS 4u
#define SLOT ((size_t)16 << 10)
#define WINDOWS 13u
#define TAIL ((size_t)5000)
#define BYTES ((WINDOWS - 1) * SLOT + TAIL)

static const struct {
    const char *name;
    int check;
    RingMode mode;
} bugs[RING_BUGS] = {
    [RING_CORRECT] = {"correct", -1, RING_PRODUCER_SYNCED},
    [RING_REFILLS_BEFORE_EVENT] = {"slot refilled before its event", FAKE_CHECK_SOURCE_CHANGED, RING_PRODUCER_SYNCED},
    [RING_RECORDS_BEFORE_COPY] = {"event recorded before the copy", FAKE_CHECK_SOURCE_CHANGED, RING_PRODUCER_SYNCED},
    [RING_FREES_WITH_COPIES_PENDING] = {"pool freed with copies pending", FAKE_CHECK_FREED_PENDING, RING_EVENT},
    [RING_NO_HOST_WAIT] = {"no host wait, producer-synced", FAKE_CHECK_UNWRITTEN, RING_PRODUCER_SYNCED},
    [RING_LEAVES_NOT_READY] = {"not-ready left as last error", FAKE_CHECK_LAST_ERROR, RING_PRODUCER_SYNCED},
    [RING_IGNORES_COPY_CODE] = {"copy's code ignored", FAKE_CHECK_UNWRITTEN, RING_PRODUCER_SYNCED},
    [RING_WAITS_ON_WRONG_STREAM] = {"wait put on the wrong stream", FAKE_CHECK_UNWRITTEN, RING_CONSUMER_STREAM},
    [RING_JOINS_ONE_OF_TWO_STREAMS] = {"two streams, one joined", FAKE_CHECK_UNWRITTEN, RING_CONSUMER_STREAM},
    [RING_DESTROYS_EVENT_AT_HAND_OFF] = {"event destroyed at hand-off", FAKE_CHECK_DESTROYED, RING_EVENT},
    [RING_NOT_PINNED] = {"not pinned", FAKE_CHECK_PINNED, RING_PRODUCER_SYNCED},
    [RING_STORES_TO_DEVICE] = {"host store to device address", FAKE_CHECK_HOST_ACCESS, RING_PRODUCER_SYNCED},
    [RING_OTHER_DEVICE_CURRENT] = {"other device current", FAKE_CHECK_CONTEXT, RING_PRODUCER_SYNCED},
    [RING_TAIL_COPIES_WHOLE_SLOT] = {"tail window copies whole slot", FAKE_CHECK_RANGE, RING_PRODUCER_SYNCED},
    [RING_REFUSED_PIN_LEAVES_ERROR] = {"refused pin leaves last error", FAKE_CHECK_LAST_ERROR, RING_PRODUCER_SYNCED},
    [RING_LEAKS_EVENT] = {"event leaked", FAKE_CHECK_LEFT, RING_PRODUCER_SYNCED},
    [RING_QUERIES_BEFORE_RECORDING] = {"event queried before recording", FAKE_CHECK_UNRECORDED, RING_PRODUCER_SYNCED},
    [RING_HANDS_OUT_UNRECORDED] = {"event handed out unrecorded", FAKE_CHECK_UNRECORDED, RING_EVENT},
    [RING_LOOPS_ON_DEAD_CONTEXT] = {"dead context, loop waits", FAKE_CHECK_AFTER_STICKY, RING_PRODUCER_SYNCED},
    [RING_COPIES_NOTHING] = {"copy of zero bytes", FAKE_CHECK_ZERO, RING_PRODUCER_SYNCED},
    [RING_WRONG_KIND] = {"copy of the wrong kind", FAKE_CHECK_KIND, RING_PRODUCER_SYNCED},
    [RING_FREES_TWICE] = {"device memory freed twice", FAKE_CHECK_USE_AFTER_FREE, RING_PRODUCER_SYNCED},
    [RING_COPIES_TO_FREED] = {"copy to freed memory", FAKE_CHECK_USE_AFTER_FREE, RING_PRODUCER_SYNCED},
    [RING_RECORDS_ON_OTHER_DEVICE] = {"event of another device recorded", FAKE_CHECK_WRONG_DEVICE, RING_PRODUCER_SYNCED},
    [RING_RECORDS_HANDED_OUT] = {"handed-out event recorded again", FAKE_CHECK_RECORDED_AGAIN, RING_EVENT},
    [RING_WAITS_FOR_NO_DRIVER] = {"waits for the last error to go without a driver", FAKE_CHECK_ENDLESS, RING_PRODUCER_SYNCED},
    [RING_CALLS_FROM_CHILD] = {"call from a forked child", FAKE_CHECK_FORK, RING_PRODUCER_SYNCED},
    [RING_PINS_ABOVE_CAP] = {"pins above the cap", FAKE_CHECK_CAP, RING_PRODUCER_SYNCED},
    [RING_WAITS_LOCKED] = {"a wait while the lock is held", FAKE_CHECK_LOCKED, RING_PRODUCER_SYNCED},
    [RING_USES_STREAM_2_ELSEWHERE] = {"stream 2 from another thread", FAKE_CHECK_PER_THREAD_STREAM, RING_CONSUMER_STREAM},
    [RING_NO_GUARD] = {"calls without a context pushed", FAKE_CHECK_CONTEXT, RING_PRODUCER_SYNCED},
    [RING_NO_POP] = {"context left pushed", FAKE_CHECK_CONTEXT, RING_PRODUCER_SYNCED},
    [RING_LEAVES_CAPTURE_MODE] = {"capture mode left changed", FAKE_CHECK_CONTEXT, RING_PRODUCER_SYNCED},
    [RING_UNMAPS_BEFORE_UNREGISTER] = {"unmapped while registered", FAKE_CHECK_FREED_PENDING, RING_PRODUCER_SYNCED},
    [RING_LEAKS_DEVICE_MEMORY] = {"device memory leaked", FAKE_CHECK_LEFT, RING_PRODUCER_SYNCED},
    [RING_LEAKS_CONTEXT] = {"context leaked", FAKE_CHECK_LEFT, RING_PRODUCER_SYNCED},
    [RING_LEAKS_DESCRIPTOR] = {"descriptor leaked", FAKE_CHECK_LEFT, RING_PRODUCER_SYNCED},
    [RING_SKIPS_A_WINDOW] = {"a window never copied", FAKE_CHECK_UNWRITTEN, RING_PRODUCER_SYNCED},
    [RING_WRITES_WRONG_BYTES] = {"a window filled with another's bytes", FAKE_CHECK_BYTES, RING_PRODUCER_SYNCED},
};

const char *ring_bug_name(RingBug bug) { return bugs[bug].name; }
int ring_bug_check(RingBug bug) { return bugs[bug].check; }
RingMode ring_bug_mode(RingBug bug) { return bugs[bug].mode; }

typedef struct Ring {
    const HryCudaApi *api;
    RingBug bug;
    RingMode mode;
    void *context, *other, *streams[2], *events[SLOTS], *consumer, *wrong;
    bool recorded[SLOTS];
    unsigned stream_of[SLOTS];
    uint8_t *memory, *want, *device;
} Ring;

/* A ring that fails where it has no bug is a fault of the stand-in. */
static void must(int code, const char *what) {
    if (code == 0) return;
    fprintf(stderr, "ring: %s answers %d\n", what, code);
    _exit(97);
}

static void enter(Ring *ring) {
    int mode = HRY_CUDA_CAPTURE_RELAXED;
    if (ring->bug == RING_NO_GUARD) return;
    must(ring->api->push_context(ring->bug == RING_OTHER_DEVICE_CURRENT && ring->device ? ring->other : ring->context), "push");
    must(ring->api->exchange_capture_mode(&mode), "exchange");
}

static void leave(Ring *ring) {
    int mode = 0;
    void *context;
    if (ring->bug == RING_NO_GUARD || (ring->bug == RING_NO_POP && ring->device)) return;
    if (ring->bug != RING_LEAVES_CAPTURE_MODE) ring->api->exchange_capture_mode(&mode);
    must(ring->api->pop_context(&context), "pop");
}

static int query(Ring *ring, void *event) {
    int code = ring->api->event_query(event);
    if (code != 0 && ring->bug != RING_LEAVES_NOT_READY) ring->api->get_last_error();
    return code;
}

/* By asking and sleeping, as the real ring. */
static void wait_for(Ring *ring, unsigned slot) {
    if (!ring->recorded[slot] && ring->bug != RING_QUERIES_BEFORE_RECORDING) return;
    for (;;) {
        int code = query(ring, ring->events[slot]);
        if (code == 0) return;
        if (code != HRY_CUDA_NOT_READY && ring->bug != RING_LOOPS_ON_DEAD_CONTEXT) return;
        nanosleep(&(struct timespec){0, 20000}, NULL);
    }
}

static void pin(Ring *ring) {
    ring->memory = mmap(NULL, SLOTS * SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring->bug == RING_NOT_PINNED) return;
    if (ring->bug == RING_REFUSED_PIN_LEAVES_ERROR) fake_cuda_fail(FAKE_host_register, 1, false, 801);
    if (ring->bug == RING_REFUSED_PIN_LEAVES_ERROR && ring->api->host_register(ring->memory, SLOTS * SLOT) == 0) _exit(97);
    must(ring->api->host_register(ring->memory, SLOTS * SLOT), "register");
}

static void send(Ring *ring, unsigned window) {
    unsigned slot = window % SLOTS, lane = ring->bug == RING_JOINS_ONE_OF_TWO_STREAMS ? window % 2 : 0;
    size_t len = window + 1 == WINDOWS && ring->bug != RING_TAIL_COPIES_WHOLE_SLOT ? TAIL : SLOT;
    uint8_t *from = ring->memory + slot * SLOT, *to = ring->device + window * SLOT;
    if (ring->bug == RING_RECORDS_BEFORE_COPY) must(ring->api->event_record(ring->events[slot], ring->streams[lane]), "record");
    if (ring->bug != RING_SKIPS_A_WINDOW || window != 5) {
        int code = ring->api->memcpy_async(to, from, ring->bug == RING_COPIES_NOTHING ? 0 : len, ring->bug == RING_WRONG_KIND ? 2 : HRY_CUDA_COPY_TO_DEVICE, ring->streams[lane]);
        if (code != 0) ring->api->get_last_error();
        if (code != 0 && ring->bug != RING_IGNORES_COPY_CODE && ring->bug != RING_LOOPS_ON_DEAD_CONTEXT) must(code, "copy");
    }
    if (ring->bug == RING_RECORDS_BEFORE_COPY) ring->recorded[slot] = true;
    if (ring->bug != RING_RECORDS_BEFORE_COPY && ring->bug != RING_HANDS_OUT_UNRECORDED) {
        int code = ring->api->event_record(ring->events[slot], ring->streams[lane]);
        if (code != 0) ring->api->get_last_error();
        ring->recorded[slot] = true;
    }
    ring->stream_of[slot] = lane;
}

static void fill(Ring *ring) {
    for (unsigned window = 0; window < WINDOWS; window++) {
        unsigned slot = window % SLOTS;
        size_t len = window + 1 == WINDOWS ? TAIL : SLOT;
        enter(ring);
        if (ring->bug == RING_WAITS_LOCKED && window == 6) hry_cuda_tell_lock(1);
        if (ring->bug != RING_REFILLS_BEFORE_EVENT && ring->bug != RING_HANDS_OUT_UNRECORDED) wait_for(ring, slot);
        if (ring->bug == RING_HANDS_OUT_UNRECORDED) fake_cuda_run_all();
        leave(ring);
        memcpy(ring->memory + slot * SLOT, ring->want + (ring->bug == RING_WRITES_WRONG_BYTES && window == 7 ? 6 : window) * SLOT, len);
        if (ring->bug == RING_STORES_TO_DEVICE && window == 3) memcpy(ring->device + window * SLOT, ring->want, len);
        enter(ring);
        send(ring, window);
        leave(ring);
    }
}

static void *wait_elsewhere(void *argument) {
    Ring *ring = argument;
    enter(ring);
    must(ring->api->stream_wait_event(HRY_CUDA_STREAM_PER_THREAD, ring->events[(WINDOWS - 1) % SLOTS]), "wait");
    leave(ring);
    return NULL;
}

static void hand_off(Ring *ring) {
    unsigned last = (WINDOWS - 1) % SLOTS, before = (WINDOWS - 2) % SLOTS;
    pthread_t thread;
    if (ring->mode == RING_PRODUCER_SYNCED) {
        enter(ring);
        for (unsigned slot = 0; slot < SLOTS && ring->bug != RING_NO_HOST_WAIT; slot++) wait_for(ring, slot);
        leave(ring);
        fake_cuda_expect_now(ring->device, ring->want, BYTES);
    } else if (ring->mode == RING_EVENT) {
        enter(ring);
        if (ring->bug == RING_DESTROYS_EVENT_AT_HAND_OFF) must(ring->api->event_destroy(ring->events[last]), "destroy");
        leave(ring);
        if (ring->bug == RING_FREES_WITH_COPIES_PENDING) return;
        fake_cuda_expect_after(ring->events[last], ring->device, ring->want, BYTES);
        enter(ring);
        if (ring->bug == RING_RECORDS_HANDED_OUT) must(ring->api->event_record(ring->events[last], ring->streams[0]), "record");
        for (unsigned slot = 0; slot < SLOTS; slot++) wait_for(ring, slot);
        leave(ring);
    } else {
        if (ring->bug == RING_USES_STREAM_2_ELSEWHERE) {
            fake_cuda_own_stream_2();
            pthread_create(&thread, NULL, wait_elsewhere, ring);
            pthread_join(thread, NULL);
        }
        enter(ring);
        must(ring->api->stream_wait_event(ring->bug == RING_WAITS_ON_WRONG_STREAM ? ring->wrong : ring->consumer, ring->events[last]), "wait");
        if (ring->stream_of[before] != ring->stream_of[last] && ring->bug != RING_JOINS_ONE_OF_TWO_STREAMS)
            must(ring->api->stream_wait_event(ring->consumer, ring->events[before]), "wait");
        leave(ring);
        fake_cuda_expect_on(ring->consumer, ring->device, ring->want, BYTES);
        enter(ring);
        for (unsigned slot = 0; slot < SLOTS; slot++) wait_for(ring, slot);
        leave(ring);
    }
}

static void tear_down(Ring *ring) {
    const HryCudaApi *api = ring->api;
    enter(ring);
    for (unsigned i = 0; i < SLOTS; i++)
        if (ring->bug != RING_LEAKS_EVENT || i != 2) must(api->event_destroy(ring->events[i]), "destroy event");
    for (unsigned i = 0; i < 2; i++) must(api->stream_destroy(ring->streams[i]), "destroy stream");
    if (ring->bug == RING_UNMAPS_BEFORE_UNREGISTER) munmap(ring->memory, SLOTS * SLOT);
    if (ring->bug != RING_NOT_PINNED) must(api->host_unregister(ring->memory), "unregister");
    munmap(ring->memory, SLOTS * SLOT);
    if (ring->bug != RING_LEAKS_DEVICE_MEMORY) must(api->free_device(ring->device), "free");
    if (ring->bug == RING_FREES_TWICE) must(api->free_device(ring->device), "free");
    leave(ring);
    if (ring->bug != RING_LEAKS_CONTEXT) must(api->primary_release(0), "release");
    if (ring->other) must(api->primary_release(1), "release");
}

static void call_from_child(const HryCudaApi *api) {
    int status, count;
    pid_t child = fork();
    if (child == 0) {
        api->get_device_count(&count);
        _exit(0);
    }
    waitpid(child, &status, 0);
    _exit(WEXITSTATUS(status));
}

static void before_the_ring(Ring *ring, FakeSchedule schedule) {
    const HryCudaApi *api = ring->api;
    int count;
    void *event;
    if (ring->bug == RING_WAITS_FOR_NO_DRIVER) {
        if (api->get_device_count(&count) == 0) _exit(97);
        while (api->get_last_error() != 0) {}
    }
    if (ring->bug == RING_CALLS_FROM_CHILD) call_from_child(api);
    if (ring->bug == RING_OTHER_DEVICE_CURRENT || ring->bug == RING_RECORDS_ON_OTHER_DEVICE) must(api->primary_retain(&ring->other, 1), "retain");
    if (ring->bug == RING_IGNORES_COPY_CODE) fake_cuda_fail(FAKE_memcpy_async, 6, false, 1);
    if (ring->bug == RING_LOOPS_ON_DEAD_CONTEXT) fake_cuda_fail_running_copy(3, 700);
    if (ring->bug == RING_RECORDS_ON_OTHER_DEVICE) {
        must(api->push_context(ring->other), "push");
        must(api->event_create(&event), "event");
        must(api->event_record(event, ring->streams[0]), "record");
    }
    (void)schedule;
}

void ring_run(RingBug bug, RingMode mode, FakeSchedule schedule, uint64_t seed) {
    FakeSettings settings = {.schedule = schedule, .seed = seed, .devices = 2, .not_ready = 1 + (unsigned)(seed % 5), .no_driver = bug == RING_WAITS_FOR_NO_DRIVER};
    Ring ring = {.bug = bug, .mode = mode};
    char name[128];
    if (schedule == FAKE_THREADED) settings.link_bytes = (uint64_t)400 << 20, settings.gap_ns = 20000;
    if (bug == RING_PINS_ABOVE_CAP) settings.pinned_cap = SLOTS * SLOT - 1;
    snprintf(name, sizeof name, "ring: %s", ring_bug_name(bug));
    fake_cuda_begin(&settings, name);
    ring.api = hry_cuda_api();
    ring.want = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++) ring.want[i] = (uint8_t)((i * 2654435761u + seed) >> 11);
    if (bug == RING_WAITS_FOR_NO_DRIVER) before_the_ring(&ring, schedule);
    must(ring.api->primary_retain(&ring.context, 0), "retain");
    enter(&ring);
    for (unsigned i = 0; i < 2; i++) must(ring.api->stream_create(&ring.streams[i]), "stream");
    for (unsigned i = 0; i < SLOTS; i++) must(ring.api->event_create(&ring.events[i]), "event");
    pin(&ring);
    void *device = NULL;
    must(ring.api->malloc_device(&device, BYTES), "malloc");
    leave(&ring);
    ring.device = device;
    ring.consumer = fake_cuda_stream(0);
    ring.wrong = fake_cuda_stream(0);
    before_the_ring(&ring, schedule);
    if (bug == RING_LEAKS_DESCRIPTOR && open("/dev/null", O_RDONLY) < 0) _exit(97);
    if (bug == RING_COPIES_TO_FREED) {
        enter(&ring);
        must(ring.api->free_device(device), "free");
        leave(&ring);
    }
    fill(&ring);
    hand_off(&ring);
    tear_down(&ring);
    fake_cuda_end();
    free(ring.want);
}
