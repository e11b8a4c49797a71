/* Operations to count the instructions of, through the C interface: `cost DIRECTORY STEP COUNT` does COUNT of one kind over 10,000
   rows of 16 and 100 bytes, in a new database. STEP: put, get (in the memtable), level (a get in a level that is cached), scan (a seek
   and 20 rows there), multi (a multi-get of 32 keys there), compact (all rows are put and merged into the level). What two counts differ
   by is the cost of the operations alone, on the threads of the background too where they do it:

     cc -O2 -I include -o cost examples/cost.c PREFIX/lib/librocksdb.so
     valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file=out ./cost DIRECTORY get 10000; grep ^totals out-01 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

#define ROWS 10000u
#define KEYS 32

static void check(char* error) {
  if (error != NULL) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
}

/* Every number below ROWS comes once in ROWS calls, in no order of keys. */
static void key_of(uint64_t at, char key[17]) { snprintf(key, 17, "%016u", (unsigned)(at * 7919u % ROWS)); }

static void get(rocksdb_t* db, rocksdb_readoptions_t* reading, uint64_t at) {
  char key[17];
  char* error = NULL;
  size_t len = 0;
  key_of(at, key);
  rocksdb_pinnableslice_t* value = rocksdb_get_pinned(db, reading, key, 16, &error);
  check(error);
  if (rocksdb_pinnableslice_value(value, &len) == NULL || len != 100) exit(1);
  rocksdb_pinnableslice_destroy(value);
}

static void put(rocksdb_t* db, rocksdb_writeoptions_t* writing, uint64_t at) {
  char key[17], value[100];
  char* error = NULL;
  key_of(at, key);
  memset(value, (int)(at % 251), sizeof value);
  rocksdb_put(db, writing, key, 16, value, sizeof value, &error);
  check(error);
}

static void scan(rocksdb_t* db, rocksdb_readoptions_t* reading, uint64_t at) {
  char key[17];
  size_t len = 0;
  key_of(at, key);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek(iter, key, 16);
  for (int row = 0; row < 20 && rocksdb_iter_valid(iter); ++row) {
    if (rocksdb_iter_value(iter, &len) == NULL || len != 100) exit(1);
    rocksdb_iter_next(iter);
  }
  rocksdb_iter_destroy(iter);
}

static void multi(rocksdb_t* db, rocksdb_readoptions_t* reading, rocksdb_column_family_handle_t* family, uint64_t at) {
  char keys[KEYS][17];
  const char* starts[KEYS];
  size_t lens[KEYS];
  rocksdb_pinnableslice_t* values[KEYS];
  char* errors[KEYS];
  for (uint64_t key = 0; key < KEYS; ++key) {
    key_of(at * KEYS + key, keys[key]);
    starts[key] = keys[key];
    lens[key] = 16;
  }
  rocksdb_batched_multi_get_cf(db, reading, family, KEYS, starts, lens, values, errors, 0);
  for (int key = 0; key < KEYS; ++key) {
    size_t len = 0;
    check(errors[key]);
    if (rocksdb_pinnableslice_value(values[key], &len) == NULL || len != 100) exit(1);
    rocksdb_pinnableslice_destroy(values[key]);
  }
}

static void compact(rocksdb_t* db, rocksdb_writeoptions_t* writing) {
  for (uint64_t at = 0; at < ROWS; ++at) put(db, writing, at);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const char* step = arguments[2];
  uint64_t operations = strtoull(arguments[3], NULL, 10);
  char* error = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_error_if_exists(options, 1);
  rocksdb_options_set_db_write_buffer_size(options, 64 << 20);
  rocksdb_t* db = rocksdb_open(options, arguments[1], &error);
  check(error);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  for (uint64_t at = 0; at < ROWS; ++at) put(db, writing, at);
  int is_level = strcmp(step, "level") == 0 || strcmp(step, "scan") == 0 || strcmp(step, "multi") == 0;
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  if (is_level) rocksdb_compact_range(db, NULL, 0, NULL, 0);
  for (uint64_t at = 0; is_level && at < ROWS; ++at) get(db, reading, at);
  for (uint64_t at = 0; at < operations; ++at) {
    if (strcmp(step, "put") == 0) put(db, writing, at);
    else if (strcmp(step, "scan") == 0) scan(db, reading, at);
    else if (strcmp(step, "multi") == 0) multi(db, reading, family, at);
    else if (strcmp(step, "compact") == 0) compact(db, writing);
    else get(db, reading, at);
  }
  rocksdb_column_family_handle_destroy(family);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  return 0;
}
