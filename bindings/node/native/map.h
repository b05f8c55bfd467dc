/*
 * Read-only maps of files, which keep the process alive when a page cannot be read.
 *
 * A map is freed when its last reference is released. Functions are safe to call from any thread.
 */
#ifndef NUTHATCH_MAP_H
#define NUTHATCH_MAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nuthatch_map {
  uint8_t *bytes;
  size_t len;
  atomic_int references;
  /* Not 0 if a page could not be read: zeros took the place of it and of all later pages. */
  _Atomic int32_t lost;
  /* Index in the table of the signal handler, or -1 if the map is not guarded. */
  int guard;
} nuthatch_map;

/* Maps `len` bytes, at least one, of an open file. Returns NULL and sets `errno` on failure. */
nuthatch_map *nuthatch_map_open(int fd, size_t len);

/* Adds a reference. */
void nuthatch_map_retain(nuthatch_map *map);

/* Releases a reference. */
void nuthatch_map_release(nuthatch_map *map);

#endif
