/* Errors of writes that cannot be made: the directory that went away behind an opening, a batch that is too large. */
#include "check.h"

static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;

/* Temporary directories of tests go at once. The journal's first file is there; a further one cannot be made, and that is no
   missing column family. */
static void without_directory(rocksdb_options_t* options, const char* path, const char* gone) {
  char* error = NULL;
  rocksdb_t* db = open_new(options, path);
  CHECK(rename(path, gone) == 0);
  put(db, "small", "v");
  CHECK_GET(db, reading, "small", "v");
  enum { BYTES = 100000, TRIES = 20 };
  char* value = calloc(1, BYTES);
  rocksdb_writeoptions_set_ignore_missing_column_families(writing, 1);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "by batch", 8, value, BYTES);
  int tries = 0;
  for (; error == NULL && tries < TRIES; tries++) rocksdb_put(db, writing, "large", 5, value, BYTES, &error);
  CHECK(tries < TRIES);
  CHECK_ERROR(error, "IO error: No such file or directory: ");
  rocksdb_write(db, writing, batch, &error);
  CHECK_ERROR(error, "IO error: ");
  CHECK_GET(db, reading, "by batch", NULL);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_ERROR(error, "IO error: ");
  rocksdb_flushoptions_destroy(flush);
  rocksdb_writeoptions_set_ignore_missing_column_families(writing, 0);
  rocksdb_writebatch_destroy(batch);
  free(value);
  rocksdb_close(db);
  CHECK(rename(gone, path) == 0);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
}

/* Adds rows of a mebibyte. */
static rocksdb_writebatch_t* batch_of(int mebibytes) {
  enum { BYTES = 1 << 20 };
  char* value = calloc(1, BYTES);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  for (unsigned char row = 0; row < mebibytes; row++) {
    value[0] = (char)row;
    rocksdb_writebatch_put(batch, (char*)&row, 1, value, BYTES);
  }
  free(value);
  return batch;
}

/* With RocksDB's defaults a batch may have 100 MiB. */
static void large(rocksdb_options_t* options, const char* path) {
  enum { ROWS = 101 };
  char* error = NULL;
  rocksdb_t* db = open_new(options, path);
  rocksdb_writebatch_t* batch = batch_of(ROWS);
  rocksdb_writeoptions_set_no_slowdown(writing, 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_set_no_slowdown(writing, 0);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
  for (unsigned char row = 0; row < ROWS; row++) {
    size_t len = 0;
    char* value = rocksdb_get(db, reading, (char*)&row, 1, &len, &error);
    CHECK_OK(error);
    CHECK(value != NULL && len == 1 << 20 && (unsigned char)value[0] == row);
    rocksdb_free(value);
  }
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
}

/* The error names the options that are enough. */
static void too_large(rocksdb_options_t* options, const char* path) {
  enum { MEBIBYTES = 80 };
  char* error = NULL;
  rocksdb_options_set_write_buffer_size(options, 4 << 20);
  rocksdb_t* db = open_new(options, path);
  rocksdb_writebatch_t* batch = batch_of(MEBIBYTES);
  rocksdb_write(db, writing, batch, &error);
  CHECK(error != NULL && strstr(error, "db_write_buffer_size, of at least twice the batch") != NULL);
  CHECK_ERROR(error, "Invalid argument: batch of ");
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_set_db_write_buffer_size(options, (size_t)2 * MEBIBYTES << 20);
  db = open_new(options, path);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
  rocksdb_close(db);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char *path = path_in(arguments[1], "db"), *gone = path_in(arguments[1], "gone");
  rocksdb_options_t* options = rocksdb_options_create();
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  without_directory(options, path, gone);
  large(options, path);
  too_large(options, path);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_readoptions_destroy(reading);
  rocksdb_options_destroy(options);
  free(path);
  free(gone);
  return 0;
}
