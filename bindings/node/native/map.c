/*
 * The kernel sends SIGBUS to a thread that reads a mapped page which is beyond the end of the file,
 * or which the device cannot read. By default the signal ends the process. The handler here
 * replaces the page, and all later ones of the map, by zeros, marks the map as lost, and lets the
 * thread continue. It passes any other fault to the handler that was installed before.
 *
 * The handler uses only atomics, mmap and signal, which are safe in a signal handler on Linux.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "map.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

/* Maximum number of guarded maps of a process. Further maps work, but are not guarded. */
#define MAX_GUARDED 4096

/* Value of `start` of an entry that is being filled in. */
#define RESERVED 1

typedef struct {
  /* Address of the map; 0 if the entry is free. */
  atomic_uintptr_t start;
  atomic_size_t len;
  _Atomic(nuthatch_map *) map;
} guarded;

static guarded table[MAX_GUARDED];
/* Entries from this index on were never used. */
static atomic_int used;
static struct sigaction previous;
static bool is_installed;
static uintptr_t page_size;

static void call_previous(int number, siginfo_t *info, void *context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    /* When this handler returns, the instruction faults again, or the signal is sent again. */
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number);
  } else {
    previous.sa_handler(number);
  }
}

static void handle(int number, siginfo_t *info, void *context) {
  uintptr_t address = (uintptr_t)info->si_addr;
  /* Signals that a process sent have no address. */
  int count = info->si_code <= 0 ? 0 : atomic_load_explicit(&used, memory_order_acquire);
  for (int i = 0; i < count; i++) {
    uintptr_t start = atomic_load_explicit(&table[i].start, memory_order_acquire);
    size_t len = atomic_load_explicit(&table[i].len, memory_order_relaxed);
    if (start <= RESERVED || address < start || address - start >= len) continue;
    nuthatch_map *map = atomic_load_explicit(&table[i].map, memory_order_relaxed);
    atomic_store_explicit(&map->lost, 1, memory_order_release);
    uintptr_t from = address & ~(page_size - 1);
    int saved = errno;
    void *zeros = mmap((void *)from, start + len - from, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANON | MAP_FIXED | MAP_NORESERVE, -1, 0);
    errno = saved;
    if (zeros != MAP_FAILED) return;
  }
  call_previous(number, info, context);
}

/* Keeps this library loaded: the handler must outlive the thread that loaded the library. */
static bool pin_library(void) {
  Dl_info info;
  return dladdr((void *)handle, &info) != 0 && info.dli_fname != NULL &&
         dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE) != NULL;
}

static void install(void) {
  page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
  struct sigaction action = {0};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  is_installed = pin_library() && sigaction(SIGBUS, &action, &previous) == 0;
}

/* Returns the index of an entry of the table for the map, or -1. */
static int add_guard(nuthatch_map *map) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  if (!is_installed) return -1;
  for (int i = 0; i < MAX_GUARDED; i++) {
    uintptr_t free_entry = 0;
    if (!atomic_compare_exchange_strong(&table[i].start, &free_entry, RESERVED)) continue;
    atomic_store_explicit(&table[i].len, map->len, memory_order_relaxed);
    atomic_store_explicit(&table[i].map, map, memory_order_relaxed);
    int count = atomic_load(&used);
    while (count <= i && !atomic_compare_exchange_weak(&used, &count, i + 1)) continue;
    atomic_store_explicit(&table[i].start, (uintptr_t)map->bytes, memory_order_release);
    return i;
  }
  return -1;
}

nuthatch_map *nuthatch_map_open(int fd, size_t len) {
  nuthatch_map *map = calloc(1, sizeof *map);
  if (map == NULL) return NULL;
  /*
   * JavaScript has no read-only buffers. The pages are private, so a write to a view changes what
   * this process reads, but neither the file nor other processes, and does not end the process.
   */
  void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  if (bytes == MAP_FAILED) {
    /* Systems that count all private pages as used may refuse this for a large file. */
    bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  if (bytes == MAP_FAILED) {
    free(map);
    return NULL;
  }
  map->bytes = bytes;
  map->len = len;
  atomic_init(&map->lost, 0);
  map->guard = add_guard(map);
  return map;
}

void nuthatch_map_close(nuthatch_map *map) {
  if (map->guard >= 0) atomic_store_explicit(&table[map->guard].start, 0, memory_order_release);
  munmap(map->bytes, map->len);
  free(map);
}
