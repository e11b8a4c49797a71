/* Filters of the log: what they are told, and what becomes of each batch, also at later openings. */
#include "check.h"

#include <stdint.h>
#include <threads.h>

typedef struct State {
  int maps, calls, destroyed;
  /* What is done at the call of this number, and what then. */
  int at, answer;
  int replaces, too_many;
  uint64_t log;
} State;

static void destroyed(void* state) { ((State*)state)->destroyed++; }

static const char* name(void* state) {
  (void)state;
  return "test";
}

static void families(void* arg, const uint32_t* ids, const uint64_t* logs, size_t count,
                     const char* const* names, const size_t* lens, const uint32_t* of, size_t names_count) {
  State* state = arg;
  CHECK(state->calls == 0 && count == 2 && names_count == 2);
  CHECK(ids[0] == 0 && of[0] == 0 && lens[0] == 7 && strcmp(names[0], "default") == 0);
  CHECK(ids[1] == of[1] && lens[1] == 5 && strcmp(names[1], "other") == 0);
  CHECK(logs[0] > 0 && logs[1] > 0);
  state->log = logs[0];
  state->maps++;
}

static int found(void* arg, unsigned long long log, const char* file, size_t len,
                 const rocksdb_writebatch_t* batch, rocksdb_writebatch_t* new_batch, unsigned char* changed) {
  State* state = arg;
  CHECK(log >= state->log && len > 0 && memchr(file, '/', len) != NULL);
  CHECK(strlen(file) == len);
  CHECK(rocksdb_writebatch_count((rocksdb_writebatch_t*)batch) == 2);
  CHECK(rocksdb_writebatch_count(new_batch) == 0 && *changed == 0);
  if (state->calls++ != state->at) return rocksdb_wal_filter_continue_processing;
  if (state->replaces) {
    for (int i = 0; i < (state->too_many ? 3 : 1); i++) rocksdb_writebatch_put(new_batch, "new", 3, "value", 5);
    rocksdb_writebatch_put_log_data(new_batch, "swapped", 7);
    *changed = 1;
  }
  return state->answer;
}

static rocksdb_options_t* options;
static rocksdb_writeoptions_t* writing;
static rocksdb_readoptions_t* reading;
static const char* const family_names[] = {"default", "other"};
static rocksdb_column_family_handle_t* handles[2];

static rocksdb_t* open(const char* path, char** error) {
  const rocksdb_options_t* both[] = {options, options};
  return rocksdb_open_column_families(options, path, 2, family_names, both, handles, error);
}

static void close_all(rocksdb_t* db) {
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(db);
}

/* Three batches, each with a key in both column families, and a blob. */
static void load(const char* path) {
  char* error = NULL;
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_t* db = open(path, &error);
  CHECK_OK(error);
  for (int i = 1; i <= 3; i++) {
    char key[] = {'k', (char)('0' + i)};
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf(batch, handles[0], key, 2, "1", 1);
    rocksdb_writebatch_put_cf(batch, handles[1], key, 2, "2", 1);
    rocksdb_writebatch_put_log_data(batch, key, 2);
    rocksdb_write(db, writing, batch, &error);
    CHECK_OK(error);
    rocksdb_writebatch_destroy(batch);
  }
  close_all(db);
}

/* Whether k1, k2, k3 are there, in both column families alike. */
static void check_keys(rocksdb_t* db, const char* there) {
  for (int i = 0; i < 3; i++) {
    char key[] = {'k', (char)('1' + i)};
    for (int family = 0; family < 2; family++) {
      char* error = NULL;
      size_t len = 0;
      char* value = rocksdb_get_cf(db, reading, handles[family], key, 2, &len, &error);
      CHECK_OK(error);
      CHECK((value != NULL) == (there[i] == '1'));
      rocksdb_free(value);
    }
  }
}

static void no_put(void* told, uint32_t family, const char* key, size_t key_len, const char* value, size_t len) {
  (void)told, (void)family, (void)key, (void)key_len, (void)value, (void)len;
}

static void no_delete(void* told, uint32_t family, const char* key, size_t len) {
  (void)told, (void)family, (void)key, (void)len;
}

static void on_log(void* told, const char* blob, size_t len) { strncat(strcat(told, "#"), blob, len); }

/* The blobs in the log. */
static void check_blobs(rocksdb_t* db, const char* expected) {
  char* error = NULL;
  char told[64] = "";
  rocksdb_wal_iterator_t* iter = rocksdb_get_updates_since(db, 1, NULL, &error);
  CHECK_OK(error);
  for (; rocksdb_wal_iter_valid(iter); rocksdb_wal_iter_next(iter)) {
    uint64_t seq;
    rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(iter, &seq);
    rocksdb_writebatch_iterate_cf_ld(batch, told, no_put, no_delete, no_put, on_log);
    rocksdb_writebatch_destroy(batch);
  }
  rocksdb_wal_iter_status(iter, &error);
  CHECK_OK(error);
  rocksdb_wal_iter_destroy(iter);
  CHECK(strcmp(told, expected) == 0);
}

static rocksdb_walfilter_t* filter_of(State* state) {
  rocksdb_walfilter_t* filter = rocksdb_walfilter_create(state, destroyed, families, found, name);
  rocksdb_options_set_wal_filter(options, filter);
  return filter;
}

static void free_filter(State* state, rocksdb_walfilter_t* filter) {
  rocksdb_options_clear_wal_filter(options);
  rocksdb_walfilter_destroy(filter);
  CHECK(state->destroyed == 1);
}

/* Opens with a filter, then without: both find the same. */
static void check_answer(const char* path, State state, int calls, const char* there, const char* blobs) {
  char* error = NULL;
  load(path);
  rocksdb_walfilter_t* filter = filter_of(&state);
  rocksdb_t* db = open(path, &error);
  CHECK_OK(error);
  CHECK(state.maps == 1 && state.calls == calls);
  check_keys(db, there);
  CHECK_GET(db, reading, "new", state.replaces ? "value" : NULL);
  check_blobs(db, blobs);
  close_all(db);
  free_filter(&state, filter);
  db = open(path, &error);
  CHECK_OK(error);
  check_keys(db, there);
  CHECK_GET(db, reading, "new", state.replaces ? "value" : NULL);
  check_blobs(db, blobs);
  close_all(db);
}

/* Fails to open with a filter; nothing has changed. */
static void check_refused(const char* path, State state, const char* beginning) {
  char* error = NULL;
  load(path);
  rocksdb_walfilter_t* filter = filter_of(&state);
  CHECK(open(path, &error) == NULL);
  CHECK_ERROR(error, beginning);
  free_filter(&state, filter);
  rocksdb_t* db = open(path, &error);
  CHECK_OK(error);
  check_keys(db, "111");
  close_all(db);
}

/* Copies the batch with other values, a blob in front of each put and two behind. */
static void copy_put(void* copy, uint32_t family, const char* key, size_t key_len, const char* value, size_t len) {
  (void)family, (void)value, (void)len;
  rocksdb_writebatch_put_log_data(copy, key, key_len);
  rocksdb_writebatch_put(copy, key, key_len, "filtered", 8);
}

static int add_blobs(void* state, unsigned long long log, const char* file, size_t len,
                     const rocksdb_writebatch_t* batch, rocksdb_writebatch_t* new_batch, unsigned char* changed) {
  (void)log, (void)file, (void)len;
  (*(int*)state)++;
  rocksdb_writebatch_iterate_cf((rocksdb_writebatch_t*)batch, new_batch, copy_put, no_delete, no_put);
  rocksdb_writebatch_put_log_data(new_batch, "1", 1);
  rocksdb_writebatch_put_log_data(new_batch, "2", 1);
  *changed = 1;
  return rocksdb_wal_filter_continue_processing;
}

static void ignore(void* state) { (void)state; }

/* Blobs take no numbers in RocksDB: a filter may add them. Those for which the batch has none are left out here. */
static void added_blobs(const char* path) {
  char* error = NULL;
  int calls = 0;
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  for (int blobs = 0; blobs < 5; blobs++) {
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "a", 1, "v", 1);
    for (int i = 0; i < blobs; i++) rocksdb_writebatch_put_log_data(batch, "old", 3);
    rocksdb_writebatch_put(batch, "b", 1, "v", 1);
    rocksdb_write(db, writing, batch, &error);
    CHECK_OK(error);
    rocksdb_writebatch_destroy(batch);
  }
  rocksdb_close(db);
  rocksdb_walfilter_t* filter = rocksdb_walfilter_create(&calls, ignore, NULL, add_blobs, name);
  rocksdb_options_set_wal_filter(options, filter);
  db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  CHECK(calls == 5);
  CHECK_GET(db, reading, "a", "filtered");
  CHECK_GET(db, reading, "b", "filtered");
  check_blobs(db, "#a" "#a#b" "#a#b#1" "#a#b#1#2");
  rocksdb_close(db);
  rocksdb_options_clear_wal_filter(options);
  rocksdb_walfilter_destroy(filter);
}

static rocksdb_transactiondb_t* open_transactions(const char* path) {
  char* error = NULL;
  rocksdb_transactiondb_options_t* settings = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, settings, path, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_options_destroy(settings);
  return db;
}

/* What ends the being prepared of a transaction stands with its changes, and takes a number that no blob may have. */
static void added_blobs_of_a_commit(const char* path) {
  char* error = NULL;
  int calls = 0;
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_t* db = open_transactions(path);
  rocksdb_transaction_options_t* plain = rocksdb_transaction_options_create();
  rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, writing, plain, NULL);
  rocksdb_transaction_set_name(txn, "one", 3, &error);
  CHECK_OK(error);
  rocksdb_transaction_put(txn, "a", 1, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_transaction_prepare(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_options_destroy(plain);
  rocksdb_transactiondb_close(db);
  rocksdb_walfilter_t* filter = rocksdb_walfilter_create(&calls, ignore, NULL, add_blobs, name);
  rocksdb_options_set_wal_filter(options, filter);
  db = open_transactions(path);
  CHECK(calls == 1);
  size_t len = 0;
  char* value = rocksdb_transactiondb_get(db, reading, "a", 1, &len, &error);
  CHECK_OK(error);
  check_value(value, len, "filtered", __FILE__, __LINE__);
  rocksdb_transactiondb_close(db);
  rocksdb_options_clear_wal_filter(options);
  rocksdb_walfilter_destroy(filter);
  rocksdb_t* plainly = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  CHECK_GET(plainly, reading, "a", "filtered");
  check_blobs(plainly, "");
  rocksdb_close(plainly);
}

/* Copies the first two records of the batch and puts its own in the place of the others. */
static void copy_old(void* copy, uint32_t family, const char* key, size_t key_len, const char* value, size_t len) {
  (void)family;
  if (key_len > 1) rocksdb_writebatch_put(copy, key, key_len, value, len);
}

static void copy_operand(void* copy, uint32_t family, const char* key, size_t key_len, const char* value, size_t len) {
  (void)family;
  rocksdb_writebatch_merge(copy, key, key_len, value, len);
}

static const char ONE[8] = {1};

static int replace_some(void* state, unsigned long long log, const char* file, size_t len,
                        const rocksdb_writebatch_t* batch, rocksdb_writebatch_t* new_batch, unsigned char* changed) {
  (void)log, (void)file, (void)len;
  (*(int*)state)++;
  rocksdb_writebatch_iterate_cf((rocksdb_writebatch_t*)batch, new_batch, copy_old, no_delete, copy_operand);
  CHECK(rocksdb_writebatch_count(new_batch) == 2);
  rocksdb_writebatch_put(new_batch, "new put", 7, ONE, 8);
  rocksdb_writebatch_merge(new_batch, "new sum", 7, ONE, 8);
  *changed = 1;
  return rocksdb_wal_filter_continue_processing;
}

static int is_there(rocksdb_t* db, const char* key) {
  char* error = NULL;
  size_t len = 0;
  char* value = rocksdb_get(db, reading, key, strlen(key), &len, &error);
  CHECK_OK(error);
  const int found = value != NULL;
  rocksdb_free(value);
  return found;
}

/* What a filter leaves as it is expires as before; what it adds by the time to live with which the log is filtered. */
static void expiries(const char* path, int written_with, int filtered_with) {
  char* error = NULL;
  int calls = 0;
  rocksdb_options_t* summing = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(summing, 1);
  rocksdb_options_set_uint64add_merge_operator(summing);
  rocksdb_destroy_db(summing, path, &error);
  CHECK_OK(error);
  rocksdb_t* db = rocksdb_open_with_ttl(summing, path, written_with, &error);
  CHECK_OK(error);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "put", 3, ONE, 8);
  rocksdb_writebatch_merge(batch, "sum", 3, ONE, 8);
  rocksdb_writebatch_put(batch, "x", 1, ONE, 8);
  rocksdb_writebatch_put(batch, "y", 1, ONE, 8);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
  rocksdb_close(db);
  rocksdb_walfilter_t* filter = rocksdb_walfilter_create(&calls, ignore, NULL, replace_some, name);
  rocksdb_options_set_wal_filter(summing, filter);
  db = rocksdb_open_with_ttl(summing, path, filtered_with, &error);
  CHECK_OK(error);
  CHECK(calls == 1);
  const char* const copied[] = {"put", "sum"};
  const char* const added[] = {"new put", "new sum"};
  const int short_ones = written_with < filtered_with;
  const char* const* const going = short_ones ? copied : added;
  const char* const* const staying = short_ones ? added : copied;
  /* A second, and a sixteenth of it for operands: two minutes are for a machine that is busy. */
  for (int rounds = 0; is_there(db, going[0]) || is_there(db, going[1]); rounds++) {
    CHECK(rounds < 12000);
    thrd_sleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  CHECK(is_there(db, staying[0]) && is_there(db, staying[1]));
  CHECK(!is_there(db, "x") && !is_there(db, "y"));
  rocksdb_close(db);
  rocksdb_options_destroy(summing);
  rocksdb_walfilter_destroy(filter);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  char path[1024];
  char* error = NULL;
  snprintf(path, sizeof(path), "%s/log", argv[1]);
  options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_WAL_ttl_seconds(options, 3600);
  writing = rocksdb_writeoptions_create();
  reading = rocksdb_readoptions_create();

  State none = {.at = -1};
  check_answer(path, none, 3, "111", "#k1#k2#k3");
  State ignored = {.at = 1, .answer = rocksdb_wal_filter_ignore_current_record};
  check_answer(path, ignored, 3, "101", "#k1#k3");
  State stopped = {.at = 1, .answer = rocksdb_wal_filter_stop_replay};
  check_answer(path, stopped, 2, "100", "#k1");
  State replaced = {.at = 2, .answer = rocksdb_wal_filter_continue_processing, .replaces = 1};
  check_answer(path, replaced, 3, "110", "#k1#k2#swapped");
  State corrupt = {.at = 1, .answer = rocksdb_wal_filter_corrupted_record};
  check_refused(path, corrupt, "Corruption: Corruption reported by Wal Filter test");
  State too_many = {.at = 1, .replaces = 1, .too_many = 1};
  check_refused(path, too_many, "Not implemented: More than original # of records");
  State unknown = {.at = 0, .answer = 17};
  check_refused(path, unknown, "Not implemented: Unknown WalProcessingOption 17");

  added_blobs(path);
  added_blobs_of_a_commit(path);
  expiries(path, 1, 3600);
  expiries(path, 3600, 1);

  /* A reader changes no log. */
  State reader = {.at = -1};
  rocksdb_walfilter_t* filter = filter_of(&reader);
  CHECK(rocksdb_open_for_read_only(options, path, 0, &error) == NULL);
  CHECK_ERROR(error, "Not implemented: WAL filter");
  free_filter(&reader, filter);

  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_options_destroy(options);
  return 0;
}
