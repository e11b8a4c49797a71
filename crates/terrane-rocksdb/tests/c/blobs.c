/* Blob files are value tables: what options of blobs do, and what properties tell of them. */
#define _POSIX_C_SOURCE 200112L
#include <stdint.h>

#include "check.h"

enum { ROWS = 400, BLOB_READS = 70 };

static const char* value_of(int row) {
  static char value[501];
  memset(value, 'a' + row % 20, 500);
  return value;
}

static const char* key_of(int row) {
  static char key[16];
  snprintf(key, sizeof key, "key-%05d", row);
  return key;
}

static void fill(rocksdb_t* db, int from) {
  char* error = NULL;
  for (int row = from; row < ROWS; row++) put(db, key_of(row), value_of(row));
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
  wait_for_compactions(db);
}

static uint64_t number(rocksdb_t* db, const char* property) {
  uint64_t value = 0;
  CHECK(rocksdb_property_int(db, property, &value) == 0);
  char* text = rocksdb_property_value(db, property);
  CHECK(text != NULL && strtoull(text, NULL, 10) == value);
  rocksdb_free(text);
  return value;
}

static void check_rows(rocksdb_t* db) {
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  for (int row = 0; row < ROWS; row++) CHECK_GET(db, reading, key_of(row), value_of(row));
  rocksdb_readoptions_destroy(reading);
}

static rocksdb_options_t* blob_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  CHECK(!rocksdb_options_get_enable_blob_files(options) && rocksdb_options_get_min_blob_size(options) == 0);
  CHECK(rocksdb_options_get_blob_gc_force_threshold(options) == 1.0);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_options_set_enable_blob_files(options, 1);
  rocksdb_options_set_min_blob_size(options, 100);
  rocksdb_options_set_blob_compression_type(options, rocksdb_lz4_compression);
  rocksdb_options_set_enable_blob_gc(options, 1);
  rocksdb_options_set_blob_gc_force_threshold(options, 0.5);
  CHECK(rocksdb_options_get_enable_blob_files(options) && rocksdb_options_get_min_blob_size(options) == 100);
  CHECK(rocksdb_options_get_blob_compression_type(options) == rocksdb_lz4_compression);
  CHECK(rocksdb_options_get_enable_blob_gc(options));
  CHECK(rocksdb_options_get_blob_gc_force_threshold(options) == 0.5);
  return options;
}

/* Sizes of all rows: of files, of blobs, of both. */
static void check_sizes(rocksdb_t* db) {
  char* error = NULL;
  const char *start = "a", *limit = "z";
  size_t len = 1;
  uint64_t files = 0, blobs = 0, both = 0;
  rocksdb_size_approximation_options_t* options = rocksdb_size_approximation_options_create();
  rocksdb_approximate_sizes_with_options(db, options, 1, &start, &len, &limit, &len, &files, &error);
  CHECK_OK(error);
  rocksdb_size_approximation_options_set_include_blob_files(options, 1);
  rocksdb_approximate_sizes_with_options(db, options, 1, &start, &len, &limit, &len, &both, &error);
  CHECK_OK(error);
  rocksdb_size_approximation_options_set_include_files(options, 0);
  rocksdb_approximate_sizes_with_options(db, options, 1, &start, &len, &limit, &len, &blobs, &error);
  CHECK_OK(error);
  CHECK(files > 0 && blobs > 0 && files + blobs == both);
  uint64_t live = number(db, "rocksdb.live-blob-file-size") - number(db, "rocksdb.live-blob-file-garbage-size");
  CHECK(blobs <= live && blobs + 10 > live);
  rocksdb_size_approximation_options_destroy(options);
}

static void separated(const char* directory) {
  char* path = path_in(directory, "separated");
  rocksdb_options_t* options = blob_options();
  rocksdb_t* db = open_new(options, path);
  CHECK(number(db, "rocksdb.num-blob-files") == 0 && number(db, "rocksdb.total-blob-file-size") == 0);
  fill(db, 0);
  CHECK(number(db, "rocksdb.num-blob-files") > 0);
  uint64_t size = number(db, "rocksdb.total-blob-file-size");
  CHECK(size > 0 && size < ROWS * 500 / 2);
  CHECK(number(db, "rocksdb.live-blob-file-size") == size);
  CHECK(number(db, "rocksdb.live-blob-file-garbage-size") == 0);
  rocksdb_perfcontext_t* context = rocksdb_perfcontext_create();
  check_rows(db);
  CHECK(rocksdb_perfcontext_metric(context, BLOB_READS) == ROWS);
  rocksdb_perfcontext_destroy(context);
  check_sizes(db);
  /* Some rows are written anew: their old values are garbage, or collected already. */
  fill(db, ROWS * 3 / 4);
  check_rows(db);
  char* text = rocksdb_property_value(db, "rocksdb.blob-stats");
  CHECK(text != NULL && strncmp(text, "Number of blob files: ", 22) == 0);
  CHECK(strstr(text, "\nTotal size of blob files: ") != NULL);
  CHECK(strstr(text, "\nTotal size of garbage in blob files: ") != NULL);
  CHECK(strstr(text, "\nBlob file space amplification: 1") != NULL);
  rocksdb_free(text);
  rocksdb_close(db);
  /* What is separated stays readable without the option. */
  rocksdb_options_set_enable_blob_files(options, 0);
  db = open_new(options, path);
  check_rows(db);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

/* The options of blobs can be changed while a column family is open. */
static void changed(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "changed");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = open_new(options, path);
  fill(db, 0);
  CHECK(number(db, "rocksdb.num-blob-files") == 0);
  const char *names[] = {"enable_blob_files", "min_blob_size"}, *values[] = {"true", "200"};
  rocksdb_set_options(db, 2, names, values, &error);
  CHECK_OK(error);
  fill(db, 0);
  CHECK(number(db, "rocksdb.num-blob-files") > 0);
  check_rows(db);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

/* Without blob files a value of any length stays with its key; the options of each opening hold for what exists. */
static void reopened(const char* directory) {
  char* path = path_in(directory, "reopened");
  static char longer[40001];
  memset(longer, 'l', 40000);
  rocksdb_options_t* off = rocksdb_options_create();
  rocksdb_t* db = open_new(off, path);
  put(db, "a-long-value", longer);
  fill(db, 0);
  CHECK(number(db, "rocksdb.num-blob-files") == 0);
  rocksdb_close(db);
  rocksdb_options_t* on = blob_options();
  db = open_new(on, path);
  fill(db, 0);
  CHECK(number(db, "rocksdb.num-blob-files") > 0);
  check_rows(db);
  rocksdb_close(db);
  db = open_new(off, path);
  put(db, "a-long-value", longer);
  fill(db, 0);
  /* All rows were overwritten, so a blob file could only have what was separated now. */
  CHECK(number(db, "rocksdb.num-blob-files") == 0);
  check_rows(db);
  rocksdb_close(db);
  rocksdb_options_destroy(on);
  rocksdb_options_destroy(off);
  free(path);
}

/* What has no counterpart is refused in strict mode, and the rest is not. */
static void strict(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "strict");
  CHECK(setenv("TERRANE_ROCKSDB_STRICT", "1", 1) == 0);
  rocksdb_options_t* options = blob_options();
  rocksdb_options_set_blob_file_size(options, 1 << 20);
  rocksdb_options_set_prepopulate_blob_cache(options, rocksdb_prepopulate_blob_flush_only);
  rocksdb_close(open_new(options, path));
  rocksdb_options_set_blob_file_starting_level(options, 2);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK(error != NULL && strstr(error, "rocksdb_options_set_blob_file_starting_level") != NULL);
  CHECK_ERROR(error, "Not implemented: Not supported in strict mode");
  rocksdb_options_set_blob_file_starting_level(options, 0);
  rocksdb_options_set_blob_gc_age_cutoff(options, 1.0);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK(error != NULL && strstr(error, "rocksdb_options_set_blob_gc_age_cutoff") != NULL);
  CHECK_ERROR(error, "Not implemented: Not supported in strict mode");
  /* Where nothing is collected, the age of what is collected means nothing. */
  rocksdb_options_set_enable_blob_gc(options, 0);
  rocksdb_close(open_new(options, path));
  rocksdb_options_destroy(options);
  free(path);
}

int main(int count, char** words) {
  CHECK(count == 2);
  separated(words[1]);
  changed(words[1]);
  reopened(words[1]);
  strict(words[1]);
  return 0;
}
