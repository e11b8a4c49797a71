/* Column families: made at open and while open, listed, dropped, written together, with handles freed in any order. */
#include "check.h"

static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;

static void put_cf(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* key, const char* value) {
  char* error = NULL;
  rocksdb_put_cf(db, writing, cf, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

static void made_and_dropped(rocksdb_options_t* options, const char* path) {
  char* error = NULL;
  rocksdb_t* db = open_new(options, path);
  rocksdb_column_family_handle_t* users = rocksdb_create_column_family(db, options, "users", &error);
  CHECK_OK(error);
  CHECK(rocksdb_create_column_family(db, options, "users", &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Column family already exists");
  CHECK(rocksdb_column_family_handle_get_id(users) > 0);
  size_t len = 0;
  char* name = rocksdb_column_family_handle_get_name(users, &len);
  check_value(name, len, "users", __FILE__, __LINE__);

  const char* names[2] = {"a", "b"};
  size_t made = 0;
  rocksdb_column_family_handle_t** handles =
      rocksdb_create_column_families(db, options, 2, names, &made, &error);
  CHECK_OK(error);
  CHECK(made == 2);
  put_cf(db, handles[0], "k", "of a");
  put_cf(db, handles[1], "k", "of b");
  put_cf(db, users, "k", "of users");
  put(db, "k", "of default");
  CHECK_GET_CF(db, reading, handles[0], "k", "of a");
  CHECK_GET_CF(db, reading, handles[1], "k", "of b");
  CHECK_GET(db, reading, "k", "of default");

  const rocksdb_column_family_handle_t* of[3] = {handles[1], users, handles[1]};
  const char* keys[3] = {"k", "k", "absent"};
  const size_t lens[3] = {1, 1, 6};
  char *values[3], *errors[3];
  size_t value_lens[3];
  rocksdb_multi_get_cf(db, reading, of, 3, keys, lens, values, value_lens, errors);
  check_value(values[0], value_lens[0], "of b", __FILE__, __LINE__);
  check_value(values[1], value_lens[1], "of users", __FILE__, __LINE__);
  check_value(values[2], value_lens[2], NULL, __FILE__, __LINE__);

  rocksdb_drop_column_family(db, handles[0], &error);
  CHECK_OK(error);
  rocksdb_drop_column_family(db, handles[0], &error);
  CHECK_ERROR(error, "Invalid argument: Column family already dropped");
  rocksdb_put_cf(db, writing, handles[0], "k", 1, "v", 1, &error);
  CHECK_ERROR(error, "Invalid argument: Invalid column family specified in write batch");
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, handles[0], "k", 1, "v", 1);
  rocksdb_writebatch_put(batch, "also", 4, "written", 7);
  rocksdb_write(db, writing, batch, &error);
  CHECK_ERROR(error, "Invalid argument: Invalid column family specified in write batch");
  rocksdb_writeoptions_set_ignore_missing_column_families(writing, 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_set_ignore_missing_column_families(writing, 0);
  CHECK_GET(db, reading, "also", "written");
  rocksdb_writebatch_destroy(batch);

  rocksdb_column_family_handle_t* standard = rocksdb_get_default_column_family_handle(db);
  CHECK(rocksdb_column_family_handle_get_id(standard) == 0);
  rocksdb_drop_column_family(db, standard, &error);
  CHECK_ERROR(error, "Invalid argument: Can't drop default column family");
  rocksdb_column_family_handle_destroy(standard);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_close(db);
  /* Handles may be freed after the database. */
  rocksdb_column_family_handle_destroy(users);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_create_column_families_destroy(handles);
}

static void opened_again(rocksdb_options_t* options, const char* path) {
  char* error = NULL;
  size_t count = 0;
  char** names = rocksdb_list_column_families(options, path, &count, &error);
  CHECK_OK(error);
  CHECK(count == 3 && strcmp(names[0], "default") == 0);
  CHECK(strcmp(names[1], "users") == 0 && strcmp(names[2], "b") == 0);
  rocksdb_list_column_families_destroy(names, count);

  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Column families not opened: ");
  const char* all[4] = {"default", "b", "users", "new"};
  const rocksdb_options_t* of[4] = {options, options, options, options};
  rocksdb_column_family_handle_t* handles[4];
  CHECK(rocksdb_open_column_families(options, path, 4, all, of, handles, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Column family not found: new");
  CHECK(rocksdb_open_column_families(options, path, 2, all + 1, of, handles, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Default column family not specified");

  rocksdb_t* reader = rocksdb_open_for_read_only_column_families(options, path, 2, all, of, handles, 0, &error);
  CHECK_OK(error);
  CHECK_GET_CF(reader, reading, handles[1], "k", "of b");
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(reader);

  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_t* db = rocksdb_open_column_families(options, path, 4, all, of, handles, &error);
  CHECK_OK(error);
  CHECK_GET_CF(db, reading, handles[0], "k", "of default");
  CHECK_GET_CF(db, reading, handles[1], "k", "of b");
  CHECK_GET_CF(db, reading, handles[2], "k", "of users");
  CHECK_GET_CF(db, reading, handles[3], "k", NULL);

  /* One batch over several. */
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, handles[3], "x", 1, "1", 1);
  rocksdb_writebatch_delete_cf(batch, handles[1], "k", 1);
  rocksdb_writebatch_put(batch, "x", 1, "2", 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
  CHECK_GET_CF(db, reading, handles[3], "x", "1");
  CHECK_GET_CF(db, reading, handles[1], "k", NULL);
  CHECK_GET(db, reading, "x", "2");
  for (int i = 0; i < 4; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);
}

static void with_time_to_live(rocksdb_options_t* options, const char* path) {
  char* error = NULL;
  rocksdb_t* db = rocksdb_open_with_ttl(options, path, 3600, &error);
  CHECK_OK(error);
  put(db, "k", "v");
  CHECK_GET(db, reading, "k", "v");
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family_with_ttl(db, options, "short", 1800, &error);
  CHECK_OK(error);
  put_cf(db, cf, "k", "v");
  CHECK_GET_CF(db, reading, cf, "k", "v");
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "families");
  char* other = path_in(arguments[1], "ttl");
  rocksdb_options_t* options = rocksdb_options_create();
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  made_and_dropped(options, path);
  opened_again(options, path);
  with_time_to_live(options, other);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  free(path);
  free(other);
  return 0;
}
