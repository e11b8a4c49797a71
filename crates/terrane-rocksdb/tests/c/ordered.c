/* Batches that can be read, and transactions, over column families whose keys a function of the caller orders: by length, then from
   the greatest to the least. */
#include "check.h"

static char* error;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;
static int freed = 0;

static int compare(void* state, const char* a, size_t a_len, const char* b,
                   size_t b_len) {
  CHECK(state == &freed && freed == 0);
  if (a_len != b_len) return a_len < b_len ? -1 : 1;
  return memcmp(b, a, a_len);
}

static const char* compare_name(void* state) {
  (void)state;
  return "shortest-first";
}

static void free_state(void* state) {
  CHECK(state == &freed);
  freed++;
}

static void check_at(rocksdb_iterator_t* it, const char* key, const char* value) {
  size_t len = 0;
  CHECK(rocksdb_iter_valid(it));
  const char* found = rocksdb_iter_key(it, &len);
  CHECK(len == strlen(key) && memcmp(found, key, len) == 0);
  found = rocksdb_iter_value(it, &len);
  CHECK(len == strlen(value) && memcmp(found, value, len) == 0);
}

/* The iterator, which is destroyed, has these rows (a key and its value each) both ways, and turns around at each. */
static void check_rows(rocksdb_iterator_t* it, const char* const* rows,
                       size_t count) {
  rocksdb_iter_seek_to_first(it);
  for (size_t at = 0; at < count; at++, rocksdb_iter_next(it)) {
    check_at(it, rows[2 * at], rows[2 * at + 1]);
  }
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_seek_to_last(it);
  for (size_t at = count; at > 0; at--, rocksdb_iter_prev(it)) {
    check_at(it, rows[2 * at - 2], rows[2 * at - 1]);
  }
  CHECK(!rocksdb_iter_valid(it));
  for (size_t at = 0; at < count; at++) {
    const char* key = rows[2 * at];
    rocksdb_iter_seek(it, key, strlen(key));
    check_at(it, key, rows[2 * at + 1]);
    rocksdb_iter_prev(it);
    CHECK(rocksdb_iter_valid(it) == (at > 0));
    rocksdb_iter_seek_for_prev(it, key, strlen(key));
    check_at(it, key, rows[2 * at + 1]);
    rocksdb_iter_next(it);
    if (at + 1 < count) {
      check_at(it, rows[2 * at + 2], rows[2 * at + 3]);
      rocksdb_iter_prev(it);
      check_at(it, key, rows[2 * at + 1]);
    } else {
      CHECK(!rocksdb_iter_valid(it));
    }
  }
  rocksdb_iter_get_error(it, &error);
  CHECK_OK(error);
  rocksdb_iter_destroy(it);
}

#define ROWS(it, ...)                                                          \
  do {                                                                         \
    const char* rows_[] = {__VA_ARGS__};                                       \
    check_rows((it), rows_, sizeof(rows_) / sizeof(rows_[0]) / 2);             \
  } while (0)

static void put_own(rocksdb_t* db, rocksdb_column_family_handle_t* own,
                    const char* key) {
  rocksdb_put_cf(db, writes, own, key, strlen(key), "db", 2, &error);
  CHECK_OK(error);
}

static void own_put(rocksdb_writebatch_wi_t* batch,
                    rocksdb_column_family_handle_t* own, const char* key) {
  rocksdb_writebatch_wi_put_cf(batch, own, key, strlen(key), "wi", 2);
}

static void check_both(rocksdb_t* db, rocksdb_writebatch_wi_t* batch,
                       rocksdb_column_family_handle_t* own, const char* key,
                       const char* expected) {
  size_t len = 0;
  char* value = rocksdb_writebatch_wi_get_from_batch_and_db_cf(
      batch, db, reads, own, key, strlen(key), &len, &error);
  CHECK_OK(error);
  check_value(value, len, expected, __FILE__, __LINE__);
}

static rocksdb_iterator_t* over(rocksdb_t* db, rocksdb_writebatch_wi_t* batch,
                                rocksdb_column_family_handle_t* own,
                                const rocksdb_readoptions_t* options) {
  rocksdb_iterator_t* base = rocksdb_create_iterator_cf(db, options, own);
  return rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
      batch, base, own, options);
}

/* The family's keys: z b ba aa aaa. */
static void batches(rocksdb_t* db, rocksdb_column_family_handle_t* own) {
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  own_put(batch, own, "c");
  own_put(batch, own, "bb");
  own_put(batch, own, "aa");
  rocksdb_writebatch_wi_delete_cf(batch, own, "z", 1);
  ROWS(over(db, batch, own, reads), "c", "wi", "b", "db", "bb", "wi", "ba", "db",
       "aa", "wi", "aaa", "db");

  rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iterate_lower_bound(bounded, "b", 1);
  rocksdb_readoptions_set_iterate_upper_bound(bounded, "aa", 2);
  ROWS(over(db, batch, own, bounded), "b", "db", "bb", "wi", "ba", "db");
  rocksdb_readoptions_destroy(bounded);

  /* From b to before aa: in the order of bytes there is nothing between them. */
  rocksdb_writebatch_wi_set_save_point(batch);
  rocksdb_writebatch_wi_delete_range_cf(batch, own, "b", 1, "aa", 2);
  check_both(db, batch, own, "b", NULL);
  check_both(db, batch, own, "bb", NULL);
  check_both(db, batch, own, "ba", NULL);
  check_both(db, batch, own, "aa", "wi");
  check_both(db, batch, own, "c", "wi");
  ROWS(over(db, batch, own, reads), "c", "wi", "aa", "wi", "aaa", "db");
  /* From aa to before b: in the order of keys there is nothing between them. */
  rocksdb_writebatch_wi_delete_range_cf(batch, own, "aa", 2, "b", 1);
  check_both(db, batch, own, "aaa", "db");
  /* Ranges that meet in this order are one. */
  rocksdb_writebatch_wi_delete_range_cf(batch, own, "aa", 2, "aaaa", 4);
  ROWS(over(db, batch, own, reads), "c", "wi");
  rocksdb_writebatch_wi_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  ROWS(over(db, batch, own, reads), "c", "wi", "b", "db", "bb", "wi", "ba", "db",
       "aa", "wi", "aaa", "db");
  rocksdb_writebatch_wi_destroy(batch);
}

/* Without a handle it is the batch's comparator that counts, or the base's where the batch was given none. */
static void given(rocksdb_t* db, rocksdb_comparator_t* comparator,
                  const rocksdb_options_t* options) {
  put(db, "b", "db");
  put(db, "aaa", "db");
  /* Of a range whose ends lie the other way round by bytes. */
  const char *starts[] = {"b", "aaa"}, *limits[] = {"aaa", "b"};
  const size_t start_lens[] = {1, 3}, limit_lens[] = {3, 1};
  uint64_t sizes[2];
  rocksdb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes, &error);
  CHECK_OK(error);
  CHECK(sizes[0] > 0 && sizes[1] == 0);
  for (int round = 0; round < 2; round++) {
    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create_with_params(
        round == 0 ? comparator : NULL, 0, 1, 0, 0);
    rocksdb_writebatch_wi_put(batch, "bb", 2, "wi", 2);
    rocksdb_writebatch_wi_put(batch, "c", 1, "wi", 2);
    rocksdb_writebatch_wi_put(batch, "aa", 2, "wi", 2);
    rocksdb_writebatch_wi_delete_range(batch, "b", 1, "aa", 2);
    size_t len = 0;
    char* value = rocksdb_writebatch_wi_get_from_batch(batch, options, "bb", 2,
                                                       &len, &error);
    CHECK_OK(error);
    check_value(value, len, round == 0 ? NULL : "wi", __FILE__, __LINE__);
    ROWS(rocksdb_writebatch_wi_create_iterator_with_base(
             batch, rocksdb_create_iterator(db, reads)),
         "c", "wi", "aa", "wi", "aaa", "db");
    value = rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, reads, "b", 1,
                                                        &len, &error);
    CHECK_OK(error);
    check_value(value, len, NULL, __FILE__, __LINE__);
    rocksdb_writebatch_wi_destroy(batch);
  }
}

static void transactions(const char* directory, const rocksdb_options_t* options) {
  char* path = path_in(directory, "transactions");
  rocksdb_options_t* creating = rocksdb_options_create_copy((rocksdb_options_t*)options);
  rocksdb_options_set_create_if_missing(creating, 1);
  rocksdb_transactiondb_options_t* how = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* db =
      rocksdb_transactiondb_open(creating, how, path, &error);
  CHECK_OK(error);
  const char* keys[] = {"z", "b", "ba", "aaa"};
  for (int at = 0; at < 4; at++) {
    rocksdb_transactiondb_put(db, writes, keys[at], strlen(keys[at]), "db", 2, &error);
    CHECK_OK(error);
  }
  rocksdb_transaction_options_t* beginning = rocksdb_transaction_options_create();
  rocksdb_transaction_t* transaction =
      rocksdb_transaction_begin(db, writes, beginning, NULL);
  rocksdb_transaction_put(transaction, "bb", 2, "tx", 2, &error);
  CHECK_OK(error);
  rocksdb_transaction_put(transaction, "aaa", 3, "tx", 2, &error);
  CHECK_OK(error);
  rocksdb_transaction_delete(transaction, "z", 1, &error);
  CHECK_OK(error);
  ROWS(rocksdb_transaction_create_iterator(transaction, reads), "b", "db", "bb",
       "tx", "ba", "db", "aaa", "tx");
  /* Its batch, lent, has the same order. */
  rocksdb_writebatch_wi_t* lent =
      rocksdb_transaction_get_writebatch_wi(transaction);
  ROWS(rocksdb_writebatch_wi_create_iterator_with_base(
           lent, rocksdb_transactiondb_create_iterator(db, reads)),
       "b", "db", "bb", "tx", "ba", "db", "aaa", "tx");
  rocksdb_free(lent);
  rocksdb_transaction_commit(transaction, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(transaction);
  ROWS(rocksdb_transactiondb_create_iterator(db, reads), "b", "db", "bb", "tx",
       "ba", "db", "aaa", "tx");

  /* One that was prepared, and is found again. */
  transaction = rocksdb_transaction_begin(db, writes, beginning, NULL);
  rocksdb_transaction_set_name(transaction, "x", 1, &error);
  CHECK_OK(error);
  rocksdb_transaction_put(transaction, "cc", 2, "tx", 2, &error);
  CHECK_OK(error);
  rocksdb_transaction_put(transaction, "d", 1, "tx", 2, &error);
  CHECK_OK(error);
  rocksdb_transaction_prepare(transaction, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(transaction);
  rocksdb_transactiondb_close(db);
  db = rocksdb_transactiondb_open(creating, how, path, &error);
  CHECK_OK(error);
  size_t count = 0;
  rocksdb_transaction_t** prepared =
      rocksdb_transactiondb_get_prepared_transactions(db, &count);
  CHECK(count == 1);
  ROWS(rocksdb_transaction_create_iterator(prepared[0], reads), "d", "tx", "b",
       "db", "cc", "tx", "bb", "tx", "ba", "db", "aaa", "tx");
  rocksdb_transaction_rollback(prepared[0], &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(prepared[0]);
  rocksdb_free(prepared);
  rocksdb_transactiondb_close(db);
  rocksdb_transaction_options_destroy(beginning);
  rocksdb_transactiondb_options_destroy(how);
  rocksdb_options_destroy(creating);
  free(path);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "ordered");
  rocksdb_comparator_t* comparator =
      rocksdb_comparator_create(&freed, free_state, compare, compare_name);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_comparator(options, comparator);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  rocksdb_t* db = open_new(options, path);
  rocksdb_column_family_handle_t* own =
      rocksdb_create_column_family(db, options, "own", &error);
  CHECK_OK(error);
  const char* keys[] = {"z", "b", "ba", "aa", "aaa"};
  for (int at = 0; at < 5; at++) put_own(db, own, keys[at]);
  batches(db, own);
  given(db, comparator, options);
  transactions(arguments[1], options);
  rocksdb_column_family_handle_destroy(own);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(comparator);
  CHECK(freed == 1);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_readoptions_destroy(reads);
  free(path);
  return 0;
}
