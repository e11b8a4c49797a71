/* Leaves a database behind: rows in `default`, which has no merge operator, and operands in `sums`, which has one that makes no value of
 * them: so they are still operands when the database is closed. */
#include "check.h"

static void nothing(void* state) { (void)state; }

static const char* name(void* state) {
  (void)state;
  return "left.never";
}

static char* never(void* state, const char* key, size_t key_len, const char* base, size_t base_len, const char* const* operands,
                   const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)state, (void)key, (void)key_len, (void)base, (void)base_len, (void)operands, (void)lens, (void)count;
  *success = 0;
  *len = 0;
  return NULL;
}

static char* never_partly(void* state, const char* key, size_t key_len, const char* const* operands, const size_t* lens, int count,
                          unsigned char* success, size_t* len) {
  return never(state, key, key_len, NULL, 0, operands, lens, count, success, len);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char path[512];
  snprintf(path, sizeof path, "%s/left", arguments[1]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  put(db, "k", "from C");
  rocksdb_options_t* adding = rocksdb_options_create();
  rocksdb_options_set_merge_operator(adding, rocksdb_mergeoperator_create(NULL, nothing, never, never_partly, NULL, name));
  rocksdb_column_family_handle_t* sums = rocksdb_create_column_family(db, adding, "sums", &error);
  CHECK_OK(error);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_put_cf(db, writing, sums, "plain", 5, "value", 5, &error);
  CHECK_OK(error);
  rocksdb_merge_cf(db, writing, sums, "n", 1, "2", 1, &error);
  CHECK_OK(error);
  rocksdb_merge_cf(db, writing, sums, "n", 1, "3", 1, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  rocksdb_flush(db, flushing, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_column_family_handle_destroy(sums);
  rocksdb_close(db);
  rocksdb_options_destroy(adding);
  rocksdb_options_destroy(options);
  return 0;
}
