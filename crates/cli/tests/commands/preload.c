/* Loaded before the command (LD_PRELOAD). Each environment variable changes one thing:
 *   PRELOAD_TRUNCATE=PATH, PRELOAD_LEN=BYTES: truncates the file as soon as it is mapped.
 *   PRELOAD_PROC=FOLDER: opens FOLDER/x in place of /proc/x, if it exists.
 *   PRELOAD_STALL=PATH: writes to item files of a disk tier wait while the file PATH exists.
 *   PRELOAD_PEAK=PATH: writes the peak of resident memory in KiB to the file when the process
 *     ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void truncate_if_chosen(int fd) {
    const char *path = getenv("PRELOAD_TRUNCATE"), *len = getenv("PRELOAD_LEN");
    struct stat mapped, chosen;
    if (path == NULL || len == NULL || fstat(fd, &mapped) != 0 || stat(path, &chosen) != 0) return;
    if (mapped.st_ino != chosen.st_ino || mapped.st_dev != chosen.st_dev) return;
    if (truncate(path, atol(len)) != 0) abort();
}

static void *map(void *at, size_t len, int access, int flags, int fd, off_t offset) {
    void *mapped = (void *)syscall(SYS_mmap, at, len, access, flags, fd, offset);
    if (mapped != MAP_FAILED && (flags & MAP_ANONYMOUS) == 0) truncate_if_chosen(fd);
    return mapped;
}

void *mmap(void *at, size_t len, int access, int flags, int fd, off_t offset) {
    return map(at, len, access, flags, fd, offset);
}

void *mmap64(void *at, size_t len, int access, int flags, int fd, off64_t offset) {
    return map(at, len, access, flags, fd, offset);
}

static int open_or_replace(const char *path, int flags, mode_t mode) {
    const char *folder = getenv("PRELOAD_PROC");
    char other[4096];
    if (folder != NULL && strncmp(path, "/proc/", 6) == 0) {
        snprintf(other, sizeof other, "%s/%s", folder, path + 6);
        if (access(other, R_OK) == 0) path = other;
    }
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return open_or_replace(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return open_or_replace(path, flags, mode);
}

static void wait_if_stalled(int fd) {
    const char *stall = getenv("PRELOAD_STALL");
    char link[64], path[4096];
    if (stall == NULL) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0) return;
    path[len] = 0;
    if (strstr(path, "/items-") == NULL) return;
    while (access(stall, F_OK) == 0) usleep(1000);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) {
    wait_if_stalled(fd);
    return syscall(SYS_pwrite64, fd, bytes, len, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t offset) {
    wait_if_stalled(fd);
    return syscall(SYS_pwrite64, fd, bytes, len, offset);
}

__attribute__((destructor)) static void write_peak(void) {
    const char *path = getenv("PRELOAD_PEAK");
    FILE *status = path == NULL ? NULL : fopen("/proc/self/status", "r");
    FILE *peak = status == NULL ? NULL : fopen(path, "w");
    char line[256];
    while (peak != NULL && fgets(line, sizeof line, status) != NULL) {
        unsigned long kib;
        if (sscanf(line, "VmHWM: %lu kB", &kib) == 1) fprintf(peak, "%lu", kib);
    }
    if (peak != NULL) fclose(peak);
    if (status != NULL) fclose(status);
}
