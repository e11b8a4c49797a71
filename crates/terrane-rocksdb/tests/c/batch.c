/* Write batches: their bytes, what fills them, save points, walks, and bytes that are no batch. */
#include "check.h"

static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;

static char told[256];

static void tell(const char* what, const char* a, size_t a_len, const char* b, size_t b_len) {
  size_t at = strlen(told);
  snprintf(told + at, sizeof told - at, "%s(%.*s,%.*s)", what, (int)a_len, a, (int)b_len, b);
}

static void on_put(void* state, const char* k, size_t k_len, const char* v, size_t v_len) {
  CHECK(state == told);
  tell("put", k, k_len, v, v_len);
}

static void on_delete(void* state, const char* k, size_t k_len) {
  CHECK(state == told);
  tell("delete", k, k_len, "", 0);
}

static void on_log(void* state, const char* data, size_t len) {
  CHECK(state == told);
  tell("log", data, len, "", 0);
}

static void on_put_cf(void* state, uint32_t cf, const char* k, size_t k_len, const char* v, size_t v_len) {
  CHECK(state == told && cf == 0);
  tell("put", k, k_len, v, v_len);
}

static void on_delete_cf(void* state, uint32_t cf, const char* k, size_t k_len) {
  CHECK(state == told && cf == 0);
  tell("delete", k, k_len, "", 0);
}

static void on_merge_cf(void* state, uint32_t cf, const char* k, size_t k_len, const char* v, size_t v_len) {
  CHECK(state == told && cf == 0);
  tell("merge", k, k_len, v, v_len);
}

static void bytes_of_a_batch(rocksdb_t* db) {
  char* error = NULL;
  size_t len = 0;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "k", 1, "v", 1);
  rocksdb_writebatch_delete(batch, "d", 1);
  const char expected[] = {0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 1, 'k', 1, 'v', 0, 1, 'd'};
  const char* data = rocksdb_writebatch_data(batch, &len);
  CHECK(len == sizeof expected && memcmp(data, expected, len) == 0);
  CHECK(rocksdb_writebatch_count(batch) == 2);

  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  rocksdb_write(db, writing, copy, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "v");
  rocksdb_writebatch_destroy(copy);

  /* Every beginning of it that is not the whole is refused, and changes nothing. */
  put(db, "d", "kept");
  for (size_t cut = 0; cut < len; cut++) {
    copy = rocksdb_writebatch_create_from(data, cut);
    rocksdb_writebatch_verify_checksum(copy, &error);
    CHECK_OK(error);
    if (cut > 12) {
      rocksdb_write(db, writing, copy, &error);
      CHECK_ERROR(error, "Corruption: ");
    }
    rocksdb_writebatch_destroy(copy);
  }
  CHECK_GET(db, reading, "d", "kept");
  copy = rocksdb_writebatch_create_from("01234567\1\0\0\0\x63", 13);
  rocksdb_write(db, writing, copy, &error);
  CHECK_ERROR(error, "Corruption: unknown WriteBatch tag");
  rocksdb_writebatch_destroy(copy);
  rocksdb_writebatch_clear(batch);
  CHECK(rocksdb_writebatch_count(batch) == 0);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
}

/* Puts in a row go another way than other changes, and a put by itself another one again. */
static void runs_of_puts(rocksdb_t* db, rocksdb_options_t* options) {
  char* error = NULL;
  rocksdb_column_family_handle_t* other = rocksdb_create_column_family(db, options, "other", &error);
  CHECK_OK(error);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "r1", 2, "first", 5);
  rocksdb_writebatch_put(batch, "r1", 2, "second", 6);
  rocksdb_writebatch_put_cf(batch, other, "r1", 2, "other", 5);
  rocksdb_writebatch_put_cf(batch, other, "r2", 2, "other", 5);
  rocksdb_writebatch_put_log_data(batch, "log", 3);
  rocksdb_writebatch_put(batch, "r2", 2, "gone", 4);
  rocksdb_writebatch_delete(batch, "r2", 2);
  rocksdb_writebatch_put(batch, "r3", 2, "last", 4);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "r1", "second");
  CHECK_GET(db, reading, "r2", NULL);
  CHECK_GET(db, reading, "r3", "last");
  size_t len = 0;
  char* value = rocksdb_get_cf(db, reading, other, "r1", 2, &len, &error);
  check_value(value, len, "other", __FILE__, __LINE__);
  value = rocksdb_get_cf(db, reading, other, "r2", 2, &len, &error);
  check_value(value, len, "other", __FILE__, __LINE__);

  /* By itself; longer than lengths of one byte say. */
  char* bytes = malloc(300);
  memset(bytes, 'x', 300);
  bytes[299] = 0;
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put_cf(batch, other, bytes, 200, bytes, 299);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  value = rocksdb_get_cf(db, reading, other, bytes, 200, &len, &error);
  check_value(value, len, bytes, __FILE__, __LINE__);
  free(bytes);

  /* Bytes that count one put and have two, or a part of one, change nothing. */
  const char two[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 'w', 1, '1', 1, 1, 'w', 1, '2'};
  rocksdb_writebatch_t* wrong = rocksdb_writebatch_create_from(two, sizeof two);
  rocksdb_write(db, writing, wrong, &error);
  CHECK_ERROR(error, "Corruption: WriteBatch has wrong count");
  rocksdb_writebatch_destroy(wrong);
  for (size_t cut = 13; cut < 17; cut++) {
    wrong = rocksdb_writebatch_create_from(two, cut);
    rocksdb_write(db, writing, wrong, &error);
    CHECK_ERROR(error, "Corruption: bad WriteBatch record");
    rocksdb_writebatch_destroy(wrong);
  }
  /* What is damaged behind puts: none of them is written. */
  const char behind[] = {0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 1, 'w', 1, '1', 1, 9, 'w'};
  wrong = rocksdb_writebatch_create_from(behind, sizeof behind);
  rocksdb_write(db, writing, wrong, &error);
  CHECK_ERROR(error, "Corruption: bad WriteBatch record");
  rocksdb_writebatch_destroy(wrong);
  CHECK_GET(db, reading, "w", NULL);

  /* Of a column family that is gone: refused, or left out where that is asked for. */
  rocksdb_drop_column_family(db, other, &error);
  CHECK_OK(error);
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put_cf(batch, other, "k", 1, "v", 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_ERROR(error, "Invalid argument: Invalid column family specified in write batch");
  rocksdb_writeoptions_t* skipping = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_ignore_missing_column_families(skipping, 1);
  rocksdb_write(db, skipping, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_put_cf(batch, other, "k", 1, "v", 1);
  rocksdb_writebatch_put(batch, "r4", 2, "v", 1);
  rocksdb_write(db, skipping, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "r4", "v");
  rocksdb_writeoptions_destroy(skipping);
  rocksdb_column_family_handle_destroy(other);
  rocksdb_writebatch_destroy(batch);
}

static void parts(rocksdb_t* db) {
  char* error = NULL;
  const char *keys[2] = {"ke", "y"}, *values[2] = {"val", "ue"}, *ends[2] = {"z", ""};
  const size_t key_lens[2] = {2, 1}, value_lens[2] = {3, 2}, end_lens[2] = {1, 0};
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create_with_params(100, 0, 0, 0);
  rocksdb_writebatch_putv(batch, 2, keys, key_lens, 2, values, value_lens);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "key", "value");
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_deletev(batch, 2, keys, key_lens);
  rocksdb_writebatch_put(batch, "keys", 4, "v", 1);
  rocksdb_writebatch_delete_rangev(batch, 2, keys, key_lens, ends, end_lens);
  rocksdb_writebatch_put(batch, "yes", 3, "v", 1);
  rocksdb_writebatch_singledelete(batch, "absent", 6);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "key", NULL);
  CHECK_GET(db, reading, "keys", NULL);
  CHECK_GET(db, reading, "yes", "v");
  rocksdb_writebatch_destroy(batch);

  batch = rocksdb_writebatch_create_with_params(0, 20, 0, 0);
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_put(batch, "b", 1, "too long for it", 15);
  CHECK(rocksdb_writebatch_count(batch) == 1);
  rocksdb_writebatch_destroy(batch);
}

static void save_points(void) {
  char* error = NULL;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK_ERROR(error, "NotFound: ");
  rocksdb_writebatch_pop_save_point(batch, &error);
  CHECK_ERROR(error, "NotFound: ");
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put(batch, "b", 1, "2", 1);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put(batch, "c", 1, "3", 1);
  rocksdb_writebatch_pop_save_point(batch, &error);
  CHECK_OK(error);
  CHECK(rocksdb_writebatch_count(batch) == 3);
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  CHECK(rocksdb_writebatch_count(batch) == 1);
  rocksdb_writebatch_destroy(batch);
}

static void walks(void) {
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_put_log_data(batch, "blob", 4);
  rocksdb_writebatch_merge(batch, "m", 1, "2", 1);
  rocksdb_writebatch_delete(batch, "b", 1);
  CHECK(rocksdb_writebatch_count(batch) == 3);
  rocksdb_writebatch_iterate(batch, told, on_put, on_delete);
  CHECK(strcmp(told, "put(a,1)delete(b,)") == 0);
  told[0] = 0;
  rocksdb_writebatch_iterate_ld(batch, told, on_put, on_delete, on_log);
  CHECK(strcmp(told, "put(a,1)log(blob,)delete(b,)") == 0);
  told[0] = 0;
  rocksdb_writebatch_iterate_cf(batch, told, on_put_cf, on_delete_cf, on_merge_cf);
  CHECK(strcmp(told, "put(a,1)merge(m,2)delete(b,)") == 0);
  told[0] = 0;
  rocksdb_writebatch_iterate_cf_ld(batch, told, on_put_cf, on_delete_cf, on_merge_cf, on_log);
  CHECK(strcmp(told, "put(a,1)log(blob,)merge(m,2)delete(b,)") == 0);
  told[0] = 0;
  rocksdb_writebatch_destroy(batch);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "batch");
  rocksdb_options_t* options = rocksdb_options_create();
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  rocksdb_t* db = open_new(options, path);
  bytes_of_a_batch(db);
  runs_of_puts(db, options);
  parts(db);
  save_points();
  walks();
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  free(path);
  return 0;
}
