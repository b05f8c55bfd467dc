/* Calls the functions of snapshots. Ends with 0, or prints the line of the check that failed. The
 * argument is a folder in which it may create files. */
#include "nuthatch.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static nuthatch_error error;

#define CHECK(holds)                                                                       \
    do {                                                                                   \
        if (!(holds)) {                                                                    \
            fprintf(stderr, "line %d: %s; last error: %d %s\n", __LINE__, #holds, error.code, \
                    (const char *)error.message);                                          \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)
#define OK(call) CHECK((call) == 0)
#define FAILS(name, call) CHECK(strcmp(nuthatch_code_name(call), name) == 0)
#define TEXT(text) (const uint8_t *)(text), strlen(text)
#define BYTES(array) (const uint8_t *)(array), sizeof(array)

static nuthatch_snapshot_writer create(const char *path) {
    nuthatch_snapshot_writer writer = 0;
    OK(nuthatch_snapshot_writer_create(TEXT(path), NULL, &writer, &error));
    return writer;
}

/* One row of each type, by the function for the type. */
static void write_each_type(const char *path) {
    nuthatch_snapshot_writer writer = create(path);
    int64_t integers[] = {1, -2};
    double floats[] = {0.5, -0.0};
    float singles[] = {0.25f};
    nuthatch_snapshot_bytes strings[] = {{TEXT("a")}, {NULL, 0}, {TEXT("bc")}};
    OK(nuthatch_snapshot_writer_insert_bytes(writer, TEXT("bytes"), TEXT("\xff"), &error));
    OK(nuthatch_snapshot_writer_insert_string(writer, TEXT("string"), TEXT("Ada"), &error));
    OK(nuthatch_snapshot_writer_insert_bool(writer, TEXT("bool"), 7, &error));
    OK(nuthatch_snapshot_writer_insert_i64(writer, TEXT("i64"), -36, &error));
    OK(nuthatch_snapshot_writer_insert_f64(writer, TEXT("f64"), 2.5, &error));
    OK(nuthatch_snapshot_writer_insert_i64_list(writer, TEXT("i64s"), integers, 2, &error));
    OK(nuthatch_snapshot_writer_insert_f64_list(writer, TEXT("f64s"), floats, 2, &error));
    OK(nuthatch_snapshot_writer_insert_f32_list(writer, TEXT("f32s"), singles, 1, &error));
    OK(nuthatch_snapshot_writer_insert_string_list(writer, TEXT("strings"), strings, 3, &error));
    OK(nuthatch_snapshot_writer_insert_string_list(writer, TEXT("empty"), NULL, 0, &error));
    OK(nuthatch_snapshot_writer_set_metadata(writer, TEXT("source"), TEXT("test"), &error));
    FAILS("argument",
          nuthatch_snapshot_writer_insert_string(writer, TEXT("x"), TEXT("\xff"), &error));
    nuthatch_snapshot_summary summary;
    OK(nuthatch_snapshot_writer_finish(writer, &summary, &error));
    CHECK(summary.entries == 10 && summary.rows == 10 && summary.file_bytes > 512);
    FAILS("closed", nuthatch_snapshot_writer_finish(writer, NULL, &error));
    FAILS("closed", nuthatch_snapshot_writer_insert_i64(writer, TEXT("i64"), 1, &error));
}

static uint8_t rows[1024];
static size_t rows_len;

static void pack(uint32_t type, const char *key, const uint8_t *value, uint64_t value_len) {
    uint32_t key_len = (uint32_t)strlen(key);
    memcpy(rows + rows_len, &type, 4);
    memcpy(rows + rows_len + 4, &key_len, 4);
    memcpy(rows + rows_len + 8, &value_len, 8);
    memcpy(rows + rows_len + 16, key, key_len);
    memcpy(rows + rows_len + 16 + key_len, value, value_len);
    rows_len += 16 + key_len + value_len;
}

/* The same rows in another order, by their stored form. */
static void write_packed_rows(const char *path) {
    nuthatch_snapshot_writer writer = create(path);
    int64_t integers[] = {1, -2}, integer = -36;
    double floats[] = {0.5, -0.0}, number = 2.5;
    float singles[] = {0.25f};
    uint32_t strings[] = {3, 1, 1, 3};
    uint8_t list[sizeof strings + 3], yes = 1;
    memcpy(list, strings, sizeof strings);
    memcpy(list + sizeof strings, "abc", 3);
    OK(nuthatch_snapshot_writer_insert(writer, TEXT("strings"), NUTHATCH_SNAPSHOT_STRING_LIST,
                                       BYTES(list), &error));
    rows_len = 0;
    pack(NUTHATCH_SNAPSHOT_EMPTY_LIST, "empty", NULL, 0);
    pack(NUTHATCH_SNAPSHOT_F32_LIST, "f32s", BYTES(singles));
    pack(NUTHATCH_SNAPSHOT_F64_LIST, "f64s", BYTES(floats));
    pack(NUTHATCH_SNAPSHOT_I64_LIST, "i64s", BYTES(integers));
    pack(NUTHATCH_SNAPSHOT_F64, "f64", BYTES(&number));
    pack(NUTHATCH_SNAPSHOT_I64, "i64", BYTES(&integer));
    pack(NUTHATCH_SNAPSHOT_BOOL, "bool", &yes, 1);
    pack(NUTHATCH_SNAPSHOT_STRING, "string", TEXT("Ada"));
    OK(nuthatch_snapshot_writer_insert_rows(writer, rows, rows_len, &error));
    rows_len = 0;
    pack(NUTHATCH_SNAPSHOT_BYTES, "bytes", TEXT("\xff"));
    pack(NUTHATCH_SNAPSHOT_I64, "short", TEXT("1234567"));
    FAILS("argument", nuthatch_snapshot_writer_insert_rows(writer, rows, rows_len, &error));
    CHECK(error.position == 1 && strstr((const char *)error.message, "row 1: "));
    FAILS("argument", nuthatch_snapshot_writer_insert_rows(writer, rows, 15, &error));
    OK(nuthatch_snapshot_writer_set_metadata(writer, TEXT("source"), TEXT("test"), &error));
    OK(nuthatch_snapshot_writer_finish(writer, NULL, NULL));
}

static void check_same_files(const char *one, const char *other) {
    static uint8_t a[1 << 16], b[1 << 16];
    FILE *first = fopen(one, "rb"), *second = fopen(other, "rb");
    CHECK(first && second);
    size_t len = fread(a, 1, sizeof a, first);
    CHECK(len > 512 && fread(b, 1, sizeof b, second) == len && memcmp(a, b, len) == 0);
    fclose(first);
    fclose(second);
}

static void writer_options(const char *path) {
    nuthatch_snapshot_writer_options options = {.on_duplicate = NUTHATCH_SNAPSHOT_DUPLICATE_LAST,
                                                .compression = NUTHATCH_SNAPSHOT_COMPRESSION_ZSTD,
                                                .compression_level = 19,
                                                .threads = 1,
                                                .memory_bytes = 16 << 20,
                                                .seed = 7,
                                                .shards = 2};
    nuthatch_snapshot_writer writer;
    nuthatch_snapshot_summary summary;
    OK(nuthatch_snapshot_writer_create(TEXT(path), &options, &writer, &error));
    OK(nuthatch_snapshot_writer_insert_i64(writer, TEXT("key"), 1, &error));
    OK(nuthatch_snapshot_writer_insert_i64(writer, TEXT("key"), 2, &error));
    OK(nuthatch_snapshot_writer_finish(writer, &summary, &error));
    CHECK(summary.entries == 1 && summary.rows == 2);
    options.on_duplicate = 3;
    FAILS("argument", nuthatch_snapshot_writer_create(TEXT(path), &options, &writer, &error));
}

static void failed_builds(const char *path) {
    nuthatch_snapshot_writer writer = create(path);
    static uint8_t key[65536];
    FAILS("limit", nuthatch_snapshot_writer_insert_i64(writer, key, sizeof key, 1, &error));
    OK(nuthatch_snapshot_writer_insert_i64(writer, TEXT("key"), 1, &error));
    OK(nuthatch_snapshot_writer_insert_i64(writer, TEXT("key"), 2, &error));
    FAILS("duplicate", nuthatch_snapshot_writer_finish(writer, NULL, &error));
    CHECK(error.position == 1);
    writer = create(path);
    OK(nuthatch_snapshot_writer_abandon(writer, &error));
    FAILS("closed", nuthatch_snapshot_writer_abandon(writer, &error));
    FAILS("io", nuthatch_snapshot_writer_create(TEXT("/"), NULL, &writer, &error));
    FAILS("argument", nuthatch_snapshot_writer_create(TEXT("a"), NULL, NULL, &error));
    CHECK(access(path, F_OK) != 0);
}

static nuthatch_snapshot_scratch *scratch;

static const nuthatch_snapshot *open_snapshot(const char *path) {
    const nuthatch_snapshot *snapshot = NULL;
    OK(nuthatch_snapshot_open(TEXT(path), NULL, &snapshot, &error));
    return snapshot;
}

static int is_text(const uint8_t *data, size_t len, const char *text) {
    return len == strlen(text) && memcmp(data, text, len) == 0;
}

static void read_any_type(const nuthatch_snapshot *snapshot) {
    nuthatch_snapshot_value value;
    nuthatch_snapshot_bytes string;
    OK(nuthatch_snapshot_get(snapshot, TEXT("string"), scratch, &value, &error));
    CHECK(value.type == NUTHATCH_SNAPSHOT_STRING && value.in_place);
    CHECK(is_text(value.data.bytes, value.len, "Ada"));
    OK(nuthatch_snapshot_get(snapshot, TEXT("i64s"), NULL, &value, NULL));
    CHECK(value.type == NUTHATCH_SNAPSHOT_I64_LIST && value.len == 2);
    CHECK(value.data.i64_list[1] == -2);
    OK(nuthatch_snapshot_get(snapshot, TEXT("strings"), NULL, &value, &error));
    CHECK(value.type == NUTHATCH_SNAPSHOT_STRING_LIST && value.len == 3);
    const char *strings[] = {"a", "", "bc"};
    for (size_t i = 0; i < 3; i++) {
        OK(nuthatch_snapshot_string_at(&value, i, &string, &error));
        CHECK(is_text(string.data, string.len, strings[i]));
    }
    FAILS("argument", nuthatch_snapshot_string_at(&value, 3, &string, &error));
    OK(nuthatch_snapshot_get(snapshot, TEXT("nobody"), scratch, &value, &error));
    CHECK(value.type == NUTHATCH_SNAPSHOT_ABSENT);
    FAILS("argument", nuthatch_snapshot_string_at(&value, 0, &string, &error));
    FAILS("argument", nuthatch_snapshot_get(NULL, TEXT("a"), scratch, &value, &error));
    FAILS("argument", nuthatch_snapshot_get(snapshot, NULL, 1, scratch, &value, &error));
    FAILS("argument", nuthatch_snapshot_get(snapshot, TEXT("a"), scratch, NULL, &error));
}

static void read_typed(const nuthatch_snapshot *snapshot) {
    nuthatch_snapshot_value value;
    OK(nuthatch_snapshot_get_bytes(snapshot, TEXT("bytes"), scratch, &value, &error));
    CHECK(is_text(value.data.bytes, value.len, "\xff"));
    OK(nuthatch_snapshot_get_string(snapshot, TEXT("string"), scratch, &value, &error));
    CHECK(is_text(value.data.bytes, value.len, "Ada"));
    OK(nuthatch_snapshot_get_bool(snapshot, TEXT("bool"), scratch, &value, &error));
    CHECK(value.data.i64 == 1 && value.len == 1);
    OK(nuthatch_snapshot_get_i64(snapshot, TEXT("i64"), scratch, &value, &error));
    CHECK(value.data.i64 == -36);
    OK(nuthatch_snapshot_get_f64(snapshot, TEXT("f64"), scratch, &value, &error));
    CHECK(value.data.f64 == 2.5);
    OK(nuthatch_snapshot_get_i64_list(snapshot, TEXT("i64s"), scratch, &value, &error));
    CHECK(value.len == 2 && value.data.i64_list[0] == 1);
    OK(nuthatch_snapshot_get_f64_list(snapshot, TEXT("f64s"), scratch, &value, &error));
    CHECK(value.len == 2 && value.data.f64_list[0] == 0.5);
    OK(nuthatch_snapshot_get_f32_list(snapshot, TEXT("f32s"), scratch, &value, &error));
    CHECK(value.len == 1 && value.data.f32_list[0] == 0.25f);
    OK(nuthatch_snapshot_get_string_list(snapshot, TEXT("strings"), scratch, &value, &error));
    CHECK(value.type == NUTHATCH_SNAPSHOT_STRING_LIST && value.len == 3);
    OK(nuthatch_snapshot_get_f32_list(snapshot, TEXT("empty"), scratch, &value, &error));
    CHECK(value.type == NUTHATCH_SNAPSHOT_F32_LIST && value.len == 0);
    OK(nuthatch_snapshot_get_string_list(snapshot, TEXT("empty"), scratch, &value, &error));
    CHECK(value.type == NUTHATCH_SNAPSHOT_STRING_LIST && value.len == 0);
    OK(nuthatch_snapshot_get_i64(snapshot, TEXT("nobody"), scratch, &value, &error));
    CHECK(value.type == NUTHATCH_SNAPSHOT_ABSENT);
    FAILS("wrong-type", nuthatch_snapshot_get_i64(snapshot, TEXT("f64"), scratch, &value, &error));
    CHECK(strstr((const char *)error.message, "requested i64, found f64"));
    FAILS("wrong-type",
          nuthatch_snapshot_get_bytes(snapshot, TEXT("empty"), scratch, &value, &error));
}

static void read_many(const nuthatch_snapshot *snapshot) {
    nuthatch_snapshot_bytes keys[200];
    nuthatch_snapshot_value values[200];
    for (size_t i = 0; i < 200; i++) {
        keys[i] = (nuthatch_snapshot_bytes){TEXT(i % 2 ? "i64" : "nobody")};
    }
    OK(nuthatch_snapshot_get_many(snapshot, keys, 200, scratch, values, &error));
    for (size_t i = 0; i < 200; i++) {
        CHECK(i % 2 ? values[i].data.i64 == -36 : values[i].type == NUTHATCH_SNAPSHOT_ABSENT);
    }
    OK(nuthatch_snapshot_get_many(snapshot, NULL, 0, NULL, NULL, &error));
    keys[7].data = NULL;
    FAILS("argument",
          nuthatch_snapshot_get_many(snapshot, keys, 200, scratch, values, &error));
    uint32_t found, type;
    OK(nuthatch_snapshot_contains(snapshot, TEXT("i64"), &found, &error));
    CHECK(found == 1);
    OK(nuthatch_snapshot_contains(snapshot, NULL, 0, &found, &error));
    CHECK(found == 0);
    OK(nuthatch_snapshot_type_of(snapshot, TEXT("empty"), &type, &error));
    CHECK(type == NUTHATCH_SNAPSHOT_EMPTY_LIST);
    OK(nuthatch_snapshot_type_of(snapshot, TEXT("nobody"), &type, &error));
    CHECK(type == NUTHATCH_SNAPSHOT_ABSENT);
}

/* Returns the number of entries of an iteration. */
static size_t iterate(const nuthatch_snapshot *snapshot, uint32_t verified) {
    nuthatch_snapshot_iterator *iterator;
    const nuthatch_snapshot_entry *entries;
    nuthatch_snapshot_value value;
    size_t count, all = 0;
    OK(nuthatch_snapshot_iterator_open(snapshot, verified, &iterator, &error));
    do {
        OK(nuthatch_snapshot_iterator_next(iterator, &entries, &count, &error));
        for (size_t i = 0; i < count; i++) {
            OK(nuthatch_snapshot_get(snapshot, entries[i].key, entries[i].key_len, scratch, &value,
                                     &error));
            CHECK(value.type == entries[i].value.type && value.len == entries[i].value.len);
        }
        all += count;
    } while (count > 0);
    OK(nuthatch_snapshot_iterator_next(iterator, &entries, &count, &error));
    CHECK(count == 0);
    OK(nuthatch_snapshot_iterator_close(iterator, &error));
    return all;
}

static void count_progress(void *user, uint64_t done, uint64_t all) {
    if (done == all) *(uint64_t *)user = done;
}

static void describe(const nuthatch_snapshot *snapshot) {
    uint64_t len, verified = 0;
    nuthatch_snapshot_stats stats;
    nuthatch_snapshot_metadata_pair pairs[2];
    size_t count;
    OK(nuthatch_snapshot_len(snapshot, &len, &error));
    OK(nuthatch_snapshot_stats_of(snapshot, &stats, &error));
    CHECK(len == 10 && stats.entries == 10 && stats.version_major == 1 && stats.shards == 0);
    CHECK(stats.entries_by_type[NUTHATCH_SNAPSHOT_STRING] == 1);
    OK(nuthatch_snapshot_metadata(snapshot, NULL, 0, &count, &error));
    CHECK(count == 1);
    OK(nuthatch_snapshot_metadata(snapshot, pairs, 2, &count, &error));
    CHECK(count == 1 && is_text(pairs[0].name.data, pairs[0].name.len, "source"));
    CHECK(is_text(pairs[0].value.data, pairs[0].value.len, "test"));
    OK(nuthatch_snapshot_verify(snapshot, 1, count_progress, &verified, &error));
    CHECK(verified == 10);
    OK(nuthatch_snapshot_verify(snapshot, 0, NULL, NULL, &error));
    OK(nuthatch_snapshot_check_readable(snapshot, &error));
}

static void open_and_close(const char *path) {
    const nuthatch_snapshot *snapshot, *other = open_snapshot(path);
    nuthatch_snapshot_options options = {.residency = NUTHATCH_SNAPSHOT_HUGE_PAGES};
    nuthatch_snapshot_value value;
    static uint8_t bytes[1 << 16];
    OK(nuthatch_snapshot_open(TEXT(path), &options, &snapshot, &error));
    CHECK(iterate(snapshot, 0) == 10);
    OK(nuthatch_snapshot_retain(snapshot, &error));
    OK(nuthatch_snapshot_close(snapshot, &error));
    OK(nuthatch_snapshot_get(snapshot, TEXT("string"), NULL, &value, &error));
    nuthatch_snapshot_iterator *iterator;
    const nuthatch_snapshot_entry *entries;
    size_t count;
    OK(nuthatch_snapshot_iterator_open(snapshot, 0, &iterator, &error));
    OK(nuthatch_snapshot_stop(snapshot, &error));
    CHECK(is_text(value.data.bytes, value.len, "Ada"));
    FAILS("closed", nuthatch_snapshot_get(snapshot, TEXT("string"), NULL, &value, &error));
    FAILS("closed", nuthatch_snapshot_iterator_next(iterator, &entries, &count, &error));
    OK(nuthatch_snapshot_close(snapshot, &error));
    OK(nuthatch_snapshot_iterator_close(iterator, &error));
    OK(nuthatch_snapshot_get(other, TEXT("string"), NULL, &value, &error));
    OK(nuthatch_snapshot_close(other, &error));
    FILE *file = fopen(path, "rb");
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    OK(nuthatch_snapshot_open_bytes(bytes, len, &snapshot, &error));
    CHECK(iterate(snapshot, 1) == 10);
    OK(nuthatch_snapshot_close(snapshot, &error));
    bytes[512 + 3] ^= 1;
    OK(nuthatch_snapshot_open_bytes(bytes, len, &snapshot, &error));
    FAILS("corrupt", nuthatch_snapshot_verify(snapshot, 0, NULL, NULL, &error));
    CHECK(error.position == 128);
    OK(nuthatch_snapshot_close(snapshot, &error));
    bytes[0] ^= 1;
    FAILS("not-a-snapshot", nuthatch_snapshot_open_bytes(bytes, len, &snapshot, &error));
    options.residency = 3;
    FAILS("argument", nuthatch_snapshot_open(TEXT(path), &options, &snapshot, &error));
    FAILS("io", nuthatch_snapshot_open(TEXT("none"), NULL, &snapshot, &error));
    CHECK(error.system == ENOENT);
    FAILS("argument", nuthatch_snapshot_close(NULL, NULL));
}

/* A file that is truncated while it is mapped. */
static void guard(const char *path) {
    nuthatch_snapshot_writer writer = create(path);
    static uint8_t value[4096];
    char key[16];
    for (int i = 0; i < 100; i++) {
        memset(value, 1 + i, sizeof value);
        snprintf(key, sizeof key, "key%d", i);
        OK(nuthatch_snapshot_writer_insert_bytes(writer, TEXT(key), BYTES(value), &error));
    }
    OK(nuthatch_snapshot_writer_finish(writer, NULL, &error));
    nuthatch_snapshot_options options = {.guard = 1};
    const nuthatch_snapshot *snapshot;
    OK(nuthatch_snapshot_open(TEXT(path), &options, &snapshot, &error));
    OK(nuthatch_snapshot_check_readable(snapshot, &error));
    CHECK(truncate(path, 4096) == 0);
    FAILS("unreadable", nuthatch_snapshot_verify(snapshot, 0, NULL, NULL, &error));
    FAILS("unreadable", nuthatch_snapshot_check_readable(snapshot, &error));
    OK(nuthatch_snapshot_close(snapshot, &error));
}

/* Values that are compressed need a buffer. */
static void read_compressed(const char *path) {
    nuthatch_snapshot_writer_options options = {.compression =
                                                    NUTHATCH_SNAPSHOT_COMPRESSION_ZSTD};
    nuthatch_snapshot_writer writer;
    static char text[1000];
    char key[16];
    memset(text, 'x', sizeof text);
    OK(nuthatch_snapshot_writer_create(TEXT(path), &options, &writer, &error));
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%d", i);
        memcpy(text, key, strlen(key));
        OK(nuthatch_snapshot_writer_insert_string(writer, TEXT(key), BYTES(text), &error));
    }
    OK(nuthatch_snapshot_writer_finish(writer, NULL, &error));
    const nuthatch_snapshot *snapshot = open_snapshot(path);
    nuthatch_snapshot_value value, values[2];
    nuthatch_snapshot_bytes keys[] = {{TEXT("42")}, {TEXT("17")}};
    FAILS("compressed", nuthatch_snapshot_get(snapshot, TEXT("42"), NULL, &value, &error));
    OK(nuthatch_snapshot_get(snapshot, TEXT("42"), scratch, &value, &error));
    CHECK(value.in_place == 0 && value.len == 1000 && memcmp(value.data.bytes, "42x", 3) == 0);
    OK(nuthatch_snapshot_get_string(snapshot, TEXT("17"), scratch, &value, &error));
    CHECK(value.len == 1000 && memcmp(value.data.bytes, "17x", 3) == 0);
    FAILS("wrong-type", nuthatch_snapshot_get_f64(snapshot, TEXT("17"), scratch, &value, &error));
    FAILS("compressed", nuthatch_snapshot_get_many(snapshot, keys, 2, NULL, values, &error));
    OK(nuthatch_snapshot_get_many(snapshot, keys, 2, scratch, values, &error));
    CHECK(memcmp(values[0].data.bytes, "42x", 3) == 0);
    CHECK(memcmp(values[1].data.bytes, "17x", 3) == 0);
    CHECK(iterate(snapshot, 0) == 100);
    OK(nuthatch_snapshot_close(snapshot, &error));
}

static void write_one(const char *path, int64_t number) {
    nuthatch_snapshot_writer writer = create(path);
    OK(nuthatch_snapshot_writer_insert_i64(writer, TEXT("key"), number, &error));
    OK(nuthatch_snapshot_writer_finish(writer, NULL, &error));
}

static int64_t read_one(nuthatch_snapshot_reader *reader) {
    const nuthatch_snapshot *snapshot;
    nuthatch_snapshot_value value;
    OK(nuthatch_snapshot_reader_current(reader, &snapshot, &error));
    OK(nuthatch_snapshot_get_i64(snapshot, TEXT("key"), NULL, &value, &error));
    return value.data.i64;
}

static void watch(const char *path) {
    nuthatch_snapshot_watch_options options = {.poll_interval_ms = NUTHATCH_SNAPSHOT_NO_POLLING};
    static nuthatch_snapshot_watch_status status;
    nuthatch_snapshot_watch handle;
    nuthatch_snapshot_reader *reader;
    uint32_t switched;
    write_one(path, 1);
    OK(nuthatch_snapshot_watch_open(TEXT(path), &options, &handle, &error));
    OK(nuthatch_snapshot_reader_open(handle, &reader, &error));
    CHECK(read_one(reader) == 1);
    const nuthatch_snapshot *old;
    OK(nuthatch_snapshot_reader_current(reader, &old, &error));
    OK(nuthatch_snapshot_retain(old, &error));
    write_one(path, 2);
    CHECK(read_one(reader) == 1);
    OK(nuthatch_snapshot_watch_refresh(handle, &switched, &error));
    CHECK(switched == 1 && read_one(reader) == 2);
    nuthatch_snapshot_value value;
    OK(nuthatch_snapshot_get_i64(old, TEXT("key"), NULL, &value, &error));
    CHECK(value.data.i64 == 1);
    OK(nuthatch_snapshot_close(old, &error));
    write_one("other.nut", 3);
    CHECK(truncate("other.nut", 700) == 0 && rename("other.nut", path) == 0);
    OK(nuthatch_snapshot_watch_refresh(handle, &switched, &error));
    OK(nuthatch_snapshot_watch_status_of(handle, &status, &error));
    CHECK(switched == 0 && status.switched == 1 && status.rejected == 1 && status.has_error);
    CHECK(strstr((const char *)status.error, "byte 16") && !strcmp((char *)status.path, path));
    OK(nuthatch_snapshot_watch_close(handle, &error));
    FAILS("closed", nuthatch_snapshot_watch_refresh(handle, NULL, &error));
    OK(nuthatch_snapshot_reader_close(reader, &error));
}

static void generations(void) {
    nuthatch_snapshot_watch handle;
    nuthatch_snapshot_reader *reader;
    uint32_t switched;
    write_one("users.1.nut", 1);
    write_one("users.2.nut", 2);
    FAILS("io", nuthatch_snapshot_watch_open_generations(TEXT("users"), NULL, &handle, &error));
    OK(nuthatch_snapshot_publish_generation(TEXT("users"), 1, &error));
    nuthatch_snapshot_watch_options options = {.poll_interval_ms = NUTHATCH_SNAPSHOT_NO_POLLING,
                                               .verify = 1};
    OK(nuthatch_snapshot_watch_open_generations(TEXT("users"), &options, &handle, &error));
    OK(nuthatch_snapshot_reader_open(handle, &reader, &error));
    CHECK(read_one(reader) == 1);
    OK(nuthatch_snapshot_publish_generation(TEXT("users"), 2, &error));
    OK(nuthatch_snapshot_watch_refresh(handle, &switched, &error));
    CHECK(switched && read_one(reader) == 2);
    OK(nuthatch_snapshot_watch_close(handle, &error));
    CHECK(read_one(reader) == 2);
    OK(nuthatch_snapshot_reader_close(reader, &error));
    FAILS("io", nuthatch_snapshot_publish_generation(TEXT("users"), 3, &error));
}

static void child_of_fork(const char *path, const nuthatch_snapshot *snapshot) {
    nuthatch_snapshot_writer writer = create(path);
    pid_t child = fork();
    if (child == 0) {
        FAILS("closed", nuthatch_snapshot_writer_finish(writer, NULL, &error));
        read_typed(snapshot);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(nuthatch_snapshot_writer_insert_i64(writer, TEXT("key"), 1, &error));
    OK(nuthatch_snapshot_writer_finish(writer, NULL, &error));
}

/* A row that a child made by fork adds to a writer of its parent is an error. If it was written to
 * the temporary file of the parent, it would replace a value there. */
static void child_with_a_writer(const char *path) {
    enum { LONG = 2 << 20 };
    static uint8_t of_parent[LONG], of_child[LONG];
    memset(of_parent, 'p', LONG);
    memset(of_child, 'c', LONG);
    nuthatch_snapshot_writer writer = create(path);
    int turn[2];
    CHECK(pipe(turn) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        CHECK(read(turn[0], &byte, 1) == 1);
        FAILS("closed", nuthatch_snapshot_writer_insert_bytes(writer, TEXT("child"), of_child, LONG,
                                                              &error));
        FAILS("closed", nuthatch_snapshot_writer_finish(writer, NULL, &error));
        _exit(0);
    }
    OK(nuthatch_snapshot_writer_insert_bytes(writer, TEXT("parent"), of_parent, LONG, &error));
    CHECK(write(turn[1], "x", 1) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(nuthatch_snapshot_writer_finish(writer, NULL, &error));
    const nuthatch_snapshot *snapshot = open_snapshot(path);
    nuthatch_snapshot_value value;
    OK(nuthatch_snapshot_get_bytes(snapshot, TEXT("parent"), NULL, &value, &error));
    CHECK(value.len == LONG && memcmp(value.data.bytes, of_parent, LONG) == 0);
    OK(nuthatch_snapshot_close(snapshot, &error));
    close(turn[0]);
    close(turn[1]);
}

int main(int argc, char **argv) {
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    write_each_type("types.nut");
    write_packed_rows("packed.nut");
    check_same_files("types.nut", "packed.nut");
    writer_options("set.nut");
    failed_builds("none.nut");
    OK(nuthatch_snapshot_scratch_create(&scratch, &error));
    const nuthatch_snapshot *snapshot = open_snapshot("types.nut");
    read_any_type(snapshot);
    read_typed(snapshot);
    read_many(snapshot);
    CHECK(iterate(snapshot, 0) == 10 && iterate(snapshot, 1) == 10);
    describe(snapshot);
    child_of_fork("child.nut", snapshot);
    child_with_a_writer("child.nut");
    OK(nuthatch_snapshot_close(snapshot, &error));
    open_and_close("types.nut");
    guard("guard.nut");
    read_compressed("compressed.nut");
    watch("watch.nut");
    generations();
    OK(nuthatch_snapshot_scratch_free(scratch, &error));
    return 0;
}
