/* Batches that can be read: over nothing, over a database, and as iterators. */
#include "check.h"

static char* error;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;

#define OVER(batch, db, key, expected)                                         \
  do {                                                                         \
    size_t len_ = 0;                                                           \
    char* value_ = rocksdb_writebatch_wi_get_from_batch_and_db(                \
        (batch), (db), reads, (key), strlen(key), &len_, &error);              \
    CHECK_OK(error);                                                           \
    check_value(value_, len_, (expected), __FILE__, __LINE__);                 \
  } while (0)

#define ALONE(batch, options, key, expected)                                   \
  do {                                                                         \
    size_t len_ = 0;                                                           \
    char* value_ = rocksdb_writebatch_wi_get_from_batch(                       \
        (batch), (options), (key), strlen(key), &len_, &error);                \
    CHECK_OK(error);                                                           \
    check_value(value_, len_, (expected), __FILE__, __LINE__);                 \
  } while (0)

static void wi_put(rocksdb_writebatch_wi_t* batch, const char* key,
                   const char* value) {
  rocksdb_writebatch_wi_put(batch, key, strlen(key), value, strlen(value));
}

/* The iterator goes through these keys, and back the same way. */
static void check_keys(rocksdb_iterator_t* iter, const char* const* keys,
                       size_t count) {
  rocksdb_iter_seek_to_first(iter);
  for (size_t at = 0; at < count; at++) {
    size_t len = 0;
    CHECK(rocksdb_iter_valid(iter));
    const char* key = rocksdb_iter_key(iter, &len);
    CHECK(len == strlen(keys[at]) && memcmp(key, keys[at], len) == 0);
    rocksdb_iter_next(iter);
  }
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_to_last(iter);
  for (size_t at = count; at > 0; at--) {
    size_t len = 0;
    CHECK(rocksdb_iter_valid(iter));
    const char* key = rocksdb_iter_key(iter, &len);
    CHECK(len == strlen(keys[at - 1]) && memcmp(key, keys[at - 1], len) == 0);
    rocksdb_iter_prev(iter);
  }
  CHECK(!rocksdb_iter_valid(iter));
  /* From each key one step to either side. */
  for (size_t at = 0; at < count; at++) {
    rocksdb_iter_seek(iter, keys[at], strlen(keys[at]));
    rocksdb_iter_next(iter);
    CHECK(rocksdb_iter_valid(iter) == (at + 1 < count));
    rocksdb_iter_seek(iter, keys[at], strlen(keys[at]));
    rocksdb_iter_prev(iter);
    CHECK(rocksdb_iter_valid(iter) == (at > 0));
    if (at > 0) {
      size_t len = 0;
      const char* key = rocksdb_iter_key(iter, &len);
      CHECK(len == strlen(keys[at - 1]) &&
            memcmp(key, keys[at - 1], len) == 0);
      rocksdb_iter_next(iter);
      key = rocksdb_iter_key(iter, &len);
      CHECK(len == strlen(keys[at]) && memcmp(key, keys[at], len) == 0);
    }
  }
  rocksdb_iter_get_error(iter, &error);
  CHECK_OK(error);
}

#define KEYS(iter, ...)                                                        \
  do {                                                                         \
    const char* keys_[] = {__VA_ARGS__};                                       \
    check_keys((iter), keys_, sizeof(keys_) / sizeof(keys_[0]));               \
  } while (0)

static void values(rocksdb_t* db, const rocksdb_options_t* options) {
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  wi_put(batch, "a", "mine");
  wi_put(batch, "a", "mine again");
  wi_put(batch, "empty", "");
  rocksdb_writebatch_wi_delete(batch, "b", 1);
  rocksdb_writebatch_wi_singledelete(batch, "c", 1);
  CHECK(rocksdb_writebatch_wi_count(batch) == 5);
  ALONE(batch, options, "a", "mine again");
  ALONE(batch, options, "empty", "");
  ALONE(batch, options, "b", NULL);
  ALONE(batch, options, "d", NULL);
  OVER(batch, db, "a", "mine again");
  OVER(batch, db, "b", NULL);
  OVER(batch, db, "c", NULL);
  OVER(batch, db, "d", "4");
  CHECK_GET(db, reads, "a", "1");

  rocksdb_pinnableslice_t* pinned =
      rocksdb_writebatch_wi_get_pinned_from_batch_and_db(batch, db, reads, "a",
                                                         1, &error);
  size_t len = 0;
  CHECK(memcmp(rocksdb_pinnableslice_value(pinned, &len), "mine again", 10) ==
        0);
  CHECK(len == 10);
  rocksdb_pinnableslice_destroy(pinned);
  CHECK(rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
            batch, db, reads, "b", 1, &error) == NULL);
  CHECK_OK(error);

  /* Ranges hide what was written before them only. */
  rocksdb_writebatch_wi_delete_range(batch, "a", 1, "e", 1);
  OVER(batch, db, "a", NULL);
  OVER(batch, db, "d", NULL);
  OVER(batch, db, "e", "5");
  wi_put(batch, "d", "later");
  OVER(batch, db, "d", "later");

  /* The bytes are those of a batch. */
  const char* data = rocksdb_writebatch_wi_data(batch, &len);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  CHECK(rocksdb_writebatch_count(copy) == 7);
  rocksdb_writebatch_destroy(copy);

  rocksdb_write_writebatch_wi(db, writes, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, reads, "a", NULL);
  CHECK_GET(db, reads, "d", "later");
  CHECK_GET(db, reads, "empty", "");
  rocksdb_writebatch_wi_clear(batch);
  CHECK(rocksdb_writebatch_wi_count(batch) == 0);
  OVER(batch, db, "d", "later");
  rocksdb_writebatch_wi_destroy(batch);
}

static void save_points(rocksdb_t* db) {
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(100, 0);
  wi_put(batch, "s", "1");
  rocksdb_writebatch_wi_set_save_point(batch);
  wi_put(batch, "s", "2");
  wi_put(batch, "t", "2");
  rocksdb_writebatch_wi_delete_range(batch, "e", 1, "z", 1);
  rocksdb_writebatch_wi_set_save_point(batch);
  wi_put(batch, "s", "3");
  OVER(batch, db, "s", "3");
  rocksdb_writebatch_wi_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  OVER(batch, db, "s", NULL);
  OVER(batch, db, "e", NULL);
  rocksdb_writebatch_wi_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  OVER(batch, db, "s", "1");
  OVER(batch, db, "t", NULL);
  OVER(batch, db, "e", "5");
  CHECK(rocksdb_writebatch_wi_count(batch) == 1);
  rocksdb_writebatch_wi_rollback_to_save_point(batch, &error);
  CHECK_ERROR(error, "NotFound: ");
  rocksdb_writebatch_wi_destroy(batch);
}

static void merges(const char* directory) {
  char* path = path_in(directory, "merges");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_t* db = open_new(options, path);
  const char two[8] = {2}, three[8] = {3};
  rocksdb_put(db, writes, "n", 1, two, 8, &error);
  CHECK_OK(error);
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_merge(batch, "n", 1, three, 8);
  rocksdb_writebatch_wi_merge(batch, "n", 1, three, 8);
  size_t len = 0;
  char* value = rocksdb_writebatch_wi_get_from_batch(batch, options, "n", 1,
                                                     &len, &error);
  CHECK(value == NULL);
  CHECK_ERROR(error, "Merge in progress: ");
  value = rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, reads, "n", 1,
                                                      &len, &error);
  CHECK_OK(error);
  CHECK(len == 8 && value[0] == 8);
  rocksdb_free(value);
  rocksdb_writebatch_wi_put(batch, "n", 1, three, 8);
  rocksdb_writebatch_wi_merge(batch, "n", 1, two, 8);
  value = rocksdb_writebatch_wi_get_from_batch(batch, options, "n", 1, &len,
                                               &error);
  CHECK_OK(error);
  CHECK(len == 8 && value[0] == 5);
  rocksdb_free(value);

  rocksdb_iterator_t* iter = rocksdb_writebatch_wi_create_iterator_with_base(
      batch, rocksdb_create_iterator(db, reads));
  rocksdb_iter_seek_to_first(iter);
  CHECK(rocksdb_iter_valid(iter));
  CHECK(rocksdb_iter_value(iter, &len)[0] == 5 && len == 8);
  rocksdb_iter_destroy(iter);
  rocksdb_writebatch_wi_destroy(batch);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

static void iterators(const char* directory) {
  char* path = path_in(directory, "iterators");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = open_new(options, path);
  const char* keys[] = {"b", "d", "f", "h", "j"};
  for (size_t at = 0; at < 5; at++) put(db, keys[at], "base");

  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  /* Without a batch the base stays the caller's. */
  rocksdb_iterator_t* base = rocksdb_create_iterator(db, reads);
  CHECK(rocksdb_writebatch_wi_create_iterator_with_base(NULL, base) == NULL);
  KEYS(base, "b", "d", "f", "h", "j");
  rocksdb_iterator_t* iter =
      rocksdb_writebatch_wi_create_iterator_with_base(batch, base);
  KEYS(iter, "b", "d", "f", "h", "j");
  wi_put(batch, "a", "own");
  wi_put(batch, "d", "own");
  wi_put(batch, "e", "own");
  wi_put(batch, "z", "own");
  rocksdb_writebatch_wi_delete(batch, "f", 1);
  rocksdb_writebatch_wi_delete(batch, "g", 1);
  KEYS(iter, "a", "b", "d", "e", "h", "j", "z");
  rocksdb_iter_seek(iter, "c", 1);
  CHECK_ROW(iter, "d", "own");
  rocksdb_iter_next(iter);
  rocksdb_iter_next(iter);
  CHECK_ROW(iter, "h", "base");
  rocksdb_iter_seek_for_prev(iter, "g", 1);
  CHECK_ROW(iter, "e", "own");
  rocksdb_writebatch_wi_delete_range(batch, "c", 1, "i", 1);
  KEYS(iter, "a", "b", "j", "z");
  wi_put(batch, "g", "after");
  KEYS(iter, "a", "b", "g", "j", "z");

  /* A batch that is changed under the iterator: the rows that are passed go. */
  rocksdb_iter_seek_to_first(iter);
  int count = 0;
  while (rocksdb_iter_valid(iter)) {
    size_t len = 0;
    const char* key = rocksdb_iter_key(iter, &len);
    char copy[8];
    memcpy(copy, key, len);
    rocksdb_writebatch_wi_delete(batch, copy, len);
    rocksdb_iter_next(iter);
    count++;
  }
  CHECK(count == 5);
  rocksdb_iter_seek_to_first(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);

  /* Bounds hold for both. */
  rocksdb_writebatch_wi_clear(batch);
  wi_put(batch, "a", "own");
  wi_put(batch, "c", "own");
  wi_put(batch, "i", "own");
  rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iterate_lower_bound(bounded, "b", 1);
  rocksdb_readoptions_set_iterate_upper_bound(bounded, "h", 1);
  iter = rocksdb_writebatch_wi_create_iterator_with_base_readopts(
      batch, rocksdb_create_iterator(db, bounded), bounded);
  KEYS(iter, "b", "c", "d", "f");
  rocksdb_iter_seek(iter, "a", 1);
  CHECK_ROW(iter, "b", "base");
  rocksdb_iter_seek_for_prev(iter, "z", 1);
  CHECK_ROW(iter, "f", "base");
  /* The batch may go first. */
  rocksdb_writebatch_wi_destroy(batch);
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "b", "base");
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(bounded);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

static void told_put(void* state, const char* key, size_t key_len,
                     const char* value, size_t value_len) {
  CHECK(key_len == 2 && memcmp(key, "k1", 2) == 0);
  CHECK(value_len == 2 && memcmp(value, "v1", 2) == 0);
  *(int*)state += 1;
}

static void told_delete(void* state, const char* key, size_t key_len) {
  CHECK(key_len == 2 && memcmp(key, "k1", 2) == 0);
  *(int*)state += 10;
}

static void families_and_parts(const char* directory) {
  char* path = path_in(directory, "families");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_t* db = open_new(options, path);
  rocksdb_column_family_handle_t* other =
      rocksdb_create_column_family(db, options, "other", &error);
  CHECK_OK(error);
  rocksdb_writebatch_wi_t* batch =
      rocksdb_writebatch_wi_create_with_params(NULL, 0, 1, 0, 0);
  const char* parts[] = {"k", "1"};
  const size_t one[] = {1, 1};
  const char* value_parts[] = {"v", "1"};
  rocksdb_writebatch_wi_putv(batch, 2, parts, one, 2, value_parts, one);
  rocksdb_writebatch_wi_deletev(batch, 2, parts, one);
  int told = 0;
  rocksdb_writebatch_wi_iterate(batch, &told, told_put, told_delete);
  CHECK(told == 11);
  rocksdb_writebatch_wi_put_log_data(batch, "log", 3);
  CHECK(rocksdb_writebatch_wi_count(batch) == 2);

  rocksdb_writebatch_wi_putv_cf(batch, other, 2, parts, one, 2, value_parts,
                                one);
  rocksdb_writebatch_wi_put_cf(batch, other, "x", 1, "y", 1);
  rocksdb_writebatch_wi_delete_cf(batch, other, "gone", 4);
  rocksdb_writebatch_wi_singledelete_cf(batch, other, "gone", 4);
  const char eight[] = {1, 0, 0, 0, 0, 0, 0, 0};
  const char* operand[] = {eight};
  const size_t eight_len[] = {8};
  rocksdb_writebatch_wi_mergev_cf(batch, other, 2, parts, one, 1, operand,
                                  eight_len);
  rocksdb_writebatch_wi_merge_cf(batch, other, "n", 1, eight, 8);
  size_t len = 0;
  char* value = rocksdb_writebatch_wi_get_from_batch_cf(batch, options, other,
                                                        "x", 1, &len, &error);
  CHECK_OK(error);
  check_value(value, len, "y", __FILE__, __LINE__);
  value = rocksdb_writebatch_wi_get_from_batch_and_db_cf(
      batch, db, reads, other, "n", 1, &len, &error);
  CHECK_OK(error);
  CHECK(len == 8 && value[0] == 1);
  rocksdb_free(value);
  ALONE(batch, options, "x", NULL);
  rocksdb_pinnableslice_t* pinned =
      rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
          batch, db, reads, other, "x", 1, &error);
  CHECK(rocksdb_pinnableslice_value(pinned, &len)[0] == 'y');
  rocksdb_pinnableslice_destroy(pinned);

  rocksdb_iterator_t* iter = rocksdb_writebatch_wi_create_iterator_with_base_cf(
      batch, rocksdb_create_iterator_cf(db, reads, other), other);
  KEYS(iter, "k1", "n", "x");
  rocksdb_iter_destroy(iter);
  const char* start[] = {"k"};
  const char* end[] = {"z"};
  rocksdb_writebatch_wi_delete_rangev_cf(batch, other, 1, start, one, end, one);
  rocksdb_writebatch_wi_put_cf(batch, other, "y", 1, "y", 1);
  iter = rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
      batch, rocksdb_create_iterator_cf(db, reads, other), other, reads);
  KEYS(iter, "y");
  rocksdb_iter_destroy(iter);
  rocksdb_write_writebatch_wi(db, writes, batch, &error);
  CHECK_OK(error);
  CHECK_GET_CF(db, reads, other, "x", NULL);
  CHECK_GET_CF(db, reads, other, "y", "y");

  /* Without timestamps these are refused. */
  rocksdb_writebatch_wi_update_timestamps(batch, "", 0, NULL, NULL, &error);
  CHECK_ERROR(error, "Not implemented: ");
  rocksdb_writebatch_wi_destroy(batch);

  /* What passes the limit is left out. */
  batch = rocksdb_writebatch_wi_create_with_params(NULL, 0, 1, 40, 0);
  wi_put(batch, "k", "a value that is longer than the batch may be");
  CHECK(rocksdb_writebatch_wi_count(batch) == 0);
  rocksdb_writebatch_wi_destroy(batch);
  rocksdb_column_family_handle_destroy(other);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  char* path = path_in(argv[1], "db");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = open_new(options, path);
  put(db, "a", "1");
  put(db, "b", "2");
  put(db, "c", "3");
  put(db, "d", "4");
  put(db, "e", "5");
  values(db, options);
  save_points(db);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
  merges(argv[1]);
  iterators(argv[1]);
  families_and_parts(argv[1]);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
