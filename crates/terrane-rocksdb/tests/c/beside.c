/* Readers of a database that another process has open for writing: it writes, flushes and compacts all the time until this
 * program has ended. Every batch of it writes all rows of two column families, with the batch's number, and either puts or
 * deletes one more row. So a reader that sees two numbers at once, or that row at the wrong number, sees half a batch.
 * A read of what the writer has merged away since may be refused, in these words, and is never wrong. */
#include "check.h"

#include <sched.h>

enum { ROWS = 32, REPEATS = 20, VIEWS = 20 };
/* Attempts that end the test by name if the writer writes nothing more, or every read is refused. */
enum { ATTEMPTS_MAX = 1000000 };
#define REFUSED "Operation failed. Try again."

static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;
static rocksdb_options_t* options;
static const char* const names[2] = {"default", "other"};

/* The number in a value, which is that number again and again. */
static long number_in(const char* value, size_t len) {
  CHECK(value != NULL && len == 10 * REPEATS);
  for (int at = 1; at < REPEATS; at++) CHECK(memcmp(value, value + 10 * (size_t)at, 10) == 0);
  char text[11] = {0};
  memcpy(text, value, 10);
  return strtol(text, NULL, 10);
}

/* Whether a read was refused; it did not fail otherwise. */
static int is_refused(char** error) {
  if (*error == NULL || strncmp(*error, REFUSED, strlen(REFUSED)) != 0) {
    CHECK_OK(*error);
    return 0;
  }
  rocksdb_free(*error);
  *error = NULL;
  return 1;
}

/* The number that an iterator shows in all rows of a family; -1 if it was refused. */
static long number_of_rows(rocksdb_iterator_t* iter) {
  char* error = NULL;
  long number = -1;
  int rows = 0, is_odd = 0;
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    size_t len = 0;
    const char* key = rocksdb_iter_key(iter, &len);
    if (len == 3 && memcmp(key, "odd", 3) == 0) {
      is_odd = 1;
      continue;
    }
    char expected[16];
    snprintf(expected, sizeof expected, "row%04d", rows);
    CHECK(len == strlen(expected) && memcmp(key, expected, len) == 0);
    const char* value = rocksdb_iter_value(iter, &len);
    const long seen = number_in(value, len);
    CHECK(rows == 0 || seen == number);
    number = seen;
    rows++;
  }
  rocksdb_iter_get_error(iter, &error);
  if (is_refused(&error)) return -1;
  CHECK(rows == ROWS && is_odd == (number % 2 == 1));
  return number;
}

/* The number that a family shows by gets; -1 if one was refused. */
static long number_of_gets(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
  char *error = NULL, key[16];
  long number = -1;
  for (int row = 0; row < ROWS; row++) {
    snprintf(key, sizeof key, "row%04d", row);
    size_t len = 0;
    char* value = rocksdb_get_cf(db, reading, family, key, strlen(key), &len, &error);
    if (is_refused(&error)) return -1;
    const long seen = number_in(value, len);
    rocksdb_free(value);
    CHECK(row == 0 || seen == number);
    number = seen;
  }
  return number;
}

/* The number that a handle shows, by iterators and by gets; -1 if a read was refused. */
static long number_of(rocksdb_t* db, rocksdb_column_family_handle_t** families) {
  char* error = NULL;
  rocksdb_iterator_t* iters[2];
  rocksdb_create_iterators(db, reading, families, iters, 2, &error);
  if (is_refused(&error)) return -1;
  long seen[4];
  for (int at = 0; at < 2; at++) {
    seen[at] = number_of_rows(iters[at]);
    rocksdb_iter_destroy(iters[at]);
    seen[at + 2] = number_of_gets(db, families[at]);
  }
  long number = seen[0];
  for (int at = 1; at < 4; at++) {
    CHECK(seen[at] < 0 || number < 0 || seen[at] == number);
    if (number < 0) number = seen[at];
  }
  for (int at = 0; at < 4; at++) {
    if (seen[at] < 0) return -1;
  }
  return number;
}

static void refuses_writes(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_put(db, writing, "odd", 3, "x", 1, &error);
  CHECK_ERROR(error, "Not implemented: ");
}

/* Catches up until the handle shows more than `number`. */
static long later_than(long number, rocksdb_t* secondary, rocksdb_column_family_handle_t** families) {
  long last = -1;
  for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    char* error = NULL;
    rocksdb_try_catch_up_with_primary(secondary, &error);
    if (!is_refused(&error)) {
      const long now = number_of(secondary, families);
      CHECK(now < 0 || now >= last);
      if (now > number) return now;
      if (now >= 0) last = now;
    }
    sched_yield();
  }
  fprintf(stderr, "beside: the secondary shows nothing behind number %ld\n", number);
  exit(1);
}

/* A view of the present state, which can be read: its number is put into `seen`. */
static rocksdb_t* open_view(const char* path, rocksdb_column_family_handle_t** families, long* seen) {
  const rocksdb_options_t* all[2] = {options, options};
  for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    char* error = NULL;
    rocksdb_t* view = rocksdb_open_for_read_only_column_families(options, path, 2, names, all, families, 0, &error);
    if (is_refused(&error)) continue;
    *seen = number_of(view, families);
    if (*seen >= 0) return view;
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_close(view);
  }
  fprintf(stderr, "beside: every view was refused\n");
  exit(1);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  const char* path = arguments[1];
  char* second_path = path_in(path, "../second");
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  options = rocksdb_options_create();
  const rocksdb_options_t* all[2] = {options, options};

  /* The other process is there: it has the lock. */
  rocksdb_column_family_handle_t *of_secondary[2], *of_view[2];
  CHECK(rocksdb_open_column_families(options, path, 2, names, all, of_view, &error) == NULL);
  CHECK(error != NULL && strstr(error, "/LOCK:") != NULL);
  CHECK_ERROR(error, "IO error: ");

  rocksdb_t* secondary =
      rocksdb_open_as_secondary_column_families(options, path, second_path, 2, names, all, of_secondary, &error);
  CHECK_OK(error);
  refuses_writes(secondary);
  long last = later_than(0, secondary, of_secondary);
  for (int round = 0; round < VIEWS; round++) {
    long seen;
    rocksdb_t* view = open_view(path, of_view, &seen);
    refuses_writes(view);
    CHECK(seen >= last);
    rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(secondary, reading, of_secondary[1]);
    const long before = last;
    last = later_than(seen, secondary, of_secondary);
    /* What was opened before shows what there was, or nothing. */
    long now = number_of_rows(iter);
    CHECK(now == before || now == -1);
    rocksdb_iter_destroy(iter);
    now = number_of(view, of_view);
    CHECK(now == seen || now == -1);
    rocksdb_column_family_handle_destroy(of_view[0]);
    rocksdb_column_family_handle_destroy(of_view[1]);
    rocksdb_close(view);
  }
  rocksdb_column_family_handle_destroy(of_secondary[0]);
  rocksdb_column_family_handle_destroy(of_secondary[1]);
  rocksdb_close(secondary);
  rocksdb_options_destroy(options);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_readoptions_destroy(reading);
  free(second_path);
  return 0;
}
