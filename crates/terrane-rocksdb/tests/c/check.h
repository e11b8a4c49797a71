/* What every test begins with: checks that end the program with the place, and a directory of its own. */
#ifndef TERRANE_ROCKSDB_TESTS_CHECK_H
#define TERRANE_ROCKSDB_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

/* No error was reported. */
#define CHECK_OK(error)                                                      \
  do {                                                                       \
    if ((error) != NULL) {                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (error));           \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

/* An error was reported that begins so; it is freed. */
#define CHECK_ERROR(error, beginning)                                        \
  do {                                                                       \
    if ((error) == NULL ||                                                   \
        strncmp((error), (beginning), strlen(beginning)) != 0) {             \
      fprintf(stderr, "%s:%d: expected %s, got %s\n", __FILE__, __LINE__,    \
              (beginning), (error) == NULL ? "no error" : (error));          \
      exit(1);                                                               \
    }                                                                        \
    rocksdb_free(error);                                                     \
    (error) = NULL;                                                          \
  } while (0)

/* A malloc'd value is as expected, or absent; it is freed. */
static inline void check_value(char* value, size_t len, const char* expected,
                               const char* file, int line) {
  int same = expected == NULL
                 ? value == NULL
                 : value != NULL && len == strlen(expected) &&
                       memcmp(value, expected, len) == 0;
  if (!same) {
    fprintf(stderr, "%s:%d: expected %s, got %.*s\n", file, line,
            expected == NULL ? "nothing" : expected,
            value == NULL ? 7 : (int)len, value == NULL ? "nothing" : value);
    exit(1);
  }
  rocksdb_free(value);
}

#define CHECK_GET(db, options, key, expected)                                \
  do {                                                                       \
    char* error_ = NULL;                                                     \
    size_t len_ = 0;                                                         \
    char* value_ =                                                           \
        rocksdb_get((db), (options), (key), strlen(key), &len_, &error_);    \
    CHECK_OK(error_);                                                        \
    check_value(value_, len_, (expected), __FILE__, __LINE__);               \
  } while (0)

#define CHECK_GET_CF(db, options, cf, key, expected)                         \
  do {                                                                       \
    char* error_ = NULL;                                                     \
    size_t len_ = 0;                                                         \
    char* value_ = rocksdb_get_cf((db), (options), (cf), (key),              \
                                  strlen(key), &len_, &error_);              \
    CHECK_OK(error_);                                                        \
    check_value(value_, len_, (expected), __FILE__, __LINE__);               \
  } while (0)

/* The iterator is at this key, with this value. */
#define CHECK_ROW(iter, expected_key, expected_value)                        \
  do {                                                                       \
    size_t len_ = 0;                                                         \
    CHECK(rocksdb_iter_valid(iter));                                         \
    const char* at_ = rocksdb_iter_key((iter), &len_);                       \
    CHECK(len_ == strlen(expected_key) &&                                    \
          memcmp(at_, (expected_key), len_) == 0);                           \
    at_ = rocksdb_iter_value((iter), &len_);                                 \
    CHECK(len_ == strlen(expected_value) &&                                  \
          memcmp(at_, (expected_value), len_) == 0);                         \
  } while (0)

/* A path in the directory that the test was started with. */
static inline char* path_in(const char* directory, const char* name) {
  size_t size = strlen(directory) + strlen(name) + 2;
  char* path = malloc(size);
  CHECK(path != NULL);
  snprintf(path, size, "%s/%s", directory, name);
  return path;
}

static inline void put(rocksdb_t* db, const char* key, const char* value) {
  char* error = NULL;
  rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
  rocksdb_put(db, options, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
  rocksdb_writeoptions_destroy(options);
}

/* Nothing runs any more, and what ran is counted. */
static inline void wait_for_compactions(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_wait_for_compact_options_t* waiting =
      rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact(db, waiting, &error);
  CHECK_OK(error);
  rocksdb_wait_for_compact_options_destroy(waiting);
}

static inline rocksdb_t* open_new(rocksdb_options_t* options,
                                  const char* path) {
  char* error = NULL;
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  CHECK(db != NULL);
  return db;
}

#endif
