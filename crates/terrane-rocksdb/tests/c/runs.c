/* Column families without automatic compactions: a file of level 0 for each flush, until somebody asks; filters of files. */
#include <stdint.h>

#include "check.h"

typedef struct Filter {
  uint64_t hidden;
  int calls, destroyed;
} Filter;

static void filter_destroyed(void* state) { ((Filter*)state)->destroyed++; }

static unsigned char shows(void* state, const rocksdb_table_properties_t* properties) {
  Filter* filter = state;
  size_t len = 0;
  filter->calls++;
  CHECK(rocksdb_table_properties_column_family_id(properties) == 0);
  CHECK(strcmp(rocksdb_table_properties_column_family_name(properties, &len), "default") == 0 && len == 7);
  return rocksdb_table_properties_num_entries(properties) != filter->hidden;
}

static int files_at_level0(rocksdb_t* db) {
  char* text = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  CHECK(text != NULL);
  int files = atoi(text);
  rocksdb_free(text);
  return files;
}

static void put_and_flush(rocksdb_t* db, rocksdb_writeoptions_t* writing, int first, int count) {
  char* error = NULL;
  rocksdb_flushoptions_t* waiting = rocksdb_flushoptions_create();
  rocksdb_flushoptions_set_wait(waiting, 1);
  for (int number = first; number < first + count; number++) {
    char key[16];
    snprintf(key, sizeof(key), "key%04d", number);
    rocksdb_put(db, writing, key, strlen(key), "value", 5, &error);
    CHECK_OK(error);
  }
  rocksdb_flush(db, waiting, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(waiting);
}

static int rows(rocksdb_t* db, rocksdb_readoptions_t* reading) {
  char* error = NULL;
  int count = 0;
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) count++;
  rocksdb_iter_get_error(iter, &error);
  CHECK_OK(error);
  rocksdb_iter_destroy(iter);
  return count;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  char path[1024];
  char* error = NULL;
  snprintf(path, sizeof(path), "%s/runs", argv[1]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  CHECK(rocksdb_options_get_disable_auto_compactions(options) == 1);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);

  /* A file for each flush, newest first, that nothing merges. */
  for (int flush = 0; flush < 20; flush++) put_and_flush(db, writing, flush * 10, flush + 1);
  wait_for_compactions(db);
  CHECK(files_at_level0(db) == 20);
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(files) == 20);
  for (int at = 0; at < 20; at++) {
    CHECK(rocksdb_livefiles_level(files, at) == 0);
    CHECK(rocksdb_livefiles_entries(files, at) == (uint64_t)(20 - at));
  }
  rocksdb_livefiles_destroy(files);

  /* A filter of files is asked once for each. */
  Filter filter = {.hidden = 5};
  int all = rows(db, reading);
  rocksdb_readoptions_set_table_filter(reading, &filter, filter_destroyed, shows);
  CHECK(rocksdb_readoptions_has_table_filter(reading) == 1);
  CHECK(rows(db, reading) == all - 5);
  CHECK(filter.calls == 20);
  CHECK_GET(db, reading, "key0040", "value");
  CHECK(filter.calls == 20);
  /* Those outside of the bounds are not asked for. */
  rocksdb_readoptions_set_iterate_lower_bound(reading, "key0040", 7);
  rocksdb_readoptions_set_iterate_upper_bound(reading, "key0044", 7);
  filter.calls = 0;
  CHECK(rows(db, reading) == 0);
  CHECK(filter.calls == 1);
  rocksdb_readoptions_clear_table_filter(reading);
  CHECK(filter.destroyed == 1);
  CHECK(rows(db, reading) == 4);
  rocksdb_readoptions_set_iterate_lower_bound(reading, NULL, 0);
  rocksdb_readoptions_set_iterate_upper_bound(reading, NULL, 0);

  /* The same after another opening; a compaction that is asked for takes them all. */
  rocksdb_close(db);
  db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  wait_for_compactions(db);
  CHECK(files_at_level0(db) == 20);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(files_at_level0(db) == 0);
  CHECK(rows(db, reading) == all);
  put_and_flush(db, writing, 500, 1);
  wait_for_compactions(db);
  CHECK(files_at_level0(db) == 1);

  /* Switched on again while it is open. */
  const char* names[] = {"disable_auto_compactions"};
  const char* values[] = {"false"};
  rocksdb_set_options(db, 1, names, values, &error);
  CHECK_OK(error);
  wait_for_compactions(db);
  CHECK(files_at_level0(db) == 0);
  CHECK(rows(db, reading) == all + 1);
  values[0] = "true";
  rocksdb_set_options(db, 1, names, values, &error);
  CHECK_OK(error);
  put_and_flush(db, writing, 501, 1);
  wait_for_compactions(db);
  CHECK(files_at_level0(db) == 1);

  rocksdb_close(db);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_options_destroy(options);
  return 0;
}
