/* Runs a command with system calls refused: launcher ERRNO CALL[,CALL...] COMMAND [ARGUMENT...]. Calls: io_uring_setup, mlock, statx,
 * preadv2, fadvise, sched_setaffinity, mbind, linkat and others. Exit 77: no such filter can be installed here. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 16

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"io_uring_setup", SYS_io_uring_setup}, {"mlock", SYS_mlock},      {"statx", SYS_statx}, {"preadv2", SYS_preadv2}, {"fadvise", SYS_fadvise64},
    {"sched_setaffinity", SYS_sched_setaffinity}, {"sched_getaffinity", SYS_sched_getaffinity}, {"mbind", SYS_mbind}, {"clone3", SYS_clone3},
    {"clone", SYS_clone}, {"madvise", SYS_madvise}, {"getrandom", SYS_getrandom}, {"fsync", SYS_fsync}, {"linkat", SYS_linkat},
};

int main(int argc, char **argv) {
    struct sock_filter filter[MOST + 3];
    unsigned short count = 0, refused = 0;
    unsigned numbers[MOST];
    if (argc < 4) return 2;
    for (char *name = strtok(argv[2], ","); name && refused < MOST; name = strtok(NULL, ",")) {
        unsigned short before = refused;
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            if (strcmp(calls[i].name, name) == 0) numbers[refused++] = calls[i].number;
        if (before == refused) return 2;
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned short i = 0; i < refused; i++)
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i], (unsigned char)(refused - i), 0);
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)atoi(argv[1]) & SECCOMP_RET_DATA));
    struct sock_fprog program = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "no seccomp filter here: %s\n", strerror(errno));
        return 77;
    }
    execv(argv[3], argv + 3);
    return 2;
}
