/*
 * Maps of files, which keep the process alive when a page cannot be read. Functions are safe to
 * call from any thread, but a map belongs to one.
 */
#ifndef NUTHATCH_MAP_H
#define NUTHATCH_MAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nuthatch_map {
  uint8_t *bytes;
  size_t len;
  /* Not 0 if a page could not be read: zeros took the place of it and of all later pages. */
  _Atomic int32_t lost;
  /* Index in the table of the signal handler, or -1 if the map is not guarded. */
  int guard;
} nuthatch_map;

/* Maps `len` bytes, at least one, of an open file. Returns NULL and sets `errno` on failure. */
nuthatch_map *nuthatch_map_open(int fd, size_t len);

/* Unmaps the file and frees the map. */
void nuthatch_map_close(nuthatch_map *map);

#endif
