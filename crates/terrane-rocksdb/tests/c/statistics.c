/* Tickers, histograms and their text, over a database that is open and after it is closed. */
#include <stdint.h>

#include "check.h"

enum { CACHE_MISS = 0, CACHE_HIT = 1, FILTER_USEFUL = 35, FILTER_POSITIVE = 36, FILTER_TRUE_POSITIVE = 37, ITER_SKIP = 70, KEYS_WRITTEN = 58, KEYS_READ = 59, BYTES_WRITTEN = 61, BYTES_READ = 62, SEEKS = 63, NEXTS = 64, FLUSH_BYTES = 96 };
enum { DB_GET = 0, DB_WRITE = 1, DB_SEEK = 15, FLUSH_TIME = 50 };

static uint64_t histogram(rocksdb_options_t* options, uint32_t number) {
  rocksdb_statistics_histogram_data_t* data = rocksdb_statistics_histogram_data_create();
  CHECK(rocksdb_statistics_histogram_data_get_count(data) == 0);
  rocksdb_options_statistics_get_histogram_data(options, number, data);
  uint64_t count = rocksdb_statistics_histogram_data_get_count(data);
  double median = rocksdb_statistics_histogram_data_get_median(data);
  double p95 = rocksdb_statistics_histogram_data_get_p95(data), p99 = rocksdb_statistics_histogram_data_get_p99(data);
  double max = rocksdb_statistics_histogram_data_get_max(data), min = rocksdb_statistics_histogram_data_get_min(data);
  CHECK(0 <= min && min <= max && median <= p95 && p95 <= p99 && p99 <= max);
  CHECK((count == 0) == (rocksdb_statistics_histogram_data_get_sum(data) == 0));
  CHECK((count == 0) == (rocksdb_statistics_histogram_data_get_average(data) == 0));
  CHECK((count == 0) == (median == 0));
  CHECK(rocksdb_statistics_histogram_data_get_std_dev(data) >= 0);
  rocksdb_statistics_histogram_data_destroy(data);
  return count;
}

static uint64_t ticker(rocksdb_options_t* options, uint32_t number) {
  return rocksdb_options_statistics_get_ticker_count(options, number);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char *path = path_in(arguments[1], "db"), *second_path = path_in(arguments[1], "second");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  CHECK(rocksdb_options_statistics_get_string(options) == NULL && ticker(options, BYTES_WRITTEN) == 0);
  rocksdb_options_enable_statistics(options);
  CHECK(histogram(options, DB_WRITE) == 0 && ticker(options, BYTES_WRITTEN) == 0);
  rocksdb_t* db = open_new(options, path);
  rocksdb_t* second = open_new(options, second_path);
  CHECK(ticker(options, KEYS_WRITTEN) == 0);
  for (int i = 0; i < 10; i++) put(db, "k", "some value");
  put(second, "k", "v");
  CHECK(ticker(options, KEYS_WRITTEN) == 11 && ticker(options, BYTES_WRITTEN) > 110);
  CHECK(histogram(options, DB_WRITE) == 11);
  CHECK_GET(db, reading, "k", "some value");
  CHECK_GET(db, reading, "absent", NULL);
  CHECK(ticker(options, KEYS_READ) == 2 && ticker(options, BYTES_READ) == 10 && histogram(options, DB_GET) == 2);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iter);
  rocksdb_iter_next(iter);
  rocksdb_iter_destroy(iter);
  CHECK(ticker(options, SEEKS) == 1 && ticker(options, NEXTS) == 1 && histogram(options, DB_SEEK) == 1);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  /* A flush counts itself when it has answered, and what it wrote may be merged then. */
  wait_for_compactions(db);
  CHECK(ticker(options, FLUSH_BYTES) > 0 && histogram(options, FLUSH_TIME) >= 1);
  /* Of keys within the range of a table file, a filter refuses nearly all that are absent; one row is there. */
  put(second, "a", "v");
  put(second, "z", "v");
  rocksdb_flush(second, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
  const uint64_t asked = ticker(options, FILTER_USEFUL) + ticker(options, FILTER_POSITIVE);
  for (int i = 0; i < 100; i++) {
    char key[8];
    snprintf(key, sizeof key, "m%d", i);
    CHECK_GET(second, reading, key, NULL);
  }
  CHECK(ticker(options, FILTER_USEFUL) > 0);
  CHECK(ticker(options, FILTER_USEFUL) + ticker(options, FILTER_POSITIVE) == asked + 100);
  const uint64_t found = ticker(options, FILTER_TRUE_POSITIVE);
  CHECK_GET(second, reading, "a", "v");
  CHECK(ticker(options, FILTER_TRUE_POSITIVE) == found + 1);
  /* An iterator passes deletes and what they hide. */
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_delete(second, writing, "k", 1, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_destroy(writing);
  const uint64_t skipped = ticker(options, ITER_SKIP);
  rocksdb_perfcontext_t* context = rocksdb_perfcontext_create();
  iter = rocksdb_create_iterator(second, reading);
  rocksdb_iter_seek(iter, "a", 1);
  CHECK(ticker(options, ITER_SKIP) == skipped);
  rocksdb_iter_next(iter);
  CHECK_ROW(iter, "z", "v");
  rocksdb_iter_destroy(iter);
  CHECK(ticker(options, ITER_SKIP) == skipped + 2);
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_internal_key_skipped_count) == 2);
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_internal_delete_skipped_count) == 1);
  rocksdb_perfcontext_destroy(context);
  CHECK(ticker(options, 12345) == 0 && histogram(options, 12345) == 0);
  /* Another handle of the same database comes and goes. */
  rocksdb_t* follower = rocksdb_open_as_secondary(options, path, second_path, &error);
  CHECK_OK(error);
  const uint64_t read = ticker(options, KEYS_READ), missed = ticker(options, CACHE_MISS);
  CHECK_GET(follower, reading, "k", "some value");
  const uint64_t once = ticker(options, CACHE_MISS) - missed;
  CHECK(once > 0 && ticker(options, KEYS_READ) == read + 1);
  /* What was counted at one moment of the other counts on at the next, once. */
  for (int i = 0; i < 2; i++) {
    const uint64_t so_far = ticker(options, CACHE_MISS);
    rocksdb_try_catch_up_with_primary(follower, &error);
    CHECK_OK(error);
    CHECK(ticker(options, CACHE_MISS) == so_far);
    CHECK_GET(follower, reading, "k", "some value");
  }
  CHECK(ticker(options, KEYS_READ) == read + 3);
  /* The block was brought by the reads before. */
  const uint64_t hits = ticker(options, CACHE_HIT);
  CHECK_GET(follower, reading, "k", "some value");
  CHECK(ticker(options, CACHE_HIT) > hits);
  rocksdb_close(follower);
  CHECK(ticker(options, CACHE_MISS) >= missed + once);
  put(db, "k", "v");
  CHECK(ticker(options, KEYS_WRITTEN) == 15);
  rocksdb_close(db);
  CHECK(ticker(options, KEYS_WRITTEN) == 15 && ticker(options, FLUSH_BYTES) > 0);
  put(second, "k", "v");
  rocksdb_close(second);
  CHECK(ticker(options, KEYS_WRITTEN) == 16);
  char* text = rocksdb_options_statistics_get_string(options);
  CHECK(strstr(text, "rocksdb.number.keys.written COUNT : 16\n") != NULL);
  CHECK(strstr(text, "rocksdb.block.cache.hit COUNT : ") != NULL);
  CHECK(strstr(text, "rocksdb.db.write.micros P50 : ") != NULL && strstr(text, "COUNT : 16 SUM : ") != NULL);
  rocksdb_free(text);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  free(path);
  free(second_path);
  return 0;
}
