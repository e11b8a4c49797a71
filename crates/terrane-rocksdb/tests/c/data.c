/* Put, get, delete, single delete, range delete, pinned values, several keys, snapshots. */
#include "check.h"

static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;

static void values(rocksdb_t* db) {
  char* error = NULL;
  size_t len = 99;
  put(db, "k", "v");
  CHECK_GET(db, reading, "k", "v");
  put(db, "empty", "");
  CHECK_GET(db, reading, "empty", "");
  char* none = rocksdb_get(db, reading, "absent", 6, &len, &error);
  CHECK_OK(error);
  CHECK(none == NULL && len == 0);

  /* Keys and values are bytes, zeros included; a null key of no bytes is the empty key. */
  rocksdb_put(db, writing, "a\0b", 3, "x\0y", 3, &error);
  CHECK_OK(error);
  rocksdb_put(db, writing, NULL, 0, "nothing", 7, &error);
  CHECK_OK(error);
  char* value = rocksdb_get(db, reading, "a\0b", 3, &len, &error);
  CHECK(value != NULL && len == 3 && memcmp(value, "x\0y", 3) == 0);
  rocksdb_free(value);
  CHECK_GET(db, reading, "", "nothing");

  rocksdb_delete(db, writing, "k", 1, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", NULL);
  put(db, "once", "1");
  rocksdb_singledelete(db, writing, "once", 4, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "once", NULL);

  rocksdb_writeoptions_set_sync(writing, 1);
  rocksdb_put(db, writing, "durable", 7, "yes", 3, &error);
  CHECK_OK(error);
  rocksdb_delete(db, writing, "durable", 7, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_disable_WAL(writing, 1);
  CHECK(rocksdb_writeoptions_get_disable_WAL(writing) == 1);
  rocksdb_put(db, writing, "durable", 7, "yes", 3, &error);
  CHECK_ERROR(error, "Invalid argument: Sync writes has to enable WAL.");
  rocksdb_writeoptions_set_sync(writing, 0);
  rocksdb_writeoptions_disable_WAL(writing, 0);
  rocksdb_writeoptions_set_no_slowdown(writing, 1);
  rocksdb_put(db, writing, "quick", 5, "yes", 3, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_set_no_slowdown(writing, 0);
  CHECK_GET(db, reading, "durable", NULL);
  CHECK_GET(db, reading, "quick", "yes");

  char* long_key = calloc(1, 70000);
  rocksdb_put(db, writing, long_key, 70000, "v", 1, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  free(long_key);
  rocksdb_merge(db, writing, "k", 1, "x", 1, &error);
  CHECK_ERROR(error, "Not implemented: ");
}

static void ranges(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_column_family_handle_t* cf =
      rocksdb_get_default_column_family_handle(db);
  put(db, "r1", "1");
  put(db, "r2", "2");
  put(db, "r3", "3");
  rocksdb_delete_range_cf(db, writing, cf, "r1", 2, "r3", 2, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "r1", NULL);
  CHECK_GET(db, reading, "r2", NULL);
  CHECK_GET(db, reading, "r3", "3");
  rocksdb_delete_range_cf(db, writing, cf, "r3", 2, "r3", 2, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "r3", "3");
  rocksdb_delete_range_cf(db, writing, cf, "r4", 2, "r3", 2, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_column_family_handle_destroy(cf);
}

static void pinned(rocksdb_t* db) {
  char* error = NULL;
  size_t len = 0;
  put(db, "p", "pinned");
  rocksdb_pinnableslice_t* slice = rocksdb_get_pinned(db, reading, "p", 1, &error);
  CHECK_OK(error);
  put(db, "p", "changed");
  const char* value = rocksdb_pinnableslice_value(slice, &len);
  CHECK(len == 6 && memcmp(value, "pinned", 6) == 0);
  rocksdb_pinnableslice_destroy(slice);
  CHECK(rocksdb_get_pinned(db, reading, "absent", 6, &error) == NULL);
  CHECK_OK(error);
  CHECK(rocksdb_pinnableslice_value(NULL, &len) == NULL && len == 0);

  rocksdb_pinnable_handle_t* handle = rocksdb_get_pinned_v2(db, reading, "p", 1, &error);
  value = rocksdb_pinnable_handle_get_value(handle, &len);
  CHECK(len == 7 && memcmp(value, "changed", 7) == 0);
  rocksdb_pinnable_handle_destroy(handle);

  char buffer[8];
  unsigned char found = 9;
  CHECK(rocksdb_get_into_buffer(db, reading, "p", 1, buffer, sizeof buffer, &len, &found, &error) == 1);
  CHECK(found == 1 && len == 7 && memcmp(buffer, "changed", 7) == 0);
  CHECK(rocksdb_get_into_buffer(db, reading, "p", 1, buffer, 3, &len, &found, &error) == 0);
  CHECK(found == 1 && len == 7);
  CHECK(rocksdb_get_into_buffer(db, reading, "absent", 6, buffer, 8, &len, &found, &error) == 0);
  CHECK(found == 0 && len == 0);
  CHECK_OK(error);

  char* copy = NULL;
  CHECK(rocksdb_key_may_exist(db, reading, "p", 1, &copy, &len, NULL, 0, &found) == 1 && found == 1);
  check_value(copy, len, "changed", __FILE__, __LINE__);
  CHECK(rocksdb_key_may_exist(db, reading, "absent", 6, NULL, NULL, NULL, 0, NULL) == 0);
  CHECK(rocksdb_key_may_exist(db, reading, "p", 1, NULL, NULL, NULL, 0, &found) == 1 && found == 1);
  found = 9;
  CHECK(rocksdb_key_may_exist(db, reading, "absent", 6, &copy, &len, NULL, 0, &found) == 0 && found == 1);
  check_value(copy, len, "", __FILE__, __LINE__);
}

/* A value in a buffer of the caller is that of rocksdb_get: with room to spare, with none, and one byte too few, which
   leaves nothing in the buffer but reports the length. Nothing is written behind the value. */
static void check_into_buffer(rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, int is_there) {
  char* error = NULL;
  size_t len = 99, wanted_len = 0;
  unsigned char found = 9;
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  char* wanted = rocksdb_get(db, options, key, strlen(key), &wanted_len, &error);
  CHECK_OK(error);
  CHECK((wanted != NULL) == is_there);
  char* buffer = malloc(wanted_len + 16);
  for (size_t room = wanted_len > 0 ? wanted_len - 1 : 0; room <= wanted_len + 8; room++) {
    memset(buffer, '#', wanted_len + 16);
    int fits = rocksdb_get_into_buffer_cf(db, options, cf, key, strlen(key), buffer, room, &len, &found, &error);
    CHECK_OK(error);
    CHECK(found == is_there && len == wanted_len);
    CHECK(fits == (is_there && room >= wanted_len));
    if (fits) CHECK(memcmp(buffer, wanted, len) == 0);
    for (size_t at = room; at < wanted_len + 16; at++) CHECK(buffer[at] == '#');
  }
  /* No buffer at all has room for an empty value. */
  int fits = rocksdb_get_into_buffer_cf(db, options, cf, key, strlen(key), NULL, 0, &len, &found, &error);
  CHECK_OK(error);
  CHECK(found == is_there && len == wanted_len && fits == (is_there && wanted_len == 0));
  free(buffer);
  rocksdb_free(wanted);
  rocksdb_column_family_handle_destroy(cf);
}

static void into_buffers(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "into_buffers");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_t* db = open_new(options, path);
  char* large = malloc(1200001);
  memset(large, 'l', 1200000);
  large[1200000] = 0;
  const char two[8] = {2, 0, 0, 0, 0, 0, 0, 0};
  put(db, "short", "value");
  put(db, "none", "");
  put(db, "deleted", "value");
  rocksdb_put(db, writing, "large", 5, large, 1200000, &error);
  CHECK_OK(error);
  for (int round = 0; round < 3; round++) {
    /* In the memtable, of the memtable and a file, all in one file. */
    rocksdb_merge(db, writing, "sum", 3, two, 8, &error);
    CHECK_OK(error);
    rocksdb_merge(db, writing, "sum", 3, two, 8, &error);
    CHECK_OK(error);
    if (round == 0) rocksdb_delete(db, writing, "deleted", 7, &error);
    if (round == 2) rocksdb_compact_range(db, NULL, 0, NULL, 0);
    check_into_buffer(db, reading, "short", 1);
    check_into_buffer(db, reading, "none", 1);
    check_into_buffer(db, reading, "deleted", 0);
    check_into_buffer(db, reading, "absent", 0);
    check_into_buffer(db, reading, "sum", 1);
    check_into_buffer(db, reading, "large", 1);
    check_into_buffer(db, reading, "short", 1);
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    rocksdb_readoptions_t* old = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(old, snapshot);
    put(db, "short", round == 0 ? "longer value" : "value");
    check_into_buffer(db, old, "short", 1);
    /* The options without their snapshot are those of the present again. */
    size_t len = 0;
    unsigned char found = 0;
    char place[16];
    rocksdb_get_into_buffer(db, old, "short", 5, place, sizeof place, &len, &found, &error);
    CHECK(found == 1 && len == (round == 1 ? 12 : 5));
    rocksdb_readoptions_set_snapshot(old, NULL);
    rocksdb_get_into_buffer(db, old, "short", 5, place, sizeof place, &len, &found, &error);
    CHECK_OK(error);
    CHECK(found == 1 && len == (round == 0 ? 12 : 5));
    rocksdb_readoptions_destroy(old);
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    if (round == 0) rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flush);
  }
  free(large);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

static void several(rocksdb_t* db) {
  put(db, "m1", "one");
  put(db, "m3", "three");
  const char* keys[3] = {"m1", "m2", "m3"};
  const size_t lens[3] = {2, 2, 2};
  char* values[3];
  size_t value_lens[3];
  char* errors[3];
  rocksdb_multi_get(db, reading, 3, keys, lens, values, value_lens, errors);
  for (int i = 0; i < 3; i++) CHECK_OK(errors[i]);
  check_value(values[0], value_lens[0], "one", __FILE__, __LINE__);
  check_value(values[1], value_lens[1], NULL, __FILE__, __LINE__);
  check_value(values[2], value_lens[2], "three", __FILE__, __LINE__);

  rocksdb_column_family_handle_t* cf =
      rocksdb_get_default_column_family_handle(db);
  rocksdb_pinnableslice_t* slices[3];
  rocksdb_batched_multi_get_cf(db, reading, cf, 3, keys, lens, slices, errors, 0);
  size_t len = 0;
  for (int i = 0; i < 3; i++) CHECK_OK(errors[i]);
  CHECK(slices[1] == NULL);
  CHECK(memcmp(rocksdb_pinnableslice_value(slices[2], &len), "three", 5) == 0 && len == 5);
  rocksdb_pinnableslice_destroy(slices[0]);
  rocksdb_pinnableslice_destroy(slices[2]);
  rocksdb_slice_t wanted[2] = {{"m3", 2}, {"m2", 2}};
  rocksdb_batched_multi_get_cf_slice(db, reading, cf, 2, wanted, slices, errors, 1);
  CHECK(slices[0] != NULL && slices[1] == NULL);
  rocksdb_pinnableslice_destroy(slices[0]);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_multi_get(db, reading, 0, NULL, NULL, NULL, NULL, NULL);
}

/* Handles that are given out again have nothing of the value before; those of one multi-get are independent of each other. */
static void handles_again(rocksdb_t* db) {
  char* error = NULL;
  size_t len = 9;
  const size_t sizes[4] = {3, 0, 5000, 1024};
  const char* keys[4] = {"h0", "h1", "h2", "h3"};
  const size_t lens[4] = {2, 2, 2, 2};
  char* bytes = malloc(5000);
  for (int i = 0; i < 4; i++) {
    memset(bytes, 'a' + i, 5000);
    rocksdb_put(db, writing, keys[i], 2, bytes, sizes[i], &error);
    CHECK_OK(error);
  }
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  /* Of values that are all small, and with a large one among them: what is there stays while others go. */
  for (int count = 2; count <= 4; count += 2) {
    rocksdb_pinnableslice_t* slices[4];
    char* errors[4];
    rocksdb_batched_multi_get_cf(db, reading, cf, count, keys, lens, slices, errors, 0);
    for (int i = 0; i < count; i++) {
      CHECK_OK(errors[i]);
      memset(bytes, 'a' + i, 5000);
      const char* value = rocksdb_pinnableslice_value(slices[i], &len);
      CHECK(len == sizes[i] && memcmp(value, bytes, len) == 0);
      rocksdb_pinnableslice_destroy(slices[i]);
    }
  }
  for (int i = 3; i >= 0; i--) {
    rocksdb_pinnableslice_t* slice = rocksdb_get_pinned(db, reading, keys[i], 2, &error);
    CHECK_OK(error);
    memset(bytes, 'a' + i, 5000);
    const char* value = rocksdb_pinnableslice_value(slice, &len);
    CHECK(len == sizes[i] && memcmp(value, bytes, len) == 0);
    rocksdb_pinnableslice_destroy(slice);
  }
  rocksdb_column_family_handle_destroy(cf);
  free(bytes);
}

static void snapshots(rocksdb_t* db) {
  put(db, "s", "before");
  uint64_t seq = rocksdb_get_latest_sequence_number(db);
  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  CHECK(rocksdb_snapshot_get_sequence_number(snapshot) == seq);
  put(db, "s", "after");
  CHECK(rocksdb_get_latest_sequence_number(db) == seq + 1);
  rocksdb_readoptions_t* old = rocksdb_readoptions_create();
  rocksdb_readoptions_set_snapshot(old, snapshot);
  CHECK_GET(db, old, "s", "before");
  CHECK_GET(db, reading, "s", "after");
  const char* key = "s";
  size_t len = 1, value_len;
  char *value, *error;
  rocksdb_multi_get(db, old, 1, &key, &len, &value, &value_len, &error);
  check_value(value, value_len, "before", __FILE__, __LINE__);
  rocksdb_readoptions_set_snapshot(old, NULL);
  CHECK_GET(db, old, "s", "after");
  rocksdb_release_snapshot(db, snapshot);
  rocksdb_readoptions_destroy(old);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "data");
  rocksdb_options_t* options = rocksdb_options_create();
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  rocksdb_t* db = open_new(options, path);
  values(db);
  ranges(db);
  pinned(db);
  several(db);
  handles_again(db);
  snapshots(db);
  rocksdb_close(db);
  into_buffers(arguments[1]);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  free(path);
  return 0;
}
