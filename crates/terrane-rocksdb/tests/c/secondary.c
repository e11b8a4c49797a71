/* A database that is open for writing, followed by a second handle; identities of checkpoints. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static rocksdb_readoptions_t* reading;

static void put_cf(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* key, const char* value) {
  char* error = NULL;
  rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
  rocksdb_put_cf(db, options, cf, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
  rocksdb_writeoptions_destroy(options);
}

static void default_family(rocksdb_options_t* options, rocksdb_t* db, const char* path, const char* second_path) {
  char* error = NULL;
  put(db, "k", "first");
  rocksdb_t* second = rocksdb_open_as_secondary(options, path, second_path, &error);
  CHECK_OK(error);
  CHECK_GET(second, reading, "k", "first");
  rocksdb_iterator_t* iter = rocksdb_create_iterator(second, reading);
  put(db, "k", "second");
  put(db, "l", "more");
  CHECK_GET(second, reading, "k", "first");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_try_catch_up_with_primary(second, &error);
  CHECK_OK(error);
  CHECK_GET(second, reading, "k", "second");
  CHECK_GET(second, reading, "l", "more");
  CHECK(rocksdb_get_latest_sequence_number(second) == rocksdb_get_latest_sequence_number(db));
  /* An iterator stays with what it saw. */
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "k", "first");
  rocksdb_iter_destroy(iter);
  iter = rocksdb_create_iterator(second, reading);
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "l", "more");
  rocksdb_iter_destroy(iter);
  rocksdb_column_family_handle_t* handle = rocksdb_get_default_column_family_handle(second);
  rocksdb_create_iterators(second, reading, &handle, &iter, 1, &error);
  CHECK_OK(error);
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "l", "more");
  rocksdb_iter_destroy(iter);
  rocksdb_column_family_handle_destroy(handle);
  const char* keys[2] = {"k", "l"};
  const size_t lens[2] = {1, 1};
  char *values[2], *errors[2];
  size_t value_lens[2];
  rocksdb_multi_get(second, reading, 2, keys, lens, values, value_lens, errors);
  CHECK(errors[0] == NULL && errors[1] == NULL);
  check_value(values[0], value_lens[0], "second", __FILE__, __LINE__);
  check_value(values[1], value_lens[1], "more", __FILE__, __LINE__);
  rocksdb_column_family_metadata_t* metadata = rocksdb_get_column_family_metadata(second);
  CHECK(rocksdb_column_family_metadata_get_file_count(metadata) == 1);
  rocksdb_column_family_metadata_destroy(metadata);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_put(second, writing, "k", 1, "x", 1, &error);
  CHECK_ERROR(error, "Not implemented: ");
  rocksdb_writeoptions_destroy(writing);
  rocksdb_try_catch_up_with_primary(db, &error);
  CHECK_ERROR(error, "Not implemented: ");
  rocksdb_close(second);
}

static void families(rocksdb_options_t* options, rocksdb_t* db, const char* path, const char* second_path) {
  char* error = NULL;
  const char* names[2] = {"default", "other"};
  const rocksdb_options_t* all[2] = {options, options};
  rocksdb_column_family_handle_t *other = rocksdb_create_column_family(db, options, "other", &error), *seen[2];
  CHECK_OK(error);
  put_cf(db, other, "k", "of other");
  rocksdb_t* second =
      rocksdb_open_as_secondary_column_families(options, path, second_path, 2, names, all, seen, &error);
  CHECK_OK(error);
  CHECK_GET_CF(second, reading, seen[1], "k", "of other");
  put_cf(db, other, "k", "later");
  CHECK_GET_CF(second, reading, seen[1], "k", "of other");
  rocksdb_try_catch_up_with_primary(second, &error);
  CHECK_OK(error);
  CHECK_GET_CF(second, reading, seen[1], "k", "later");
  rocksdb_drop_column_family(db, other, &error);
  CHECK_OK(error);
  rocksdb_try_catch_up_with_primary(second, &error);
  CHECK_OK(error);
  CHECK_GET_CF(second, reading, seen[1], "k", "later");
  /* One that is made under the name of the dropped one is another. */
  rocksdb_column_family_handle_destroy(other);
  other = rocksdb_create_column_family(db, options, "other", &error);
  CHECK_OK(error);
  put_cf(db, other, "k", "of the new one");
  rocksdb_try_catch_up_with_primary(second, &error);
  CHECK_OK(error);
  CHECK_GET_CF(second, reading, seen[1], "k", "later");
  rocksdb_drop_column_family(db, other, &error);
  CHECK_OK(error);
  rocksdb_try_catch_up_with_primary(second, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(seen[0]);
  rocksdb_column_family_handle_destroy(seen[1]);
  rocksdb_column_family_handle_destroy(other);
  rocksdb_close(second);
}

/* Catches up again and again while others read two families, which every write changes together. */
static rocksdb_t* followed;
static rocksdb_column_family_handle_t* pair[2];
static atomic_int is_over;
/* How often each reader has read. */
static atomic_int rounds[2];
/* Rounds and writes that each must have done; writes that end the test by name if a reader never comes to its rounds. */
enum { ROUNDS = 20, WRITES = 60, WRITES_MAX = 1000000 };

static void* read_pairs(void* own_rounds) {
  const rocksdb_column_family_handle_t* const handles[2] = {pair[0], pair[1]};
  const char* keys[2] = {"pair", "pair"};
  const size_t lens[2] = {4, 4};
  while (!atomic_load(&is_over)) {
    /* So that one thread at a time, as under valgrind, is not all the time a reader. */
    sched_yield();
    char *values[2], *errors[2], *error = NULL;
    size_t value_lens[2];
    rocksdb_multi_get_cf(followed, reading, handles, 2, keys, lens, values, value_lens, errors);
    CHECK_OK(errors[0]);
    CHECK_OK(errors[1]);
    CHECK(value_lens[0] == value_lens[1] && memcmp(values[0], values[1], value_lens[0]) == 0);
    rocksdb_free(values[0]);
    rocksdb_free(values[1]);
    rocksdb_iterator_t* iters[2];
    rocksdb_create_iterators(followed, reading, pair, iters, 2, &error);
    CHECK_OK(error);
    const char* seen[2];
    for (int at = 0; at < 2; at++) {
      rocksdb_iter_seek(iters[at], "pair", 4);
      CHECK(rocksdb_iter_valid(iters[at]));
      seen[at] = rocksdb_iter_value(iters[at], &value_lens[at]);
    }
    CHECK(value_lens[0] == value_lens[1] && memcmp(seen[0], seen[1], value_lens[0]) == 0);
    rocksdb_iter_destroy(iters[0]);
    rocksdb_iter_destroy(iters[1]);
    atomic_fetch_add((atomic_int*)own_rounds, 1);
  }
  return NULL;
}

static void write_pair(rocksdb_t* db, rocksdb_column_family_handle_t* other, int number) {
  char *error = NULL, text[16];
  int len = snprintf(text, sizeof text, "%d", number);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "pair", 4, text, len);
  rocksdb_writebatch_put_cf(batch, other, "pair", 4, text, len);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
  rocksdb_writeoptions_destroy(writing);
}

static void read_beside(rocksdb_options_t* options, const char* path, const char* second_path) {
  char* error = NULL;
  rocksdb_t* db = open_new(options, path);
  const char* names[2] = {"default", "pairs"};
  const rocksdb_options_t* all[2] = {options, options};
  rocksdb_column_family_handle_t* other = rocksdb_create_column_family(db, options, "pairs", &error);
  CHECK_OK(error);
  write_pair(db, other, 0);
  followed = rocksdb_open_as_secondary_column_families(options, path, second_path, 2, names, all, pair, &error);
  CHECK_OK(error);
  pthread_t readers[2];
  for (int at = 0; at < 2; at++) CHECK(pthread_create(&readers[at], NULL, read_pairs, &rounds[at]) == 0);
  int number = 0;
  while (number < WRITES || atomic_load(&rounds[0]) < ROUNDS || atomic_load(&rounds[1]) < ROUNDS) {
    if (++number > WRITES_MAX) {
      fprintf(stderr, "read_beside: readers made %d and %d rounds beside %d writes\n", atomic_load(&rounds[0]),
              atomic_load(&rounds[1]), WRITES_MAX);
      exit(1);
    }
    write_pair(db, other, number);
    rocksdb_try_catch_up_with_primary(followed, &error);
    CHECK_OK(error);
    sched_yield();
  }
  atomic_store(&is_over, 1);
  for (int at = 0; at < 2; at++) CHECK(pthread_join(readers[at], NULL) == 0);
  char last[16];
  snprintf(last, sizeof last, "%d", number);
  CHECK_GET_CF(followed, reading, pair[1], "pair", last);
  rocksdb_column_family_handle_destroy(pair[0]);
  rocksdb_column_family_handle_destroy(pair[1]);
  rocksdb_close(followed);
  rocksdb_column_family_handle_destroy(other);
  rocksdb_close(db);
}

/* The identity of a checkpoint of a database that was opened with these options is the same, or not. */
static int is_kept(rocksdb_options_t* options, const char* path, const char* copy) {
  char* error = NULL;
  size_t len = 0;
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  char* before = rocksdb_get_db_identity(db, &len);
  CHECK(len == 36);
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
  CHECK_OK(error);
  rocksdb_checkpoint_create(checkpoint, copy, 0, &error);
  CHECK_OK(error);
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_close(db);
  db = rocksdb_open(options, copy, &error);
  CHECK_OK(error);
  char* after = rocksdb_get_db_identity(db, &len);
  int same = strcmp(before, after) == 0;
  rocksdb_free(before);
  rocksdb_free(after);
  rocksdb_close(db);
  rocksdb_destroy_db(options, copy, &error);
  CHECK_OK(error);
  FILE* left = fopen(copy, "r");
  CHECK(left == NULL);
  return same;
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char *path = path_in(arguments[1], "db"), *second_path = path_in(arguments[1], "second");
  char* copy = path_in(arguments[1], "copy");
  reading = rocksdb_readoptions_create();
  rocksdb_options_t* options = rocksdb_options_create();
  CHECK(rocksdb_open_as_secondary(options, path, second_path, &error) == NULL);
  CHECK_ERROR(error, "IO error: No such file or directory");
  rocksdb_t* db = open_new(options, path);
  default_family(options, db, path, second_path);
  families(options, db, path, second_path);
  rocksdb_close(db);
  char* pairs = path_in(arguments[1], "pairs");
  read_beside(options, pairs, second_path);
  free(pairs);

  const char* names[1] = {"default"};
  const rocksdb_options_t* all[1] = {options};
  rocksdb_column_family_handle_t* handle;
  char stamp[8] = {0};
  db = rocksdb_open_and_trim_history(options, path, 1, names, all, &handle, stamp, 8, &error);
  CHECK_OK(error);
  CHECK_GET_CF(db, reading, handle, "k", "second");
  rocksdb_column_family_handle_destroy(handle);
  rocksdb_close(db);

  CHECK(is_kept(options, path, copy));
  rocksdb_options_set_write_dbid_to_manifest(options, 0);
  CHECK(!is_kept(options, path, copy));
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  free(path);
  free(second_path);
  free(copy);
  return 0;
}
