/* One database used by several threads at once: writes, batches, merges by a callback, reads and iterators. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 300 };

static rocksdb_t* db;

static char* last(void* state, const char* key, size_t key_len, const char* base, size_t base_len,
                  const char* const* operands, const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)state;
  (void)key;
  (void)key_len;
  (void)base;
  (void)base_len;
  char* out = malloc(lens[count - 1] + 1);
  memcpy(out, operands[count - 1], lens[count - 1]);
  *len = lens[count - 1];
  *success = 1;
  return out;
}

static char* never(void* state, const char* key, size_t key_len, const char* const* operands, const size_t* lens,
                   int count, unsigned char* success, size_t* len) {
  (void)state;
  (void)key;
  (void)key_len;
  (void)operands;
  (void)lens;
  (void)count;
  *success = 0;
  *len = 0;
  return NULL;
}

static const char* name(void* state) {
  (void)state;
  return "last";
}

static void nothing(void* state) {
  (void)state;
}

static void* work(void* argument) {
  int thread = *(int*)argument;
  char* error = NULL;
  char key[32], value[32];
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  for (int round = 0; round < ROUNDS; round++) {
    snprintf(key, sizeof key, "t%d-%06d", thread, round);
    snprintf(value, sizeof value, "v%d", round);
    rocksdb_put(db, writing, key, strlen(key), value, strlen(value), &error);
    CHECK_OK(error);
    CHECK_GET(db, reading, key, value);
    rocksdb_merge(db, writing, "shared", 6, value, strlen(value), &error);
    CHECK_OK(error);
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_put(batch, "pair1", 5, key, strlen(key));
    rocksdb_writebatch_put(batch, "pair2", 5, key, strlen(key));
    rocksdb_write(db, writing, batch, &error);
    CHECK_OK(error);
    if (round % 50 == 0) {
      /* A snapshot never sees half a batch. */
      const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
      rocksdb_readoptions_set_snapshot(reading, snapshot);
      size_t len1 = 0, len2 = 0;
      char* first = rocksdb_get(db, reading, "pair1", 5, &len1, &error);
      char* second = rocksdb_get(db, reading, "pair2", 5, &len2, &error);
      CHECK_OK(error);
      CHECK(first != NULL && second != NULL && len1 == len2 && memcmp(first, second, len1) == 0);
      rocksdb_free(first);
      rocksdb_free(second);
      rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
      int rows = 0;
      char prefix[8];
      int prefix_len = snprintf(prefix, sizeof prefix, "t%d-", thread);
      for (rocksdb_iter_seek(iter, prefix, prefix_len); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        size_t len = 0;
        const char* at = rocksdb_iter_key(iter, &len);
        if (len < (size_t)prefix_len || memcmp(at, prefix, prefix_len) != 0) break;
        rows++;
      }
      CHECK(rows == round + 1);
      rocksdb_iter_destroy(iter);
      rocksdb_readoptions_set_snapshot(reading, NULL);
      rocksdb_release_snapshot(db, snapshot);
      if (thread == 0) rocksdb_compact_range(db, NULL, 0, NULL, 0);
    }
  }
  rocksdb_writebatch_destroy(batch);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  return NULL;
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "threads");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_merge_operator(options, rocksdb_mergeoperator_create(NULL, nothing, last, never, NULL, name));
  db = open_new(options, path);
  rocksdb_options_destroy(options);
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  rocksdb_close(db);
  free(path);
  return 0;
}
