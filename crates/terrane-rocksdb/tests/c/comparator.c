/* Column families whose keys a function of the caller orders: by length, then from the greatest to the least. */
#include "check.h"

static int freed = 0;
static int single = 0;

static int compare(void* state, const char* a, size_t a_len, const char* b,
                   size_t b_len) {
  CHECK(state == &freed && freed == 0);
  /* A function of a caller need not be made for one key twice, nor for bytes that are no key. */
  if (a_len == b_len && memcmp(a, b, a_len) == 0) single++;
  if (a_len != b_len) return a_len < b_len ? -1 : 1;
  return memcmp(b, a, a_len);
}

static const char* compare_name(void* state) {
  (void)state;
  return "shortest-first";
}

static const char* other_name(void* state) {
  (void)state;
  return "another";
}

static void free_state(void* state) {
  CHECK(state == &freed);
  freed++;
}

static int other_freed = 0;

static void free_other(void* state) {
  CHECK(state == &other_freed);
  other_freed++;
}

static int compare_other(void* state, const char* a, size_t a_len,
                         const char* b, size_t b_len) {
  (void)state;
  size_t len = a_len < b_len ? a_len : b_len;
  int order = memcmp(a, b, len);
  return order != 0 ? order : (int)a_len - (int)b_len;
}

static void check_at(rocksdb_iterator_t* it, const char* key) {
  size_t len = 0;
  if (key == NULL) {
    CHECK(!rocksdb_iter_valid(it));
    return;
  }
  CHECK(rocksdb_iter_valid(it));
  const char* found = rocksdb_iter_key(it, &len);
  CHECK(len == strlen(key) && memcmp(found, key, len) == 0);
}

static void check_rows(rocksdb_t* db, rocksdb_column_family_handle_t* family,
                       const rocksdb_readoptions_t* reading,
                       const char* const* keys, int count) {
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, reading, family);
  rocksdb_iter_seek_to_first(it);
  for (int i = 0; i < count; i++, rocksdb_iter_next(it)) check_at(it, keys[i]);
  check_at(it, NULL);
  rocksdb_iter_seek_to_last(it);
  for (int i = count; i > 0; i--, rocksdb_iter_prev(it)) check_at(it, keys[i - 1]);
  check_at(it, NULL);
  rocksdb_iter_destroy(it);
}

static void refusals(const char* path, rocksdb_options_t* options) {
  char* error = NULL;
  const char* names[] = {"default", "own"};
  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_comparator_t* other = rocksdb_comparator_create(
      &other_freed, free_other, compare_other, other_name);
  rocksdb_options_t* wrong = rocksdb_options_create();
  rocksdb_options_set_comparator(wrong, other);
  const rocksdb_options_t* all[][2] = {{plain, options}, {options, plain}, {options, wrong}};
  for (int i = 0; i < 3; i++) {
    rocksdb_column_family_handle_t* handles[2];
    CHECK(rocksdb_open_column_families(plain, path, 2, names, all[i], handles, &error) == NULL);
    CHECK(error != NULL && strstr(error, ": does not match existing comparator ") != NULL);
    CHECK_ERROR(error, "Invalid argument: ");
  }
  size_t count = 0;
  char** listed = rocksdb_list_column_families(plain, path, &count, &error);
  CHECK_OK(error);
  CHECK(count == 2);
  rocksdb_list_column_families_destroy(listed, count);
  rocksdb_options_destroy(plain);
  rocksdb_comparator_destroy(other);
  CHECK(other_freed == 0);
  rocksdb_options_destroy(wrong);
  CHECK(other_freed == 1);
}

/* Which end of a range comes first says the comparator: "bb" comes before "ba", and that before "ab". */
static void ranges(rocksdb_t* db, rocksdb_column_family_handle_t* own, rocksdb_writeoptions_t* writing,
                   rocksdb_readoptions_t* reading) {
  char* error = NULL;
  rocksdb_delete_range_cf(db, writing, own, "ba", 2, "bb", 2, &error);
  CHECK_ERROR(error, "Invalid argument: end key comes before start key");
  rocksdb_delete_range_cf(db, writing, own, "bb", 2, "ba", 2, &error);
  CHECK_OK(error);
  const char* const one_less[] = {"", "z", "ba", "ab", "aa", "aaa"};
  check_rows(db, own, reading, one_less, 6);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_delete_range_cf(batch, own, "ab", 2, "ba", 2);
  rocksdb_write(db, writing, batch, &error);
  CHECK_ERROR(error, "Invalid argument: end key comes before start key");
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_delete_range_cf(batch, own, "ba", 2, "ab", 2);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  const char* const two_less[] = {"", "z", "ab", "aa", "aaa"};
  check_rows(db, own, reading, two_less, 5);
  rocksdb_writebatch_destroy(batch);
  rocksdb_put_cf(db, writing, own, "ba", 2, "f", 1, &error);
  CHECK_OK(error);
  rocksdb_put_cf(db, writing, own, "bb", 2, "f", 1, &error);
  CHECK_OK(error);
}

/* A file of rows, in the order of the comparator. */
static void ingest(rocksdb_t* db, rocksdb_column_family_handle_t* family, rocksdb_comparator_t* comparator,
                   const char* file, const char* const* keys, int count) {
  char* error = NULL;
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create_with_comparator(env, plain, comparator);
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  for (int i = 0; i < count; i++) {
    rocksdb_sstfilewriter_put(writer, keys[i], strlen(keys[i]), "f", 1, &error);
    CHECK_OK(error);
  }
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingest_external_file_cf(db, family, &file, 1, how, &error);
  CHECK_OK(error);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_options_destroy(plain);
  rocksdb_envoptions_destroy(env);
}

static size_t files_between(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* start,
                            const char* end) {
  rocksdb_column_family_metadata_options_t* options = rocksdb_column_family_metadata_options_create();
  rocksdb_column_family_metadata_options_set_start_key(options, start, start == NULL ? 0 : strlen(start));
  rocksdb_column_family_metadata_options_set_end_key(options, end, end == NULL ? 0 : strlen(end));
  rocksdb_column_family_metadata_t* found =
      rocksdb_get_column_family_metadata_cf_with_options(db, family, options);
  const size_t count = rocksdb_column_family_metadata_get_file_count(found);
  rocksdb_column_family_metadata_destroy(found);
  rocksdb_column_family_metadata_options_destroy(options);
  return count;
}

/* Files that are chosen by a range, and compacted by their names: the first has the greater keys by bytes. */
static void named_files(rocksdb_t* db, const rocksdb_options_t* options, rocksdb_comparator_t* comparator,
                        const char* directory) {
  char *error = NULL, **outputs = NULL;
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, options, "files", &error);
  CHECK_OK(error);
  const char* const keys[] = {"z", "y", "n", "m", "a"};
  char *first = path_in(directory, "first.sst"), *last = path_in(directory, "last.sst");
  ingest(db, family, comparator, first, keys, 3);
  ingest(db, family, comparator, last, keys + 3, 2);
  CHECK(files_between(db, family, NULL, NULL) == 2 && files_between(db, family, "z", "a") == 2);
  CHECK(files_between(db, family, "o", "b") == 2 && files_between(db, family, "y", "n") == 1);
  CHECK(files_between(db, family, "m", NULL) == 1 && files_between(db, family, NULL, "o") == 1);
  CHECK(files_between(db, family, "aa", NULL) == 0 && files_between(db, family, NULL, "") == 0);

  rocksdb_delete_cf(db, writing, family, "y", 1, &error);
  CHECK_OK(error);
  const rocksdb_livefiles_t* live = rocksdb_livefiles(db);
  const char* names[2];
  int named = 0;
  for (int i = 0; i < rocksdb_livefiles_count(live); i++) {
    if (strcmp(rocksdb_livefiles_column_family_name(live, i), "files") != 0) continue;
    CHECK(named < 2);
    names[named++] = rocksdb_livefiles_name(live, i);
  }
  CHECK(named == 2);
  size_t count = 0;
  rocksdb_compaction_options_t* how = rocksdb_compaction_options_create();
  rocksdb_compactionjobinfo_t* info = rocksdb_compactionjobinfo_create();
  rocksdb_compact_files_cf(db, family, how, names, 2, 6, -1, &outputs, &count, info, &error);
  CHECK_OK(error);
  CHECK(count > 0 && rocksdb_compactionjobinfo_output_files_count(info) == count);
  CHECK(rocksdb_compactionjobinfo_input_records(info) == 5 && rocksdb_compactionjobinfo_output_records(info) == 4);
  size_t len = 0;
  const char* output = rocksdb_compactionjobinfo_output_file_at(info, 0, &len);
  const rocksdb_table_properties_t* properties =
      rocksdb_compactionjobinfo_table_properties_for_file(info, output, len);
  CHECK(strcmp(rocksdb_table_properties_comparator_name(properties, &len), "shortest-first") == 0);
  rocksdb_compact_files_output_file_names_destroy(outputs, count);
  rocksdb_compactionjobinfo_destroy(info);
  rocksdb_compaction_options_destroy(how);
  rocksdb_livefiles_destroy(live);
  const char* const left[] = {"z", "n", "m", "a"};
  check_rows(db, family, reading, left, 4);
  rocksdb_drop_column_family(db, family, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  free(first);
  free(last);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char* path = path_in(arguments[1], "compared");
  rocksdb_comparator_t* comparator =
      rocksdb_comparator_create(&freed, free_state, compare, compare_name);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_comparator(options, comparator);
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_t* db = open_new(options, path);
  put(db, "only", "one");
  CHECK_GET(db, reading, "only", "one");
  CHECK(single == 0);

  rocksdb_column_family_handle_t* own =
      rocksdb_create_column_family(db, options, "own", &error);
  CHECK_OK(error);
  const char* const keys[] = {"", "z", "b", "bb", "ba", "aa", "aaa"};
  for (int round = 0; round < 2; round++) {
    for (int i = 6; i >= 0; i--) {
      rocksdb_put_cf(db, writing, own, keys[i], strlen(keys[i]), "v", 1, &error);
      CHECK_OK(error);
    }
    check_rows(db, own, reading, keys, 7);
    rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
    rocksdb_flush_cf(db, flushing, own, &error);
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flushing);
    rocksdb_compact_range_cf(db, own, NULL, 0, NULL, 0);
    check_rows(db, own, reading, keys, 7);
  }
  CHECK_GET_CF(db, reading, own, "ba", "v");
  CHECK_GET_CF(db, reading, own, "bc", NULL);

  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, reading, own);
  rocksdb_iter_seek(it, "c", 1);
  check_at(it, "b");
  rocksdb_iter_seek_for_prev(it, "bz", 2);
  check_at(it, "b");
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iterate_lower_bound(bounded, "b", 1);
  rocksdb_readoptions_set_iterate_upper_bound(bounded, "aa", 2);
  check_rows(db, own, bounded, keys + 2, 3);
  rocksdb_readoptions_destroy(bounded);

  rocksdb_delete_range_cf(db, writing, own, "b", 1, "ba", 2, &error);
  CHECK_OK(error);
  const char* const left[] = {"", "z", "ba", "aa", "aaa"};
  check_rows(db, own, reading, left, 5);

  char* file = path_in(arguments[1], "rows.sst");
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_sstfilewriter_t* writer =
      rocksdb_sstfilewriter_create_with_comparator(env, plain, comparator);
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put(writer, "bb", 2, "f", 1, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put(writer, "bc", 2, "f", 1, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_sstfilewriter_put(writer, "ab", 2, "f", 1, &error);
  CHECK_OK(error);
  /* By this comparator "bb" comes before "ba". */
  rocksdb_sstfilewriter_delete_range(writer, "ba", 2, "bb", 2, &error);
  CHECK_ERROR(error, "Invalid argument: end key comes before start key");
  rocksdb_sstfilewriter_delete_range(writer, "bb", 2, "ba", 2, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  const char* files[] = {file};
  rocksdb_ingest_external_file_cf(db, own, files, 1, how, &error);
  CHECK_OK(error);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_options_destroy(plain);
  rocksdb_envoptions_destroy(env);
  const char* const ingested[] = {"", "z", "bb", "ba", "ab", "aa", "aaa"};
  check_rows(db, own, reading, ingested, 7);
  ranges(db, own, writing, reading);
  check_rows(db, own, reading, ingested, 7);
  named_files(db, options, comparator, arguments[1]);
  rocksdb_column_family_handle_destroy(own);
  rocksdb_close(db);

  refusals(path, options);

  const char* names[] = {"default", "own"};
  const rocksdb_options_t* both[] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  db = rocksdb_open_column_families(options, path, 2, names, both, handles, &error);
  CHECK_OK(error);
  /* The database keeps what it compares by, whoever else lets go of it. */
  rocksdb_comparator_destroy(comparator);
  rocksdb_options_destroy(options);
  CHECK(freed == 0);
  check_rows(db, handles[1], reading, ingested, 7);
  CHECK_GET(db, reading, "only", "one");
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(db);
  CHECK(freed == 1);
  CHECK(single == 0);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_readoptions_destroy(reading);
  free(file);
  free(path);
  return 0;
}
