/* Column families whose keys have timestamps: numbers of 8 bytes, the least byte first. */
#include "check.h"

static char* error;
static rocksdb_writeoptions_t* writes;
static rocksdb_flushoptions_t* flushing;
static int freed = 0;

#define SIZE 8

typedef struct {
  char bytes[SIZE];
} stamp;

static stamp at(uint64_t number) {
  stamp result;
  for (int i = 0; i < SIZE; i++) result.bytes[i] = (char)(number >> (8 * i));
  return result;
}

static uint64_t number(const char* bytes) {
  uint64_t result = 0;
  for (int i = 0; i < SIZE; i++) result |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
  return result;
}

static int compare_keys(const char* a, size_t a_len, const char* b, size_t b_len) {
  size_t len = a_len < b_len ? a_len : b_len;
  int order = len == 0 ? 0 : memcmp(a, b, len);
  return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_ts(void* state, const char* a, size_t a_len, const char* b,
                      size_t b_len) {
  CHECK(state == &freed && freed == 0);
  CHECK(a_len == SIZE && b_len == SIZE);
  uint64_t left = number(a), right = number(b);
  return (left > right) - (left < right);
}

/* What the next comparison of two timestamps by themselves does first: nobody else compares them so but who goes over versions. */
static void (*meanwhile)(void) = NULL;

static int compare_ts_alone(void* state, const char* a, size_t a_len, const char* b,
                            size_t b_len) {
  void (*run)(void) = meanwhile;
  meanwhile = NULL;
  if (run != NULL) run();
  return compare_ts(state, a, a_len, b, b_len);
}

static int compare(void* state, const char* a, size_t a_len, const char* b,
                   size_t b_len) {
  CHECK(state == &freed && freed == 0);
  CHECK(a_len >= SIZE && b_len >= SIZE);
  int order = compare_keys(a, a_len - SIZE, b, b_len - SIZE);
  return order != 0 ? order
                    : compare_ts(state, b + b_len - SIZE, SIZE, a + a_len - SIZE, SIZE);
}

static int compare_without(void* state, const char* a, size_t a_len,
                           unsigned char a_has, const char* b, size_t b_len,
                           unsigned char b_has) {
  CHECK(state == &freed);
  return compare_keys(a, a_has ? a_len - SIZE : a_len, b, b_has ? b_len - SIZE : b_len);
}

static const char* compare_name(void* state) {
  (void)state;
  return "keys.u64ts";
}

static void free_state(void* state) {
  CHECK(state == &freed);
  freed++;
}

static rocksdb_readoptions_t* reads_at(uint64_t when) {
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_readoptions_set_timestamp(reads, at(when).bytes, SIZE);
  return reads;
}

static void put_at(rocksdb_t* db, const char* key, uint64_t when, const char* value) {
  rocksdb_put_with_ts(db, writes, key, strlen(key), at(when).bytes, SIZE, value,
                      strlen(value), &error);
  CHECK_OK(error);
}

static void delete_at(rocksdb_t* db, const char* key, uint64_t when) {
  rocksdb_delete_with_ts(db, writes, key, strlen(key), at(when).bytes, SIZE, &error);
  CHECK_OK(error);
}

/* What a key has at a time, and since when; nothing if the value is null. */
static void check_at(rocksdb_t* db, const char* key, uint64_t when,
                     const char* expected, uint64_t since) {
  rocksdb_readoptions_t* reads = reads_at(when);
  size_t len = 1, stamp_len = 1;
  char* found = NULL;
  char* value = rocksdb_get_with_ts(db, reads, key, strlen(key), &len, &found,
                                    &stamp_len, &error);
  CHECK_OK(error);
  if (expected == NULL) {
    CHECK(value == NULL && len == 0 && stamp_len == 0);
  } else {
    CHECK(stamp_len == SIZE && number(found) == since);
    rocksdb_free(found);
  }
  check_value(value, len, expected, __FILE__, __LINE__);
  value = rocksdb_get(db, reads, key, strlen(key), &len, &error);
  CHECK_OK(error);
  check_value(value, len, expected, __FILE__, __LINE__);
  rocksdb_readoptions_destroy(reads);
}

static void check_refused(rocksdb_t* db, uint64_t when) {
  rocksdb_readoptions_t* reads = reads_at(when);
  size_t len = 0;
  CHECK(rocksdb_get(db, reads, "a", 1, &len, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Read timestamp: ");
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek_to_first(it);
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &error);
  CHECK_ERROR(error, "Invalid argument: Read timestamp: ");
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(reads);
}

typedef struct {
  const char* key;
  uint64_t since;
  const char* value;
} row;

static void check_row(rocksdb_iterator_t* it, const row* expected) {
  size_t len = 0;
  CHECK(rocksdb_iter_valid(it));
  const char* found = rocksdb_iter_key(it, &len);
  CHECK(len == strlen(expected->key) && memcmp(found, expected->key, len) == 0);
  found = rocksdb_iter_timestamp(it, &len);
  CHECK(len == SIZE && number(found) == expected->since);
  CHECK(number(rocksdb_iter_timestamp_slice(it).data) == expected->since);
  found = rocksdb_iter_value(it, &len);
  CHECK(len == strlen(expected->value) && memcmp(found, expected->value, len) == 0);
}

static void check_rows(rocksdb_t* db, rocksdb_readoptions_t* reads,
                       const row* rows, int count) {
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek_to_first(it);
  for (int i = 0; i < count; i++, rocksdb_iter_next(it)) check_row(it, &rows[i]);
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_seek_to_last(it);
  for (int i = count; i > 0; i--, rocksdb_iter_prev(it)) check_row(it, &rows[i - 1]);
  CHECK(!rocksdb_iter_valid(it));
  /* From each row to its sides and back. */
  for (int i = 0; i < count; i++) {
    size_t len = strlen(rows[i].key);
    rocksdb_iter_seek(it, rows[i].key, len);
    check_row(it, &rows[i]);
    rocksdb_iter_prev(it);
    CHECK(rocksdb_iter_valid(it) == (i > 0));
    if (i > 0) {
      check_row(it, &rows[i - 1]);
      rocksdb_iter_next(it);
      check_row(it, &rows[i]);
    }
    rocksdb_iter_seek_for_prev(it, rows[i].key, len);
    check_row(it, &rows[i]);
    rocksdb_iter_next(it);
    CHECK(rocksdb_iter_valid(it) == (i + 1 < count));
    if (i + 1 < count) {
      check_row(it, &rows[i + 1]);
      rocksdb_iter_prev(it);
      check_row(it, &rows[i]);
    }
  }
  rocksdb_iter_get_error(it, &error);
  CHECK_OK(error);
  rocksdb_iter_destroy(it);
}

#define ROWS(db, reads, ...)                                                   \
  do {                                                                         \
    const row rows_[] = {__VA_ARGS__};                                         \
    check_rows((db), (reads), rows_, (int)(sizeof(rows_) / sizeof(rows_[0]))); \
  } while (0)

/* a: 1 at 10, 2 at 20, deleted at 30, 4 at 40. b: 1 at 20. c: 1 at 10, deleted at 20. d: 9 at 50. */
static void fill(rocksdb_t* db) {
  put_at(db, "a", 10, "a1");
  put_at(db, "c", 10, "c1");
  put_at(db, "a", 20, "a2");
  put_at(db, "b", 20, "b1");
  rocksdb_singledelete_with_ts(db, writes, "c", 1, at(20).bytes, SIZE, &error);
  CHECK_OK(error);
  delete_at(db, "a", 30);
  put_at(db, "a", 40, "");
  put_at(db, "d", 50, "d9");
}

/* What is seen from 20 on. */
static void check_from_20(rocksdb_t* db) {
  check_at(db, "a", 20, "a2", 20);
  check_at(db, "a", 29, "a2", 20);
  check_at(db, "a", 30, NULL, 0);
  check_at(db, "a", 39, NULL, 0);
  check_at(db, "a", 1000, "", 40);
  check_at(db, "b", 25, "b1", 20);
  check_at(db, "c", 20, NULL, 0);
  check_at(db, "d", 49, NULL, 0);
  check_at(db, "d", 50, "d9", 50);
  check_at(db, "", 50, NULL, 0);
  check_at(db, "e", 50, NULL, 0);
  rocksdb_readoptions_t* reads = reads_at(25);
  ROWS(db, reads, {"a", 20, "a2"}, {"b", 20, "b1"});
  rocksdb_readoptions_set_timestamp(reads, at(35).bytes, SIZE);
  ROWS(db, reads, {"b", 20, "b1"});
  rocksdb_readoptions_set_timestamp(reads, at(60).bytes, SIZE);
  ROWS(db, reads, {"a", 40, ""}, {"b", 20, "b1"}, {"d", 50, "d9"});
  rocksdb_readoptions_set_iterate_lower_bound(reads, "b", 1);
  ROWS(db, reads, {"b", 20, "b1"}, {"d", 50, "d9"});
  rocksdb_readoptions_set_iterate_upper_bound(reads, "d", 1);
  ROWS(db, reads, {"b", 20, "b1"});
  rocksdb_readoptions_destroy(reads);
}

static void check_all(rocksdb_t* db) {
  check_at(db, "a", 9, NULL, 0);
  check_at(db, "a", 10, "a1", 10);
  check_at(db, "a", 19, "a1", 10);
  check_at(db, "c", 19, "c1", 10);
  rocksdb_readoptions_t* reads = reads_at(10);
  ROWS(db, reads, {"a", 10, "a1"}, {"c", 10, "c1"});
  rocksdb_readoptions_destroy(reads);
  check_from_20(db);
}

/* All versions from 15 to 45, as internal keys; how many there are in each direction. */
static void check_versions(rocksdb_t* db) {
  const struct {
    const char* key;
    uint64_t since;
    unsigned char kind;
  } expected[] = {{"a", 40, 1}, {"a", 30, 0x14}, {"a", 20, 1}, {"b", 20, 1}, {"c", 20, 7}};
  rocksdb_readoptions_t* reads = reads_at(45);
  rocksdb_readoptions_set_iter_start_ts(reads, at(15).bytes, SIZE);
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  for (int back = 0; back < 2; back++) {
    if (back) rocksdb_iter_seek_to_last(it); else rocksdb_iter_seek_to_first(it);
    for (int i = 0; i < 5; i++) {
      int index = back ? 4 - i : i;
      size_t len = 0;
      CHECK(rocksdb_iter_valid(it));
      const char* key = rocksdb_iter_key(it, &len);
      CHECK(len == 1 + SIZE + 8 && key[0] == expected[index].key[0]);
      CHECK(number(key + 1) == expected[index].since);
      CHECK((unsigned char)key[1 + SIZE] == expected[index].kind);
      if (back) rocksdb_iter_prev(it); else rocksdb_iter_next(it);
    }
    CHECK(!rocksdb_iter_valid(it));
  }
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(reads);
}

static void many(rocksdb_t* db) {
  const char* keys[] = {"none", "a", "b", "c"};
  const size_t lens[] = {4, 1, 1, 1};
  const char* expected[] = {NULL, "a2", "b1", NULL};
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  const rocksdb_column_family_handle_t* families[] = {family, family, family, family};
  rocksdb_readoptions_t* reads = reads_at(25);
  for (int round = 0; round < 4; round++) {
    char *values[4], *stamps[4], *errors[4];
    size_t value_lens[4], stamp_lens[4];
    if (round == 0) {
      rocksdb_multi_get_with_ts(db, reads, 4, keys, lens, values, value_lens, stamps,
                                stamp_lens, errors);
    } else if (round == 1) {
      rocksdb_multi_get_cf_with_ts(db, reads, families, 4, keys, lens, values,
                                   value_lens, stamps, stamp_lens, errors);
    } else if (round == 2) {
      rocksdb_multi_get(db, reads, 4, keys, lens, values, value_lens, errors);
    } else {
      rocksdb_multi_get_cf(db, reads, families, 4, keys, lens, values, value_lens, errors);
    }
    for (int i = 0; i < 4; i++) {
      CHECK(errors[i] == NULL);
      if (round < 2 && expected[i] != NULL) {
        CHECK(stamp_lens[i] == SIZE && number(stamps[i]) == 20);
        rocksdb_free(stamps[i]);
      } else if (round < 2) {
        CHECK(stamps[i] == NULL && stamp_lens[i] == 0);
      }
      check_value(values[i], value_lens[i], expected[i], __FILE__, __LINE__);
    }
  }
  rocksdb_pinnableslice_t* pinned[4];
  char* errors[4];
  rocksdb_batched_multi_get_cf(db, reads, family, 4, keys, lens, pinned, errors, false);
  for (int i = 0; i < 4; i++) {
    size_t len = 0;
    CHECK(errors[i] == NULL && (pinned[i] != NULL) == (expected[i] != NULL));
    if (pinned[i] == NULL) continue;
    const char* value = rocksdb_pinnableslice_value(pinned[i], &len);
    CHECK(len == 2 && memcmp(value, expected[i], 2) == 0);
    rocksdb_pinnableslice_destroy(pinned[i]);
  }
  rocksdb_readoptions_destroy(reads);
  rocksdb_column_family_handle_destroy(family);
}

static void refusals(rocksdb_t* db, rocksdb_column_family_handle_t* plain) {
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  const char* enabled =
      "Invalid argument: cannot call this method on column family default that enables timestamp";
  size_t len = 0;
  CHECK(rocksdb_get(db, reads, "a", 1, &len, &error) == NULL);
  CHECK_ERROR(error, enabled);
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek_to_first(it);
  CHECK(!rocksdb_iter_valid(it));
  size_t stamp_len = 1;
  CHECK(rocksdb_iter_timestamp(it, &stamp_len) == NULL && stamp_len == 0);
  rocksdb_iter_get_error(it, &error);
  CHECK_ERROR(error, enabled);
  rocksdb_iter_destroy(it);
  rocksdb_put(db, writes, "a", 1, "v", 1, &error);
  CHECK_ERROR(error, enabled);
  rocksdb_delete(db, writes, "a", 1, &error);
  CHECK_ERROR(error, enabled);
  rocksdb_singledelete(db, writes, "a", 1, &error);
  CHECK_ERROR(error, enabled);
  rocksdb_merge(db, writes, "a", 1, "v", 1, &error);
  CHECK_ERROR(error, enabled);
  rocksdb_put_with_ts(db, writes, "a", 1, "1234", 4, "v", 1, &error);
  CHECK_ERROR(error, "Invalid argument: Timestamp sizes mismatch: expect 8, 4 given");
  rocksdb_readoptions_set_timestamp(reads, "1234", 4);
  CHECK(rocksdb_get(db, reads, "a", 1, &len, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Timestamp sizes mismatch: expect 8, 4 given");
  const char* disabled =
      "Invalid argument: cannot call this method on column family plain that does not enable timestamp";
  rocksdb_readoptions_set_timestamp(reads, at(1).bytes, SIZE);
  CHECK(rocksdb_get_cf(db, reads, plain, "a", 1, &len, &error) == NULL);
  CHECK_ERROR(error, disabled);
  rocksdb_put_cf_with_ts(db, writes, plain, "a", 1, at(1).bytes, SIZE, "v", 1, &error);
  CHECK_ERROR(error, disabled);
  rocksdb_delete_cf_with_ts(db, writes, plain, "a", 1, at(1).bytes, SIZE, &error);
  CHECK_ERROR(error, disabled);
  rocksdb_singledelete_cf_with_ts(db, writes, plain, "a", 1, at(1).bytes, SIZE, &error);
  CHECK_ERROR(error, disabled);
  rocksdb_increase_full_history_ts_low(db, plain, at(1).bytes, SIZE, &error);
  CHECK_ERROR(error, "Invalid argument: Timestamp is not enabled in this column family");
  CHECK(rocksdb_get_full_history_ts_low(db, plain, &len, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Timestamp is not enabled in this column family");
  rocksdb_readoptions_destroy(reads);

  /* Where keys have none, timestamps are empty. */
  rocksdb_put_cf(db, writes, plain, "a", 1, "v", 1, &error);
  CHECK_OK(error);
  reads = rocksdb_readoptions_create();
  it = rocksdb_create_iterator_cf(db, reads, plain);
  rocksdb_iter_seek_to_first(it);
  CHECK(rocksdb_iter_timestamp(it, &stamp_len) != NULL && stamp_len == 0);
  rocksdb_iter_destroy(it);
  char* found = NULL;
  char* value = rocksdb_get_cf_with_ts(db, reads, plain, "a", 1, &len, &found, &stamp_len, &error);
  CHECK_OK(error);
  check_value(value, len, "v", __FILE__, __LINE__);
  CHECK(stamp_len == 0);
  rocksdb_free(found);
  rocksdb_readoptions_destroy(reads);
}

static size_t size_of(void* state, uint32_t family) {
  CHECK(state == &freed);
  return family == 0 ? SIZE : 0;
}

static void batches(rocksdb_t* db, rocksdb_column_family_handle_t* plain) {
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf_with_ts(batch, family, "x", 1, at(5).bytes, SIZE, "x5", 2);
  rocksdb_writebatch_put_cf_with_ts(batch, family, "y", 1, at(5).bytes, SIZE, "y5", 2);
  rocksdb_writebatch_delete_cf_with_ts(batch, family, "x", 1, at(6).bytes, SIZE);
  rocksdb_writebatch_singledelete_cf_with_ts(batch, family, "y", 1, at(7).bytes, SIZE);
  /* What was added with a timestamp of another size is not left out without a word; nor is the rest written. */
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put_cf_with_ts(batch, family, "y", 1, "1234", 4, "no", 2);
  CHECK(rocksdb_writebatch_count(batch) == 4);
  rocksdb_write(db, writes, batch, &error);
  CHECK_ERROR(error, "Invalid argument: Timestamp sizes mismatch");
  check_at(db, "x", 5, NULL, 0);
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  /* Nor does a change wait for a timestamp any more that was taken back. */
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put_cf(batch, family, "z", 1, "z5", 2);
  rocksdb_writebatch_put(batch, "z", 1, "z5", 2);
  rocksdb_write(db, writes, batch, &error);
  CHECK_ERROR(error, "Invalid argument: write batch must have timestamp(s) set");
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  rocksdb_write(db, writes, batch, &error);
  CHECK_OK(error);
  check_at(db, "x", 5, "x5", 5);
  check_at(db, "x", 6, NULL, 0);
  check_at(db, "y", 6, "y5", 5);
  check_at(db, "y", 7, NULL, 0);

  /* Timestamps that come later. */
  rocksdb_writebatch_put_cf_with_ts(batch, family, "y", 1, "1234", 4, "no", 2);
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put_cf(batch, family, "x", 1, "x8", 2);
  rocksdb_writebatch_put_cf(batch, plain, "x", 1, "plain", 5);
  rocksdb_writebatch_delete_cf(batch, family, "y", 1);
  rocksdb_write(db, writes, batch, &error);
  CHECK_ERROR(error, "Invalid argument: write batch must have timestamp(s) set");
  rocksdb_writebatch_update_timestamps(batch, "1234", 4, &freed, size_of, &error);
  CHECK_ERROR(error, "Invalid argument: cf timestamp size mismatch");
  rocksdb_writebatch_update_timestamps(batch, at(8).bytes, SIZE, &freed, size_of, &error);
  CHECK_OK(error);
  rocksdb_write(db, writes, batch, &error);
  CHECK_OK(error);
  check_at(db, "x", 8, "x8", 8);
  check_at(db, "y", 8, NULL, 0);
  rocksdb_writebatch_destroy(batch);

  batch = rocksdb_writebatch_create_with_params(0, 0, 0, SIZE);
  rocksdb_writebatch_put(batch, "x", 1, "x9", 2);
  rocksdb_write(db, writes, batch, &error);
  CHECK_ERROR(error, "Invalid argument: write batch must have timestamp(s) set");
  rocksdb_writebatch_update_timestamps(batch, at(9).bytes, SIZE, &freed, size_of, &error);
  CHECK_OK(error);
  rocksdb_write(db, writes, batch, &error);
  CHECK_OK(error);
  check_at(db, "x", 9, "x9", 9);
  rocksdb_writebatch_destroy(batch);

  /* Without a handle nobody can tell that a timestamp is missing, but the write. */
  batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "a key of some length", 20, "v", 1);
  rocksdb_write(db, writes, batch, &error);
  CHECK_ERROR(error, "Invalid argument: write batch must have timestamp(s) set");
  rocksdb_writebatch_destroy(batch);
  rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_put_cf(indexed, family, "a key of some length", 20, "v", 1);
  rocksdb_write_writebatch_wi(db, writes, indexed, &error);
  CHECK_ERROR(error, "Invalid argument: write batch must have timestamp(s) set");
  rocksdb_writebatch_wi_destroy(indexed);
  delete_at(db, "x", 10);
  rocksdb_column_family_handle_destroy(family);
}

static void flush(rocksdb_t* db) {
  rocksdb_flush(db, flushing, &error);
  CHECK_OK(error);
}

static void check_low(rocksdb_t* db, uint64_t low) {
  size_t len = 1;
  char* found = rocksdb_get_full_history_ts_low(
      db, NULL, &len, &error);
  CHECK_OK(error);
  if (low == 0) {
    CHECK(len == 0);
  } else {
    CHECK(len == SIZE && number(found) == low);
  }
  rocksdb_free(found);
}

/* How many versions are there, whatever they are hidden by. */
static int versions(rocksdb_t* db, uint64_t from) {
  rocksdb_readoptions_t* reads = reads_at(UINT64_MAX);
  rocksdb_readoptions_set_iter_start_ts(reads, at(from).bytes, SIZE);
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  int count = 0;
  for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) count++;
  rocksdb_iter_get_error(it, &error);
  CHECK_OK(error);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(reads);
  return count;
}

static rocksdb_t* open_at(const rocksdb_options_t* options, const rocksdb_options_t* plain,
                          const char* path, rocksdb_column_family_handle_t** handles) {
  const char* names[] = {"default", "plain"};
  const rocksdb_options_t* both[] = {options, plain};
  rocksdb_t* db = rocksdb_open_column_families(options, path, 2, names, both, handles, &error);
  CHECK_OK(error);
  return db;
}

static void close_at(rocksdb_t* db, rocksdb_column_family_handle_t** handles) {
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(db);
}

static void ingested(const char* directory, rocksdb_t* db, const rocksdb_options_t* options) {
  char* file = path_in(directory, "versions.sst");
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put(writer, "i", 1, "v", 1, &error);
  CHECK_ERROR(error, "Invalid argument: Timestamp size mismatch");
  rocksdb_sstfilewriter_put_with_ts(writer, "i", 1, "1234", 4, "v", 1, &error);
  CHECK_ERROR(error, "Invalid argument: Timestamp size mismatch");
  rocksdb_sstfilewriter_delete_range(writer, "i", 1, "j", 1, &error);
  CHECK_ERROR(error, "Invalid argument: Timestamp size mismatch");
  rocksdb_sstfilewriter_delete_with_ts(writer, "i", 1, at(70).bytes, SIZE, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put_with_ts(writer, "i", 1, at(60).bytes, SIZE, "i6", 2, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put_with_ts(writer, "j", 1, at(60).bytes, SIZE, "j6", 2, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  const char* files[] = {file};
  rocksdb_ingest_external_file(db, files, 1, how, &error);
  CHECK_OK(error);
  check_at(db, "i", 65, "i6", 60);
  check_at(db, "i", 70, NULL, 0);
  check_at(db, "j", 100, "j6", 60);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
  free(file);
}

/* What was committed is told in RocksDB's words: deletes are deletes. */
static void told(void* state, const char* key, size_t len) {
  (void)key;
  CHECK(len == 1 + SIZE);
  ++((int*)state)[1];
}

static void told_put(void* state, const char* key, size_t len, const char* value, size_t value_len) {
  (void)key;
  CHECK(len == 1 + SIZE && value_len == 2 && memcmp(value, "v1", 2) == 0);
  ++((int*)state)[0];
}

static uint64_t seq_of(rocksdb_t* db) { return rocksdb_get_latest_sequence_number(db); }

/* How many puts and deletes the log tells from a number on; a put has a value of two bytes. */
static void check_log(rocksdb_t* db, uint64_t from, int puts, int deletes) {
  int found[2] = {0, 0}, all = 0;
  rocksdb_wal_iterator_t* log = rocksdb_get_updates_since(db, from, NULL, &error);
  CHECK_OK(error);
  for (; rocksdb_wal_iter_valid(log); rocksdb_wal_iter_next(log)) {
    size_t seq = 0;
    rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(log, &seq);
    CHECK(rocksdb_writebatch_count(batch) > 0);
    /* Those of other column families as well, which an iteration does not show. */
    all += rocksdb_writebatch_count(batch);
    rocksdb_writebatch_iterate(batch, found, told_put, told);
    rocksdb_writebatch_destroy(batch);
  }
  rocksdb_wal_iter_status(log, &error);
  CHECK_OK(error);
  rocksdb_wal_iter_destroy(log);
  CHECK(found[0] == puts && found[1] == deletes && all == puts + deletes);
}

static void logged(const char* directory, const rocksdb_options_t* given) {
  char* path = path_in(directory, "logged");
  rocksdb_options_t* options = rocksdb_options_create_copy((rocksdb_options_t*)given);
  rocksdb_options_set_WAL_ttl_seconds(options, 3600);
  rocksdb_t* db = open_new(options, path);
  put_at(db, "k", 1, "v1");
  delete_at(db, "k", 2);
  check_log(db, 1, 1, 1);
  rocksdb_close(db);

  /* Back to a time. */
  const char* names[] = {"default"};
  const rocksdb_options_t* one[] = {options};
  rocksdb_column_family_handle_t* handle = NULL;
  stamp first = at(1);
  db = rocksdb_open_and_trim_history(options, path, 1, names, one, &handle, first.bytes, SIZE, &error);
  CHECK_OK(error);
  check_at(db, "k", 100, "v1", 1);
  rocksdb_column_family_handle_destroy(handle);
  check_log(db, 1, 1, 1);

  /* What goes from the history is told to nobody: it is no change of the user. */
  put_at(db, "k", 3, "v1");
  uint64_t from = seq_of(db) + 1;
  rocksdb_increase_full_history_ts_low(db, NULL, at(4).bytes, SIZE, &error);
  CHECK_OK(error);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(versions(db, 0) == 1);
  CHECK(seq_of(db) >= from);
  put_at(db, "l", 5, "v1");
  check_log(db, from, 1, 0);

  /* Nor what was written to a column family that is gone: nobody knows what its values end with. */
  from = seq_of(db) + 1;
  rocksdb_column_family_handle_t* gone = rocksdb_create_column_family(db, options, "gone", &error);
  CHECK_OK(error);
  rocksdb_put_cf_with_ts(db, writes, gone, "k", 1, at(1).bytes, SIZE, "v1", 2, &error);
  CHECK_OK(error);
  rocksdb_drop_column_family(db, gone, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(gone);
  put_at(db, "m", 5, "v1");
  check_log(db, from, 1, 0);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

static void refused_at_open(const char* directory, const rocksdb_options_t* options) {
  char* path = path_in(directory, "expiring");
  rocksdb_options_t* creating = rocksdb_options_create_copy((rocksdb_options_t*)options);
  rocksdb_options_set_create_if_missing(creating, 1);
  CHECK(rocksdb_open_with_ttl(creating, path, 60, &error) == NULL);
  CHECK_ERROR(error, "Not implemented: a time to live and timestamps");
  rocksdb_t* db = rocksdb_open_with_ttl(creating, path, 0, &error);
  CHECK_OK(error);
  put_at(db, "k", 1, "v1");
  check_at(db, "k", 1, "v1", 1);
  const char *starts[] = {"k"}, *limits[] = {"l"};
  const size_t lens[] = {1};
  uint64_t size = 0;
  rocksdb_approximate_sizes(db, 1, starts, lens, limits, lens, &size, &error);
  CHECK_OK(error);
  CHECK(size > 0);
  /* What is refused is not made: nothing is in the way of another one of that name. */
  CHECK(rocksdb_create_column_family_with_ttl(db, creating, "more", 60, &error) == NULL);
  CHECK_ERROR(error, "Not implemented: a time to live and timestamps");
  rocksdb_column_family_handle_t* more = rocksdb_create_column_family_with_ttl(db, creating, "more", 0, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(more);
  rocksdb_close(db);
  rocksdb_options_destroy(creating);
  free(path);
}

/* Removes values "drop", makes "new" of "old". Values are shown as the user gave them, keys with their timestamps. */
static unsigned char judge(void* state, int level, const char* key, size_t key_len,
                           const char* value, size_t len, char** changed,
                           size_t* changed_len, unsigned char* is_changed) {
  (void)state, (void)level;
  CHECK(key_len == 1 + SIZE && key[0] >= 'a' && len > 0);
  if (len == 3 && memcmp(value, "old", 3) == 0) {
    static char replacement[] = "new";
    *changed = replacement;
    *changed_len = 3;
    *is_changed = 1;
  }
  return len == 4 && memcmp(value, "drop", 4) == 0;
}

static const char* judge_name(void* state) {
  (void)state;
  return "judge";
}

static void judged(const char* directory, const rocksdb_options_t* given) {
  char* path = path_in(directory, "judged");
  rocksdb_options_t* options = rocksdb_options_create_copy((rocksdb_options_t*)given);
  rocksdb_compactionfilter_t* filter =
      rocksdb_compactionfilter_create(NULL, NULL, judge, judge_name);
  rocksdb_options_set_compaction_filter(options, filter);
  rocksdb_t* db = open_new(options, path);
  put_at(db, "a", 10, "v");
  put_at(db, "a", 20, "drop");
  put_at(db, "b", 10, "x");
  put_at(db, "b", 20, "y");
  put_at(db, "b", 30, "z");
  put_at(db, "c", 10, "old");
  flush(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  /* What it takes out is deleted at its timestamp: nothing older comes to light. */
  check_at(db, "a", 25, NULL, 0);
  check_at(db, "a", 15, "v", 10);
  check_at(db, "c", 25, "new", 10);
  CHECK(versions(db, 0) == 6);

  /* A compaction that nobody asked to look for versions finds those that go but a delete that is the newest. */
  rocksdb_increase_full_history_ts_low(db, NULL, at(25).bytes, SIZE, &error);
  CHECK_OK(error);
  const rocksdb_livefiles_t* live = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(live) == 1);
  const char* names[] = {rocksdb_livefiles_name(live, 0)};
  rocksdb_compaction_options_t* how = rocksdb_compaction_options_create();
  char** outputs = NULL;
  size_t count = 0;
  rocksdb_compact_files(db, how, names, 1, 6, -1, &outputs, &count, NULL, &error);
  CHECK_OK(error);
  rocksdb_compact_files_output_file_names_destroy(outputs, count);
  rocksdb_compaction_options_destroy(how);
  rocksdb_livefiles_destroy(live);
  CHECK(versions(db, 0) == 4);
  check_at(db, "a", 25, NULL, 0);
  check_at(db, "b", 25, "y", 20);
  check_at(db, "b", 30, "z", 30);
  check_at(db, "c", 25, "new", 10);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(versions(db, 0) == 3);
  check_at(db, "a", 25, NULL, 0);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_compactionfilter_destroy(filter);
  free(path);
}

static rocksdb_t* swept;

static void put_in_place(void) { put_at(swept, "a", 20, "again"); }

static void put_below(void) { put_at(swept, "b", 10, "old"); }

/* What is written while the history is cut is neither lost nor brings to light what was hidden. */
static void written_beside(const char* directory, const rocksdb_options_t* options) {
  char* path = path_in(directory, "beside");
  swept = open_new((rocksdb_options_t*)options, path);
  put_at(swept, "a", 10, "first");
  delete_at(swept, "a", 20);
  delete_at(swept, "b", 20);
  delete_at(swept, "c", 20);
  rocksdb_increase_full_history_ts_low(swept, NULL, at(30).bytes, SIZE, &error);
  CHECK_OK(error);
  meanwhile = put_in_place;
  rocksdb_compact_range(swept, "a", 1, "a", 1);
  CHECK(meanwhile == NULL);
  check_at(swept, "a", 30, "again", 20);
  meanwhile = put_below;
  rocksdb_compact_range(swept, "b", 1, "b", 1);
  CHECK(meanwhile == NULL);
  check_at(swept, "b", 30, NULL, 0);
  /* The next time all goes that may. */
  rocksdb_compact_range(swept, NULL, 0, NULL, 0);
  check_at(swept, "a", 30, "again", 20);
  check_at(swept, "b", 30, NULL, 0);
  CHECK(versions(swept, 0) == 1);
  rocksdb_close(swept);
  free(path);
}

static int second_freed = 0;

static void free_second(void* state) {
  CHECK(state == &freed);
  second_freed++;
}

/* A second object of one name stays while the database is open: a compaction may ask it after its column family is gone. */
static void of_one_name(const char* directory, const rocksdb_options_t* options) {
  char* path = path_in(directory, "of one name");
  rocksdb_t* db = open_new((rocksdb_options_t*)options, path);
  rocksdb_comparator_t* second = rocksdb_comparator_with_ts_create(
      &freed, free_second, compare, compare_ts, compare_without, compare_name, SIZE);
  rocksdb_options_t* others = rocksdb_options_create();
  rocksdb_options_set_comparator(others, second);
  rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, others, "second", &error);
  CHECK_OK(error);
  rocksdb_put_cf_with_ts(db, writes, family, "k", 1, at(1).bytes, SIZE, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_options_destroy(others);
  rocksdb_comparator_destroy(second);
  rocksdb_drop_column_family(db, family, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(family);
  CHECK(second_freed == 0);
  rocksdb_close(db);
  CHECK(second_freed == 1);
  free(path);
}

static void check_iter_refused(rocksdb_t* db, rocksdb_readoptions_t* reads,
                               rocksdb_column_family_handle_t* family, const char* why) {
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, reads, family);
  rocksdb_iter_seek_to_first(it);
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &error);
  CHECK_ERROR(error, why);
  rocksdb_iter_destroy(it);
}

/* What would not be obeyed, or would lose what a history is. */
static void refused_by_name(const char* directory, const rocksdb_options_t* options) {
  char *path = path_in(directory, "refusing"), *exported = path_in(directory, "exported");
  rocksdb_options_t* plain_options = rocksdb_options_create();
  rocksdb_t* db = open_new((rocksdb_options_t*)options, path);
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_column_family_handle_t* plain = rocksdb_create_column_family(db, plain_options, "plain", &error);
  CHECK_OK(error);
  put_at(db, "k", 1, "v1");
  put_at(db, "k", 3, "v3");
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iter_start_ts(reads, at(1).bytes, SIZE);
  check_iter_refused(db, reads, plain, "Invalid argument: iter_start_ts without a timestamp");
  check_iter_refused(db, reads, family, "Invalid argument: iter_start_ts without a timestamp");
  rocksdb_readoptions_set_timestamp(reads, at(2).bytes, SIZE);
  rocksdb_readoptions_set_tailing(reads, 1);
  check_iter_refused(db, reads, family, "Not implemented: tailing with iter_start_ts");
  rocksdb_readoptions_destroy(reads);

  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
  CHECK_OK(error);
  CHECK(rocksdb_checkpoint_export_column_family(checkpoint, family, exported, &error) == NULL);
  CHECK_ERROR(error, "Not implemented: export and import of column family default");
  rocksdb_put_cf(db, writes, plain, "k", 1, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_export_import_files_metadata_t* files =
      rocksdb_checkpoint_export_column_family(checkpoint, plain, exported, &error);
  CHECK_OK(error);
  rocksdb_import_column_family_options_t* how = rocksdb_import_column_family_options_create();
  CHECK(rocksdb_create_column_family_with_import(db, (rocksdb_options_t*)options, "in", how, files, &error) == NULL);
  CHECK_ERROR(error, "Not implemented: export and import of column family in");
  rocksdb_import_column_family_options_destroy(how);
  rocksdb_export_import_files_metadata_destroy(files);
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_column_family_handle_destroy(plain);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);

  /* A trim that fails gives no handle out and takes nothing. */
  const char* names[] = {"default", "plain"};
  const rocksdb_options_t* both[] = {options, plain_options};
  rocksdb_column_family_handle_t* handles[2] = {NULL, NULL};
  CHECK(rocksdb_open_and_trim_history(options, path, 2, names, both, handles, (char*)"1234", 4, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Timestamp sizes mismatch");
  CHECK(handles[0] == NULL && handles[1] == NULL);
  db = rocksdb_open_column_families(options, path, 2, names, both, handles, &error);
  CHECK_OK(error);
  check_at(db, "k", 3, "v3", 3);
  close_at(db, handles);
  rocksdb_options_destroy(plain_options);
  free(path);
  free(exported);
}

static rocksdb_t* follower;

static void catch_up(void) {
  rocksdb_try_catch_up_with_primary(follower, &error);
  CHECK_OK(error);
}

/* A multi-get in a secondary is of one moment, whoever catches up between two of its keys. */
static void followed(const char* directory, const rocksdb_options_t* options) {
  char *path = path_in(directory, "followed"), *beside = path_in(directory, "follower");
  rocksdb_t* db = open_new((rocksdb_options_t*)options, path);
  put_at(db, "a", 10, "a1");
  put_at(db, "b", 10, "b1");
  rocksdb_increase_full_history_ts_low(db, NULL, at(5).bytes, SIZE, &error);
  CHECK_OK(error);
  const char* names[] = {"default"};
  const rocksdb_options_t* one[] = {options};
  rocksdb_column_family_handle_t* handle = NULL;
  follower = rocksdb_open_as_secondary_column_families(options, path, beside, 1, names, one, &handle, &error);
  CHECK_OK(error);
  put_at(db, "a", 20, "a2");
  put_at(db, "b", 20, "b2");
  flush(db);
  const rocksdb_column_family_handle_t* families[] = {handle, handle};
  const char* keys[] = {"a", "b"};
  const size_t lens[] = {1, 1};
  const char* expected[][2] = {{"a1", "b1"}, {"a2", "b2"}};
  rocksdb_readoptions_t* reads = reads_at(100);
  meanwhile = catch_up;
  for (int round = 0; round < 2; round++) {
    char *values[2], *stamps[2], *errors[2];
    size_t value_lens[2], stamp_lens[2];
    rocksdb_multi_get_cf_with_ts(follower, reads, families, 2, keys, lens, values, value_lens, stamps,
                                 stamp_lens, errors);
    CHECK(meanwhile == NULL);
    for (int i = 0; i < 2; i++) {
      CHECK_OK(errors[i]);
      CHECK(stamp_lens[i] == SIZE && number(stamps[i]) == (round == 0 ? 10 : 20));
      rocksdb_free(stamps[i]);
      check_value(values[i], value_lens[i], expected[round][i], __FILE__, __LINE__);
    }
  }
  rocksdb_readoptions_destroy(reads);
  rocksdb_column_family_handle_destroy(handle);
  rocksdb_close(follower);
  rocksdb_close(db);
  free(path);
  free(beside);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "stamped");
  rocksdb_comparator_t* comparator = rocksdb_comparator_with_ts_create(
      &freed, free_state, compare, compare_ts_alone, compare_without, compare_name, SIZE);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_comparator(options, comparator);
  rocksdb_options_t* plain = rocksdb_options_create();
  writes = rocksdb_writeoptions_create();
  flushing = rocksdb_flushoptions_create();
  rocksdb_t* db = open_new(options, path);
  rocksdb_column_family_handle_t* handles[2];
  handles[0] = rocksdb_get_default_column_family_handle(db);
  handles[1] = rocksdb_create_column_family(db, plain, "plain", &error);
  CHECK_OK(error);

  batches(db, handles[1]);
  fill(db);
  check_all(db);
  check_versions(db);
  many(db);
  refusals(db, handles[1]);
  flush(db);
  check_all(db);
  check_low(db, 0);
  close_at(db, handles);

  /* A comparator without timestamps, or with others, is another one. */
  rocksdb_comparator_t* other =
      rocksdb_comparator_create(&freed, NULL, compare, compare_name);
  rocksdb_options_t* wrong = rocksdb_options_create();
  rocksdb_options_set_comparator(wrong, other);
  const char* names[] = {"default", "plain"};
  const rocksdb_options_t* both[] = {wrong, plain};
  CHECK(rocksdb_open_column_families(wrong, path, 2, names, both, handles, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Timestamp sizes mismatch");
  rocksdb_options_destroy(wrong);
  rocksdb_comparator_destroy(other);

  db = open_at(options, plain, path, handles);
  check_all(db);
  check_versions(db);
  /* Nothing goes before it is said so. */
  int all = versions(db, 0);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(versions(db, 0) == all);
  check_all(db);

  /* A snapshot sees the versions that go. */
  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  rocksdb_readoptions_t* before = reads_at(10);
  rocksdb_iterator_t* old = rocksdb_create_iterator(db, before);
  rocksdb_increase_full_history_ts_low(db, handles[0], at(20).bytes, SIZE, &error);
  CHECK_OK(error);
  rocksdb_increase_full_history_ts_low(db, handles[0], at(19).bytes, SIZE, &error);
  CHECK_ERROR(error, "Invalid argument: Current full_history_ts_low: ");
  rocksdb_increase_full_history_ts_low(db, handles[0], "1234", 4, &error);
  CHECK_ERROR(error, "Invalid argument: ts_low size mismatch");
  check_low(db, 20);
  check_refused(db, 19);
  check_from_20(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  check_from_20(db);
  rocksdb_iter_seek_to_first(old);
  const row first = {"a", 10, "a1"};
  check_row(old, &first);
  rocksdb_iter_refresh(old, &error);
  CHECK_OK(error);
  rocksdb_iter_seek_to_first(old);
  rocksdb_iter_get_error(old, &error);
  CHECK_ERROR(error, "Invalid argument: Read timestamp: ");
  rocksdb_iter_destroy(old);
  rocksdb_readoptions_destroy(before);
  rocksdb_release_snapshot(db, snapshot);
  /* Of a, b and d the versions from 20 on; of c, x and y, which are deleted, nothing. */
  CHECK(versions(db, 0) == 5);
  close_at(db, handles);

  db = open_at(options, plain, path, handles);
  check_low(db, 20);
  check_refused(db, 19);
  check_from_20(db);
  CHECK(versions(db, 0) == 5);
  rocksdb_compactoptions_t* how = rocksdb_compactoptions_create();
  stamp forty = at(40);
  rocksdb_compactoptions_set_full_history_ts_low(how, forty.bytes, SIZE);
  rocksdb_compact_range_opt(db, how, "a", 1, "b", 1);
  check_low(db, 20);
  rocksdb_compact_range_opt(db, how, NULL, 0, NULL, 0);
  check_low(db, 40);
  CHECK(versions(db, 0) == 3);
  check_at(db, "b", 41, "b1", 20);
  check_at(db, "a", 41, "", 40);
  ingested(arguments[1], db, options);
  rocksdb_compactoptions_destroy(how);
  close_at(db, handles);
  logged(arguments[1], options);
  judged(arguments[1], options);
  written_beside(arguments[1], options);
  of_one_name(arguments[1], options);
  refused_by_name(arguments[1], options);
  followed(arguments[1], options);
  refused_at_open(arguments[1], options);

  rocksdb_options_destroy(options);
  rocksdb_options_destroy(plain);
  CHECK(freed == 0);
  rocksdb_comparator_destroy(comparator);
  CHECK(freed == 1);
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writeoptions_destroy(writes);
  free(path);
  return 0;
}
