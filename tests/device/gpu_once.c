/* One load in a process of its own, as at the start of a server: from before the process is made until all tensors are on the device, and
 * where the time went. Not run on a GPU yet: compiled, and seen to skip where there is none.
 * usage: gpu_once MODEL     exit 77: no GPU */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "gpu_calls.h"
#include "gpu_measure.h"

#define ROUNDS 5
#define STAGES 7
static const char *const stages[STAGES] = {
    "all", "start", "driver and context", "open and load", "pin (in it)", "reads (in it, a thread)", "copies (in it)"};

/* The process that loads. Its times go to standard output, in ms from `born`. */
static int child(const char *path, double born) {
    HurrayLoaderOptions options = gpu_load_options();
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    double begin = gpu_now();
    if (cudaSetDevice(0) != cudaSuccess || cudaFree(NULL) != cudaSuccess) return 1;
    double context = gpu_now(), took = gpu_load_time(path, &options, &stats, &row);
    if (took == 0) return 1;
    printf("STAGES %f %f %f %f %f %f %f\n", 1e3 * (context + took - born), 1e3 * (begin - born), 1e3 * (context - begin), 1e3 * took,
           (double)atomic_load(&gpu_calls.pin_ns) / 1e6, (double)stats.read_ns / 1e6 / (row.threads ? row.threads : 1),
           (double)stats.copy_ns / 1e6);
    return 0;
}

/* Runs one. 0: its times are in ms[stage][round]. */
static int run(const char *self, const char *path, double ms[STAGES][ROUNDS], size_t round) {
    char text[1024], born[48];
    size_t used = 0;
    int ends[2], status = 1;
    if (pipe(ends) != 0) return 1;
    snprintf(born, sizeof born, "%.9f", gpu_now());
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]), close(ends[1]);
        execl(self, self, path, born, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    for (ssize_t n; used < sizeof text - 1 && (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0;) used += (size_t)n;
    text[used] = 0;
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return printf("WRONG a load by itself:\n%s", text), 1;
    const char *at = strstr(text, "STAGES ");
    char *next = NULL;
    if (!at) return printf("WRONG no times came\n"), 1;
    at += strlen("STAGES ");
    for (size_t s = 0; s < STAGES; s++, at = next) ms[s][round] = strtod(at, &next);
    return 0;
}

int main(int argc, char **argv) {
    static double ms[STAGES][ROUNDS];
    int count = 0;
    if (argc == 3) return child(argv[1], atof(argv[2]));
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) return printf("SKIP: no GPU: %s (%d)\n", cudaGetErrorName(code), (int)code), 77;
    if (argc != 2) return fprintf(stderr, "usage: gpu_once MODEL\n"), 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int round = -1; round < ROUNDS; round++) /* the first one warms up and does not count */
        if (run("/proc/self/exe", argv[1], ms, round < 0 ? 0 : (size_t)round)) return 1;
    for (size_t s = 0; s < STAGES; s++) {
        double middle = gpu_median(ms[s], ROUNDS);
        printf("  %-26s %9.1f ms  (%.1f to %.1f)\n", stages[s], middle, ms[s][0], ms[s][ROUNDS - 1]);
    }
    printf("RESULT one load, from before its process to all tensors: %.0f ms, of it %.0f for driver and context\n", ms[0][ROUNDS / 2],
           ms[2][ROUNDS / 2]);
    return 0;
}
