/* Makes databases through RocksDB's C interface, for the tests of `import --from rocksdb`.
 * source PATH plain ROWS      three column families; deletes and overwritten values, the end of it in the log only
 * source PATH options STRING  one family by an option string; merges if it names an operator
 * source PATH operator        merges of an operator of the program's own
 * source PATH comparator      an order of the program's own */
#include "check.h"

static rocksdb_t* db;
static rocksdb_writeoptions_t* writing;
static char* error;

static void put_cf(rocksdb_column_family_handle_t* cf, const char* key, const char* value) {
  rocksdb_put_cf(db, writing, cf, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

static void plain(rocksdb_options_t* options, const char* path, int rows) {
  db = open_new(options, path);
  rocksdb_column_family_handle_t* users = rocksdb_create_column_family(db, options, "users", &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_t* none = rocksdb_create_column_family(db, options, "empty", &error);
  CHECK_OK(error);
  char key[32], value[64];
  for (int round = 0; round < 2; round++) {
    for (int n = 0; n < rows; n++) {
      snprintf(key, sizeof key, "k%07d", n);
      snprintf(value, sizeof value, "value %d of round %d", n, n % 3 == 0 ? round : 0);
      put(db, key, value);
      put_cf(users, key, n % 5 == 0 ? "" : value);
      if (n % 7 == 0) {
        rocksdb_delete(db, writing, key, strlen(key), &error);
        CHECK_OK(error);
      }
    }
    if (round == 0) {
      rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
      rocksdb_flush(db, flush, &error);
      CHECK_OK(error);
      rocksdb_flushoptions_destroy(flush);
    }
  }
  rocksdb_column_family_handle_destroy(users);
  rocksdb_column_family_handle_destroy(none);
}

static void rows_of_one(const char* path, rocksdb_options_t* options, int merges) {
  db = open_new(options, path);
  put(db, "a", "1");
  put(db, "b", "22222222");
  put(db, "c", "3");
  if (merges) {
    rocksdb_merge(db, writing, "b", 1, "\1\0\0\0\0\0\0\0", 8, &error);
    CHECK_OK(error);
  }
}

static void nothing(void* state) { (void)state; }
static const char* own_name(void* state) {
  (void)state;
  return "a.program.of.its.own";
}
static int by_bytes(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  (void)state;
  int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
  return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}
static char* last_operand(void* state, const char* key, size_t key_len, const char* value, size_t value_len,
                          const char* const* operands, const size_t* lengths, int count, unsigned char* could,
                          size_t* len) {
  (void)state, (void)key, (void)key_len, (void)value, (void)value_len;
  *could = 1;
  *len = lengths[count - 1];
  char* made = malloc(*len + 1);
  memcpy(made, operands[count - 1], *len);
  return made;
}
static char* last_of_some(void* state, const char* key, size_t key_len, const char* const* operands,
                          const size_t* lengths, int count, unsigned char* could, size_t* len) {
  return last_operand(state, key, key_len, NULL, 0, operands, lengths, count, could, len);
}

int main(int count, char** words) {
  CHECK(count >= 3);
  const char *path = words[1], *kind = words[2];
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_comparator_t* comparator = NULL;
  writing = rocksdb_writeoptions_create();
  if (strcmp(kind, "plain") == 0) {
    plain(options, path, atoi(words[3]));
  } else if (strcmp(kind, "options") == 0) {
    rocksdb_options_t* base = rocksdb_options_create();
    rocksdb_get_options_from_string(base, words[3], options, &error);
    CHECK_OK(error);
    rows_of_one(path, options, strstr(words[3], "merge_operator") != NULL);
    rocksdb_options_destroy(base);
  } else if (strcmp(kind, "operator") == 0) {
    rocksdb_options_set_merge_operator(
        options, rocksdb_mergeoperator_create(NULL, nothing, last_operand, last_of_some, NULL, own_name));
    rows_of_one(path, options, 1);
  } else {
    comparator = rocksdb_comparator_create(NULL, nothing, by_bytes, own_name);
    rocksdb_options_set_comparator(options, comparator);
    rows_of_one(path, options, 0);
  }
  rocksdb_close(db);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_options_destroy(options);
  if (comparator != NULL) rocksdb_comparator_destroy(comparator);
  return 0;
}
