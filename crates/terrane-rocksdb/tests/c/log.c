/* The log of commits: batches in order, their numbers and bytes, and going on when more has come. */
#include "check.h"

static rocksdb_writeoptions_t* writing;

static void write_two(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_delete(batch, "b", 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
}

static void log_of_commits(rocksdb_t* db) {
  char* error = NULL;
  uint64_t seq = 0, first = rocksdb_get_latest_sequence_number(db) + 1;
  size_t len = 0;
  write_two(db);
  put(db, "c", "3");
  rocksdb_wal_iterator_t* iter = rocksdb_get_updates_since(db, first, NULL, &error);
  CHECK_OK(error);
  CHECK(rocksdb_wal_iter_valid(iter));
  rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(iter, &seq);
  CHECK(seq == first && rocksdb_writebatch_count(batch) == 2);
  const char* data = rocksdb_writebatch_data(batch, &len);
  const char records[] = {2, 0, 0, 0, 1, 1, 'a', 1, '1', 0, 1, 'b'};
  CHECK(len == 8 + sizeof records && memcmp(data + 8, records, sizeof records) == 0);
  CHECK((unsigned char)data[0] == (first & 0xff));
  rocksdb_writebatch_destroy(batch);
  rocksdb_wal_iter_next(iter);
  CHECK(rocksdb_wal_iter_valid(iter));
  batch = rocksdb_wal_iter_get_batch(iter, &seq);
  CHECK(seq == first + 2 && rocksdb_writebatch_count(batch) == 1);
  rocksdb_writebatch_destroy(batch);
  rocksdb_wal_iter_next(iter);
  CHECK(!rocksdb_wal_iter_valid(iter));
  CHECK(rocksdb_wal_iter_get_batch(iter, &seq) == NULL);
  rocksdb_wal_iter_status(iter, &error);
  CHECK_OK(error);
  put(db, "d", "4");
  rocksdb_wal_iter_next(iter);
  CHECK(rocksdb_wal_iter_valid(iter));
  rocksdb_wal_iter_destroy(iter);
  CHECK(rocksdb_get_updates_since(db, first + 1000, NULL, &error) == NULL);
  CHECK_ERROR(error, "NotFound: ");
}

/* Whoever asks for what is behind number and count sees each batch once, whatever else took numbers. */
static void followed(rocksdb_t* db) {
  char* error = NULL;
  const uint64_t begin = rocksdb_get_latest_sequence_number(db) + 1;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  for (int i = 0; i < 3; i++) {
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_put(batch, "k", 1, "v", 1);
    rocksdb_writebatch_put_log_data(batch, "blob", 4);
    rocksdb_write(db, writing, batch, &error);
    CHECK_OK(error);
  }
  rocksdb_writebatch_destroy(batch);
  int seen = 0;
  uint64_t next = begin, seq = 0;
  for (; seen < 10; seen++) {
    rocksdb_wal_iterator_t* iter = rocksdb_get_updates_since(db, next, NULL, &error);
    CHECK_OK(error);
    const int is_there = rocksdb_wal_iter_valid(iter);
    if (is_there) {
      batch = rocksdb_wal_iter_get_batch(iter, &seq);
      CHECK(seq == begin + 2 * (uint64_t)seen && rocksdb_writebatch_count(batch) == 1);
      next = seq + 1;
      rocksdb_writebatch_destroy(batch);
    }
    rocksdb_wal_iter_destroy(iter);
    if (!is_there) break;
  }
  CHECK(seen == 3);
}

static void on_put(void* told, const char* key, size_t key_len, const char* value, size_t value_len) {
  (void)value, (void)value_len;
  strncat(told, key, key_len);
}

static void on_delete(void* told, const char* key, size_t len) {
  strcat(told, "-");
  strncat(told, key, len);
}

static void on_log(void* told, const char* blob, size_t len) {
  strcat(told, "#");
  strncat(told, blob, len);
}

/* Blobs are in the log, in their place, and are not counted; each takes a number. */
static void blobs(rocksdb_t* db) {
  char* error = NULL;
  uint64_t seq = 0, first = rocksdb_get_latest_sequence_number(db) + 1;
  size_t len = 0;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_log_data(batch, "one", 3);
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put_log_data(batch, "taken back", 10);
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_put_log_data(batch, "two", 3);
  rocksdb_writebatch_delete(batch, "b", 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put_log_data(batch, "alone", 5);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
  rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_put_log_data(indexed, "indexed", 7);
  rocksdb_writebatch_wi_put(indexed, "c", 1, "3", 1);
  rocksdb_write_writebatch_wi(db, writing, indexed, &error);
  CHECK_OK(error);
  rocksdb_writebatch_wi_destroy(indexed);
  CHECK(rocksdb_get_latest_sequence_number(db) == first + 6);
  const char* expected[] = {"#onea#two-b", "#alone", "#indexedc"};
  const uint64_t numbers[] = {0, 4, 5};
  const int counts[] = {2, 0, 1};
  rocksdb_wal_iterator_t* iter = rocksdb_get_updates_since(db, first, NULL, &error);
  CHECK_OK(error);
  for (int at = 0; at < 3; ++at) {
    CHECK(rocksdb_wal_iter_valid(iter));
    batch = rocksdb_wal_iter_get_batch(iter, &seq);
    CHECK(seq == first + numbers[at] && rocksdb_writebatch_count(batch) == counts[at]);
    char told[64] = "";
    rocksdb_writebatch_iterate_ld(batch, told, on_put, on_delete, on_log);
    CHECK(strcmp(told, expected[at]) == 0);
    const char* data = rocksdb_writebatch_data(batch, &len);
    const char alone[] = {0, 0, 0, 0, 3, 5, 'a', 'l', 'o', 'n', 'e'};
    CHECK(at != 1 || (len == 8 + sizeof alone && memcmp(data + 8, alone, sizeof alone) == 0));
    rocksdb_writebatch_destroy(batch);
    rocksdb_wal_iter_next(iter);
  }
  CHECK(!rocksdb_wal_iter_valid(iter));
  rocksdb_wal_iter_destroy(iter);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "log");
  rocksdb_options_t* options = rocksdb_options_create();
  size_t len = 0;
  rocksdb_options_set_wal_dir(options, "elsewhere");
  CHECK(strcmp(rocksdb_options_get_wal_dir(options, &len), "elsewhere") == 0 && len == 9);
  rocksdb_options_set_WAL_ttl_seconds(options, 3600);
  writing = rocksdb_writeoptions_create();
  rocksdb_t* db = open_new(options, path);
  log_of_commits(db);
  blobs(db);
  followed(db);
  /* What is in the levels is kept for who asks. */
  char* error = NULL;
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
  log_of_commits(db);
  rocksdb_close(db);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_options_destroy(options);
  free(path);
  return 0;
}
