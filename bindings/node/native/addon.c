/*
 * The functions of the add-on, in Node-API:
 *
 *   open(fd, length) -> map      Maps an open file.
 *   view(map, offset, length) -> ArrayBuffer    Returns bytes of the map without a copy.
 *   lost(map) -> ArrayBuffer     Returns an int32 that is not 0 once a page could not be read.
 *   retire(map)                  Makes the garbage collector look for the map soon.
 *   release(map)                 Retires the map, and ends its use. Its buffers keep it mapped.
 *
 * The garbage collector unmaps a file: when its map and all buffers are unreachable. It counts each
 * buffer as memory of its length, and collects garbage at once when that grows by 64 MiB. Mapped
 * pages are not memory of the process, so `view` subtracts the length again.
 */
#include <errno.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"

/* Identifies values that `open` returned. */
static const napi_type_tag TAG = {0x6e75746861746368, 0x736e617073686f74};

/* Bytes that a map counts as, and those that it counts as in addition when it is retired. */
#define MAP_BYTES (64 << 10)
#define RETIRED_BYTES (48 << 20)

/* A map, which its value in JavaScript and each of its buffers refer to. All are of one thread. */
typedef struct {
  nuthatch_map *map;
  size_t references;
  bool is_retired;
  bool is_released;
} handle;

/* A buffer of a map. */
typedef struct {
  handle *map;
  int64_t len;
} view;

static void count_bytes(napi_env env, int64_t bytes) {
  int64_t all;
  napi_adjust_external_memory(env, bytes, &all);
}

/* Removes a reference. The last one unmaps the file. */
static void unreference(napi_env env, handle *found) {
  if (--found->references > 0) return;
  count_bytes(env, -(int64_t)(MAP_BYTES + (found->is_retired ? RETIRED_BYTES : 0)));
  nuthatch_map_close(found->map);
  free(found);
}

static napi_value fail(napi_env env, const char *code, const char *message) {
  bool is_pending = false;
  napi_is_exception_pending(env, &is_pending);
  if (!is_pending) napi_throw_error(env, code, message);
  return NULL;
}

static void finalize_handle(napi_env env, void *data, void *hint) {
  (void)hint;
  unreference(env, data);
}

static void finalize_view(napi_env env, void *data, void *hint) {
  (void)data;
  view *found = hint;
  count_bytes(env, found->len);
  unreference(env, found->map);
  free(found);
}

/* Returns the arguments of a call, the first of which is a handle; NULL and an error otherwise. */
static handle *arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values) {
  size_t found = count;
  bool is_handle = false;
  void *data = NULL;
  if (napi_get_cb_info(env, info, &found, values, NULL, NULL) != napi_ok || found < count ||
      napi_check_object_type_tag(env, values[0], &TAG, &is_handle) != napi_ok || !is_handle ||
      napi_get_value_external(env, values[0], &data) != napi_ok) {
    fail(env, "ERR_INVALID_ARG_TYPE", "expected a map");
    return NULL;
  }
  if (((handle *)data)->is_released) {
    fail(env, "ERR_INVALID_STATE", "the map was released");
    return NULL;
  }
  return data;
}

static napi_value open_map(napi_env env, napi_callback_info info) {
  napi_value values[2];
  size_t found = 2;
  int32_t fd = -1;
  double len = 0;
  if (napi_get_cb_info(env, info, &found, values, NULL, NULL) != napi_ok || found < 2 ||
      napi_get_value_int32(env, values[0], &fd) != napi_ok ||
      napi_get_value_double(env, values[1], &len) != napi_ok || !(len >= 1 && len <= 0x1p48)) {
    return fail(env, "ERR_INVALID_ARG_VALUE", "expected a descriptor and a length");
  }
  handle *result = calloc(1, sizeof *result);
  if (result == NULL) return fail(env, "ENOMEM", "out of memory");
  result->map = nuthatch_map_open(fd, (size_t)len);
  if (result->map == NULL) {
    int number = errno;
    free(result);
    return fail(env, number == ENOMEM ? "ENOMEM" : "ERR_MAP", strerror(number));
  }
  result->references = 1;
  count_bytes(env, MAP_BYTES);
  napi_value value;
  if (napi_create_external(env, result, finalize_handle, NULL, &value) != napi_ok) {
    unreference(env, result);
    return fail(env, "ERR_MAP", "cannot create a map");
  }
  if (napi_type_tag_object(env, value, &TAG) != napi_ok) {
    return fail(env, "ERR_MAP", "cannot create a map");
  }
  return value;
}

/* Returns a buffer of bytes that belong to the map. */
static napi_value buffer_of(napi_env env, handle *map, void *bytes, size_t len) {
  view *hint = malloc(sizeof *hint);
  if (hint == NULL) return fail(env, "ENOMEM", "out of memory");
  hint->map = map;
  hint->len = (int64_t)len;
  napi_value buffer;
  napi_status status =
      napi_create_external_arraybuffer(env, bytes, len, finalize_view, hint, &buffer);
  if (status == napi_ok) {
    map->references++;
    count_bytes(env, -(int64_t)len);
    return buffer;
  }
  free(hint);
  if (status == napi_no_external_buffers_allowed) {
    return fail(env, "ERR_NO_EXTERNAL_BUFFERS", "this runtime does not allow mapped buffers");
  }
  return fail(env, "ERR_MAP", "cannot create a buffer");
}

static napi_value view_map(napi_env env, napi_callback_info info) {
  napi_value values[3];
  handle *found = arguments(env, info, 3, values);
  if (found == NULL) return NULL;
  double at = -1;
  double len = 0;
  double end = (double)found->map->len;
  if (napi_get_value_double(env, values[1], &at) != napi_ok ||
      napi_get_value_double(env, values[2], &len) != napi_ok ||
      !(at >= 0 && len >= 1 && at + len <= end)) {
    return fail(env, "ERR_OUT_OF_RANGE", "expected bytes within the map");
  }
  return buffer_of(env, found, found->map->bytes + (size_t)at, (size_t)len);
}

static napi_value lost_flag(napi_env env, napi_callback_info info) {
  napi_value values[1];
  handle *found = arguments(env, info, 1, values);
  if (found == NULL) return NULL;
  return buffer_of(env, found, &found->map->lost, sizeof found->map->lost);
}

static napi_value retire_map(napi_env env, napi_callback_info info) {
  napi_value values[1];
  handle *found = arguments(env, info, 1, values);
  if (found == NULL || found->is_retired) return NULL;
  found->is_retired = true;
  count_bytes(env, RETIRED_BYTES);
  return NULL;
}

static napi_value release_map(napi_env env, napi_callback_info info) {
  napi_value values[1];
  handle *found = arguments(env, info, 1, values);
  if (found == NULL) return NULL;
  retire_map(env, info);
  found->is_released = true;
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"open", NULL, open_map, NULL, NULL, NULL, napi_default, NULL},
      {"view", NULL, view_map, NULL, NULL, NULL, napi_default, NULL},
      {"lost", NULL, lost_flag, NULL, NULL, NULL, napi_default, NULL},
      {"retire", NULL, retire_map, NULL, NULL, NULL, napi_default, NULL},
      {"release", NULL, release_map, NULL, NULL, NULL, napi_default, NULL},
  };
  size_t count = sizeof functions / sizeof *functions;
  if (napi_define_properties(env, exports, count, functions) != napi_ok) return NULL;
  return exports;
}
