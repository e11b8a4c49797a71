/* Merge operators and compaction filters by functions of the user: results, failures, and who is freed when. */
#include "check.h"

static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;

static int operators_freed = 0, filters_freed = 0, values_freed = 0;

static void free_operator(void* state) {
  CHECK(state == &operators_freed);
  operators_freed++;
}

static void free_filter(void* state) {
  CHECK(state == &filters_freed);
  filters_freed++;
}

static void free_value(void* state, const char* value, size_t len) {
  (void)len;
  CHECK(state == &operators_freed);
  __atomic_fetch_add(&values_freed, 1, __ATOMIC_RELAXED);
  free((void*)value);
}

static const char* name(void* state) {
  (void)state;
  return "of-the-test";
}

/* Base and operands with commas between; fails at an operand "bad". */
static char* joined(const char* base, size_t base_len, const char* const* operands, const size_t* lens, int count,
                    unsigned char* success, size_t* len) {
  size_t size = base_len + 1;
  for (int i = 0; i < count; i++) size += lens[i] + 1;
  char* out = malloc(size);
  size_t at = 0;
  if (base != NULL) {
    memcpy(out, base, base_len);
    at = base_len;
  }
  for (int i = 0; i < count; i++) {
    if (lens[i] == 3 && memcmp(operands[i], "bad", 3) == 0) {
      *success = 0;
      *len = 0;
      return out;
    }
    if (base != NULL || i > 0) out[at++] = ',';
    memcpy(out + at, operands[i], lens[i]);
    at += lens[i];
  }
  *success = 1;
  *len = at;
  return out;
}

static int partial_is_possible = 1, partials = 0, most_operands = 0;

static char* full_merge(void* state, const char* key, size_t key_len, const char* base, size_t base_len,
                        const char* const* operands, const size_t* lens, int count, unsigned char* success,
                        size_t* len) {
  (void)state;
  CHECK(key_len > 0 && key != NULL);
  if (count > most_operands) most_operands = count;
  return joined(base, base_len, operands, lens, count, success, len);
}

static char* partial_merge(void* state, const char* key, size_t key_len, const char* const* operands,
                           const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)state;
  (void)key;
  (void)key_len;
  if (!partial_is_possible) {
    *success = 0;
    return NULL;
  }
  partials++;
  return joined(NULL, 0, operands, lens, count, success, len);
}

static void merge(rocksdb_t* db, const char* key, const char* operand) {
  char* error = NULL;
  rocksdb_merge(db, writing, key, strlen(key), operand, strlen(operand), &error);
  CHECK_OK(error);
}

static void merges(const char* directory) {
  char* error = NULL;
  size_t len = 0;
  char* path = path_in(directory, "merge");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(&operators_freed, free_operator, full_merge, partial_merge, free_value, name));
  rocksdb_options_t* copy = rocksdb_options_create_copy(options);
  rocksdb_t* db = open_new(options, path);
  rocksdb_options_destroy(options);
  put(db, "k", "a");
  merge(db, "k", "b");
  merge(db, "k", "c");
  merge(db, "none", "x");
  CHECK_GET(db, reading, "k", "a,b,c");
  CHECK_GET(db, reading, "none", "x");
  /* Where they are stored, operands are joined before they meet the value; without a way to, they meet it as they are. */
  most_operands = partials = 0;
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(partials == 1 && most_operands == 1);
  CHECK_GET(db, reading, "k", "a,b,c");
  put(db, "apart", "a");
  merge(db, "apart", "b");
  merge(db, "apart", "c");
  partial_is_possible = 0;
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(most_operands == 2);
  CHECK_GET(db, reading, "apart", "a,b,c");
  partial_is_possible = 1;
  merge(db, "k", "");
  CHECK_GET(db, reading, "k", "a,b,c,");
  merge(db, "broken", "bad");
  CHECK(rocksdb_get(db, reading, "broken", 6, &len, &error) == NULL);
  CHECK_ERROR(error, "Corruption: ");
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek(iter, "broken", 6);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_get_error(iter, &error);
  CHECK_ERROR(error, "Corruption: ");
  rocksdb_iter_seek(iter, "k", 1);
  CHECK_ROW(iter, "k", "a,b,c,");
  rocksdb_iter_destroy(iter);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_merge(batch, "k", 1, "d", 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "a,b,c,,d");
  rocksdb_close(db);
  CHECK(operators_freed == 0);

  /* Without the operator: what was merged is unreadable, the rest is there. */
  options = rocksdb_options_create();
  db = open_new(options, path);
  CHECK_GET(db, reading, "absent", NULL);
  CHECK(rocksdb_get(db, reading, "k", 1, &len, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_write(db, writing, batch, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_writebatch_destroy(batch);
  rocksdb_close(db);
  rocksdb_options_destroy(options);

  db = open_new(copy, path);
  rocksdb_options_destroy(copy);
  CHECK(operators_freed == 0);
  CHECK_GET(db, reading, "k", "a,b,c,,d");
  rocksdb_close(db);
  CHECK(operators_freed == 1 && values_freed > 0);
  free(path);
}

static void sums(const char* directory) {
  char* error = NULL;
  size_t len = 0;
  char* path = path_in(directory, "sums");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_t* db = open_new(options, path);
  const uint64_t numbers[2] = {40, 2};
  rocksdb_merge(db, writing, "n", 1, (const char*)&numbers[0], 8, &error);
  rocksdb_merge(db, writing, "n", 1, (const char*)&numbers[1], 8, &error);
  CHECK_OK(error);
  uint64_t sum = 0;
  char* value = rocksdb_get(db, reading, "n", 1, &len, &error);
  CHECK(value != NULL && len == 8);
  memcpy(&sum, value, 8);
  CHECK(sum == 42);
  rocksdb_free(value);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

static unsigned char filter(void* state, int level, const char* key, size_t key_len, const char* value,
                            size_t value_len, char** new_value, size_t* new_len, unsigned char* changed) {
  CHECK(state == &filters_freed);
  (void)level;
  (void)key;
  (void)key_len;
  if (value_len == 4 && memcmp(value, "drop", 4) == 0) return 1;
  if (value_len == 6 && memcmp(value, "change", 6) == 0) {
    *new_value = "changed";
    *new_len = 7;
    *changed = 1;
  }
  return 0;
}

static void filters(const char* directory) {
  char* path = path_in(directory, "filters");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_compactionfilter_t* of_the_test = rocksdb_compactionfilter_create(&filters_freed, free_filter, filter, name);
  rocksdb_options_set_compaction_filter(options, of_the_test);
  rocksdb_t* db = open_new(options, path);
  put(db, "a", "keep");
  put(db, "b", "drop");
  put(db, "c", "change");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "a", "keep");
  CHECK_GET(db, reading, "b", NULL);
  CHECK_GET(db, reading, "c", "changed");
  rocksdb_options_destroy(options);
  /* The handle may go before the database: the filter stays until nobody uses it. */
  rocksdb_compactionfilter_destroy(of_the_test);
  CHECK(filters_freed == 0);
  put(db, "b", "drop");
  rocksdb_compact_range(db, "a", 1, "c", 1);
  CHECK_GET(db, reading, "b", NULL);
  rocksdb_close(db);
  CHECK(filters_freed == 1);
  free(path);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  merges(arguments[1]);
  sums(arguments[1]);
  filters(arguments[1]);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  return 0;
}
