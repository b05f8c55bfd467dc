/* Calls the functions of snapshots. Ends with 0, or prints the line of the check that failed. The
 * argument is a folder in which it may create files. */
#include "nuthatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(int argc, char **argv) {
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    write_each_type("types.nut");
    write_packed_rows("packed.nut");
    check_same_files("types.nut", "packed.nut");
    writer_options("set.nut");
    failed_builds("none.nut");
    return 0;
}
