/*
 * The functions of the add-on, in Node-API:
 *
 *   open(fd, length) -> map      Maps an open file.
 *   view(map, offset, length) -> ArrayBuffer    Returns bytes of the map without a copy.
 *   lost(map) -> ArrayBuffer     Returns an int32 that is not 0 once a page could not be read.
 *   release(map)                 Releases the map. Its buffers keep it mapped.
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

/* What JavaScript has of a map: a reference, until it is released. */
typedef struct {
  nuthatch_map *map;
} handle;

static napi_value fail(napi_env env, const char *code, const char *message) {
  bool is_pending = false;
  napi_is_exception_pending(env, &is_pending);
  if (!is_pending) napi_throw_error(env, code, message);
  return NULL;
}

static void release_map(napi_env env, void *data, void *hint) {
  (void)env;
  (void)data;
  nuthatch_map_release(hint);
}

static void finalize_handle(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  handle *found = data;
  if (found->map != NULL) nuthatch_map_release(found->map);
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
  if (((handle *)data)->map == NULL) {
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
  handle *result = malloc(sizeof *result);
  if (result == NULL) return fail(env, "ENOMEM", "out of memory");
  result->map = nuthatch_map_open(fd, (size_t)len);
  if (result->map == NULL) {
    int number = errno;
    free(result);
    char code[24];
    snprintf(code, sizeof code, "%s", number == ENOMEM ? "ENOMEM" : "ERR_MAP");
    return fail(env, code, strerror(number));
  }
  napi_value value;
  if (napi_create_external(env, result, finalize_handle, NULL, &value) != napi_ok) {
    finalize_handle(env, result, NULL);
    return fail(env, "ERR_MAP", "cannot create a map");
  }
  if (napi_type_tag_object(env, value, &TAG) != napi_ok) {
    return fail(env, "ERR_MAP", "cannot create a map");
  }
  return value;
}

/* Returns a buffer of bytes that the map keeps valid. */
static napi_value buffer_of(napi_env env, nuthatch_map *map, void *bytes, size_t len) {
  napi_value buffer;
  nuthatch_map_retain(map);
  napi_status status = napi_create_external_arraybuffer(env, bytes, len, release_map, map, &buffer);
  if (status == napi_ok) return buffer;
  nuthatch_map_release(map);
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
  return buffer_of(env, found->map, found->map->bytes + (size_t)at, (size_t)len);
}

static napi_value lost_flag(napi_env env, napi_callback_info info) {
  napi_value values[1];
  handle *found = arguments(env, info, 1, values);
  if (found == NULL) return NULL;
  return buffer_of(env, found->map, &found->map->lost, sizeof found->map->lost);
}

static napi_value release(napi_env env, napi_callback_info info) {
  napi_value values[1];
  handle *found = arguments(env, info, 1, values);
  if (found == NULL) return NULL;
  nuthatch_map_release(found->map);
  found->map = NULL;
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"open", NULL, open_map, NULL, NULL, NULL, napi_default, NULL},
      {"view", NULL, view_map, NULL, NULL, NULL, napi_default, NULL},
      {"lost", NULL, lost_flag, NULL, NULL, NULL, napi_default, NULL},
      {"release", NULL, release, NULL, NULL, NULL, napi_default, NULL},
  };
  size_t count = sizeof functions / sizeof *functions;
  if (napi_define_properties(env, exports, count, functions) != napi_ok) return NULL;
  return exports;
}
