/* Loaded before the C library (LD_PRELOAD): makes each sync take longer by SLOW_SYNC_US microseconds, as on a slower disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slowed(const char *name, int fd) {
    const char *us = getenv("SLOW_SYNC_US");
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (us != NULL) usleep((useconds_t)atoi(us));
    return sync(fd);
}

int fsync(int fd) { return slowed("fsync", fd); }
int fdatasync(int fd) { return slowed("fdatasync", fd); }
