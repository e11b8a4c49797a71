/* Iterators: both directions, bounds, snapshots, refresh, prefixes, pinned keys, several at one moment. */
#include "check.h"

static rocksdb_writeoptions_t* writing;

static void directions(rocksdb_t* db) {
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  char* error = NULL;
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "a1", "1");
  rocksdb_iter_next(iter);
  CHECK_ROW(iter, "a2", "2");
  rocksdb_iter_prev(iter);
  CHECK_ROW(iter, "a1", "1");
  rocksdb_iter_prev(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "c1", "6");
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek(iter, "a3", 2);
  CHECK_ROW(iter, "b1", "3");
  rocksdb_iter_seek_for_prev(iter, "a3", 2);
  CHECK_ROW(iter, "a2", "2");
  rocksdb_iter_seek_for_prev(iter, "b2", 2);
  CHECK_ROW(iter, "b2", "4");
  rocksdb_iter_seek(iter, "z", 1);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_get_error(iter, &error);
  CHECK_OK(error);
  rocksdb_iter_seek_to_first(iter);
  rocksdb_slice_t key = rocksdb_iter_key_slice(iter), value = rocksdb_iter_value_slice(iter);
  CHECK(key.size == 2 && memcmp(key.data, "a1", 2) == 0 && value.size == 1 && value.data[0] == '1');
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(reading);
}

static void bounds(rocksdb_t* db) {
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  char lower[] = "a2", upper[] = "b2";
  rocksdb_readoptions_set_iterate_lower_bound(reading, lower, 2);
  rocksdb_readoptions_set_iterate_upper_bound(reading, upper, 2);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "a2", "2");
  rocksdb_iter_next(iter);
  CHECK_ROW(iter, "b1", "3");
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "b1", "3");
  rocksdb_iter_seek(iter, "a", 1);
  CHECK_ROW(iter, "a2", "2");
  rocksdb_iter_prev(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_for_prev(iter, "z", 1);
  CHECK_ROW(iter, "b1", "3");
  rocksdb_iter_seek(iter, "b2", 2);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_for_prev(iter, "a1", 2);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);

  /* Nothing lies between bounds that are the wrong way round. */
  rocksdb_readoptions_set_iterate_lower_bound(reading, "c", 1);
  iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_iterate_lower_bound(reading, NULL, 0);
  rocksdb_readoptions_set_iterate_upper_bound(reading, NULL, 0);
  iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "c1", "6");
  /* Options may go before what was made with them. */
  rocksdb_readoptions_destroy(reading);
  rocksdb_iter_prev(iter);
  CHECK_ROW(iter, "b3", "5");
  rocksdb_iter_destroy(iter);
}

static void moments(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_readoptions_set_tailing(reading, 1);
  rocksdb_iterator_t* tail = rocksdb_create_iterator(db, reading);
  rocksdb_readoptions_set_tailing(reading, 0);
  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  put(db, "d1", "new");
  rocksdb_iter_seek(iter, "d", 1);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek(tail, "d", 1);
  CHECK_ROW(tail, "d1", "new");
  rocksdb_iter_refresh(iter, &error);
  CHECK_OK(error);
  rocksdb_iter_seek(iter, "d", 1);
  CHECK_ROW(iter, "d1", "new");
  /* Without a position until it is placed again. */
  rocksdb_iter_refresh(iter, &error);
  CHECK_OK(error);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(tail);
  rocksdb_iter_destroy(iter);

  rocksdb_readoptions_set_snapshot(reading, snapshot);
  iter = rocksdb_create_iterator(db, reading);
  rocksdb_release_snapshot(db, snapshot);
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "c1", "6");
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(reading);
  rocksdb_delete(db, writing, "d1", 2, &error);
  CHECK_OK(error);
}

static void pinned_keys(rocksdb_t* db) {
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_readoptions_set_pin_data(reading, 1);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  const char* keys[6];
  size_t lens[6], count = 0;
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    keys[count] = rocksdb_iter_key(iter, &lens[count]);
    count++;
  }
  CHECK(count == 6 && memcmp(keys[0], "a1", 2) == 0 && memcmp(keys[3], "b2", 2) == 0 && lens[5] == 2);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(reading);
}

static void prefixes(rocksdb_t* db, int has_prefixes) {
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_readoptions_set_prefix_same_as_start(reading, 1);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek(iter, "b2", 2);
  CHECK_ROW(iter, "b2", "4");
  rocksdb_iter_next(iter);
  CHECK_ROW(iter, "b3", "5");
  rocksdb_iter_next(iter);
  CHECK(rocksdb_iter_valid(iter) == !has_prefixes);
  rocksdb_iter_seek(iter, "bz", 2);
  CHECK(rocksdb_iter_valid(iter) == !has_prefixes);
  rocksdb_iter_seek_for_prev(iter, "b0", 2);
  CHECK(rocksdb_iter_valid(iter) == !has_prefixes);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(reading);
}

static void fill(rocksdb_t* db) {
  put(db, "a1", "1");
  put(db, "a2", "2");
  put(db, "b1", "3");
  put(db, "b2", "4");
  put(db, "b3", "5");
  put(db, "c1", "6");
}

static char* first_byte(void* state, const char* key, size_t len, size_t* prefix_len) {
  (void)state;
  *prefix_len = len < 1 ? len : 1;
  return (char*)key;
}

static unsigned char in_domain(void* state, const char* key, size_t len) {
  (void)state;
  (void)key;
  return len >= 1;
}

static const char* transform_name(void* state) {
  (void)state;
  return "first-byte";
}

static int freed = 0;

static void free_transform(void* state) {
  CHECK(state == &freed);
  freed++;
}

static void together(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_column_family_handle_t* of[2] = {cf, cf};
  rocksdb_iterator_t* iters[2];
  rocksdb_create_iterators(db, reading, of, iters, 2, &error);
  CHECK_OK(error);
  rocksdb_iter_seek_to_first(iters[0]);
  rocksdb_iter_seek_to_last(iters[1]);
  CHECK_ROW(iters[0], "a1", "1");
  CHECK_ROW(iters[1], "c1", "6");
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_readoptions_destroy(reading);
  rocksdb_iter_destroy(iters[0]);
  rocksdb_iter_destroy(iters[1]);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  writing = rocksdb_writeoptions_create();
  for (int round = 0; round < 3; round++) {
    const char* names[3] = {"plain", "fixed", "callback"};
    char* path = path_in(arguments[1], names[round]);
    rocksdb_options_t* options = rocksdb_options_create();
    if (round == 1) {
      rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(1));
    } else if (round == 2) {
      rocksdb_options_set_prefix_extractor(
          options, rocksdb_slicetransform_create(&freed, free_transform, first_byte, in_domain, transform_name));
    }
    rocksdb_t* db = open_new(options, path);
    rocksdb_options_destroy(options);
    fill(db);
    for (int flushed = 0; flushed < 2; flushed++) {
      directions(db);
      bounds(db);
      moments(db);
      pinned_keys(db);
      prefixes(db, round > 0);
      together(db);
      char* error = NULL;
      rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
      rocksdb_flush(db, flush, &error);
      CHECK_OK(error);
      rocksdb_flushoptions_destroy(flush);
    }
    CHECK(freed == 0);
    rocksdb_close(db);
    free(path);
  }
  CHECK(freed == 1);
  rocksdb_writeoptions_destroy(writing);
  return 0;
}
