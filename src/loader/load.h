/* One load while it runs. The loading thread owns all of it; workers see jobs only.
 *
 *   start    items are begun in file order, their destinations allocated
 *   feed     windows are asked for, cut into pieces, joined into jobs, submitted
 *   reap     finished jobs: windows committed, sums compared
 *   freeze   whole items become tensors, delivered or put into the set
 *
 * The first failing item in file order decides: `limit` falls to it, items from there on are dropped as their jobs come back, those
 * before it go on, and may lower it further. */
#ifndef HRY_LOADER_LOAD_H
#define HRY_LOADER_LOAD_H

#include "loader/budget.h"
#include "loader/io.h"
#include "loader/progress.h"
#include "loader/set.h"
#include "loader/work.h"

#define HRY_MAX_ACTIVE 20480u                   /* items begun and not done: more than fit a 4 MiB staging slot at 256 bytes each */
#define HRY_MAX_UNFED 64u                       /* items that windows are asked for at the same time */
#define HRY_CONVERT_BYTES (UINT64_C(256) << 10) /* what a byte source takes at most */

typedef struct HryItem HryItem;

/* A window that is out: obtained, cut into pieces, committed when all came back. */
typedef struct HryOpenWindow {
    struct HryOpenWindow *next; /* in the free list */
    HryItem *item;
    uint32_t buffer, pieces; /* pieces that are out */
    uint64_t given;          /* bytes that pieces were made for */
    bool prefilled, failed;
    HurrayWindow window;
} HryOpenWindow;

typedef struct HryLoadFill {
    HryOpenWindow *current; /* not wholly cut yet */
    uint64_t asked, done;
    uint32_t open; /* windows out */
    bool check;
    uint32_t sum, stored;
} HryLoadFill;

struct HryItem {
    HryItem *previous, *next; /* active, in file order */
    HryItem *next_frozen;     /* waiting to be frozen */
    size_t order;
    const HryPlaced *placed;
    const HryEntry *entry;
    HryLoaderSource *source;
    HryIo *io;
    size_t target;
    HryItemDestinations to;
    HryLoadFill *fills;
    uint32_t fill_count, feeding; /* the first buffer that still wants windows */
    uint32_t open;                /* pieces out, all buffers */
    HryByteSource *bytes;
    bool converting, allocated, fed, queued, waiting; /* waiting: a freeze has answered WAIT */
};

typedef struct HryLoad {
    HurrayLoader *loader;
    HurrayAllocator allocator;
    HryWork *work;
    HryIo *ios; /* one a source */
    uint32_t io_count;
    HurrayTensorSet *set;
    HryBudget budget;
    HryProgress progress;
    HurrayError error;
    bool failed, stopped; /* stopped: cancelled or a callback's wish; nothing goes on */
    bool blocked;         /* in this round: a destination answered WAIT, or there is no room for more items */
    size_t next, limit;   /* next item to begin, first that is not wanted */
    size_t error_order;
    HryItem *first, *last, *unfed; /* active; unfed: the first that may want windows */
    size_t active;
    HryItem *frozen_first, *frozen_last;
    HryOpenWindow *free_windows;
    HryItem *free_items;
    HryJob *free_jobs, *building;
    uint32_t jobs_out, depth;
    uint64_t reading_since, reading_ns; /* time with a job out */
    uint64_t chunk, begin_ns;
    char ring_reason[HRY_REASON_BYTES];
    uint64_t read_ns, verify_ns, wait_ns, in_place, verified, moved, ranges; /* sums for the statistics */
} HryLoad;

/* load_item.c */
bool hry_load_wants_mapping(const HryLoad *load, uint64_t tensor); /* is it to be handed out where the file is mapped? */
HurrayStatus hry_load_begin_item(HryLoad *load, HryItem **out);
void hry_load_end_item(HryLoad *load, HryItem *item);  /* out of the active ones; what it held is gone or handed out */
void hry_load_drop_item(HryLoad *load, HryItem *item); /* discards, then ends */
void hry_load_fail(HryLoad *load, HryItem *item, const HurrayError *error);
void hry_load_stop(HryLoad *load, const HurrayError *error);
void hry_load_free_pools(HryLoad *load);
HryOpenWindow *hry_load_new_window(HryLoad *load);
void hry_load_free_window(HryLoad *load, HryOpenWindow *window);
HryJob *hry_load_new_job(HryLoad *load);
void hry_load_free_job(HryLoad *load, HryJob *job);

/* load_feed.c: each true when something was done */
bool hry_load_feed(HryLoad *load);
void hry_load_submit(HryLoad *load); /* the job that is being built */
bool hry_load_add_piece(HryLoad *load, HryOpenWindow *window, const HryPlanPiece *piece);

/* load_reap.c */
bool hry_load_reap(HryLoad *load);
bool hry_load_freeze(HryLoad *load, bool again);
void hry_load_if_whole(HryLoad *load, HryItem *item);                 /* then it is to be frozen */
void hry_load_buffer_whole(HryLoad *load, HryItem *item, uint32_t k); /* compares its sum */

/* stats.c */
void hry_stats_begin(HurrayLoader *loader);
void hry_stats_end(HryLoad *load, uint64_t total_ns);
HryPath *hry_load_path(HryLoad *load, const HryItem *item, uint32_t k); /* the row that buffer k counts in; NULL: none */
void hry_load_trace_copies(HryLoad *load);
void hry_load_trace(HryLoad *load, uint32_t stage, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes, uint64_t tensor, uint32_t source,
                    uint32_t lane);

#endif
