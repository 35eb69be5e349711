/* Sees every change of files below a folder, also those that TensorFlow's C++ makes: LD_PRELOAD.

   KILL_ROOT    folder whose changes count
   KILL_STATES  folder that gets a copy of it before each change, and in the midst of each write;
                a process that is killed then leaves just that
   KILL_AT      number of the point at which the process dies instead; nothing is copied then */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define LONGEST 4096

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside; /* What is done on the way to a copy is no point itself. */
static int points;

/* Puts the path that `path` is from the folder `dir` into `full`; whether it is below the root. */
static int counts(int dir, const char *path, char *full) {
  const char *root = getenv("KILL_ROOT");
  char link[64];
  ssize_t length = 0;
  if (!root || !path || inside) return 0;
  if (path[0] != '/') {
    if (dir == AT_FDCWD) strcpy(link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    length = readlink(link, full, LONGEST - 1);
    if (length < 0) return 0;
  }
  snprintf(full + length, LONGEST - length, length && path[0] ? "/%s" : "%s", path);
  return !strncmp(full, root, strlen(root)) && full[strlen(root)] == '/';
}

static int file_counts(int file, char *full) { return counts(file, "", full); }

static void copy_state(int number, const char *operation, const char *path) {
  char target[LONGEST], line[2 * LONGEST];
  const char *states = getenv("KILL_STATES");
  snprintf(target, sizeof target, "%s/%05d", states, number);
  char *arguments[] = {"cp", "-a", getenv("KILL_ROOT"), target, NULL}, *environment[] = {NULL};
  pid_t child;
  int status = 1;
  if (posix_spawn(&child, "/bin/cp", NULL, NULL, arguments, environment) ||
      waitpid(child, &status, 0) != child || status) {
    fprintf(stderr, "stops.c: no copy %s\n", target);
    _exit(99);
  }
  snprintf(target, sizeof target, "%s/points", states);
  FILE *list = REAL(fopen)(target, "a");
  snprintf(line, sizeof line, "%05d %s %s\n", number, operation, path);
  REAL(fwrite)(line, 1, strlen(line), list);
  REAL(fclose)(list);
}

/* A point: the process may die here, or what is there is copied. */
static void point(const char *operation, const char *path) {
  const char *at = getenv("KILL_AT");
  inside = 1;
  points++;
  if (at && points == atoi(at)) _exit(137);
  if (!at) copy_state(points, operation, path);
  inside = 0;
}

/* A function whose change is one step: a point, and then the change, with no other in between. */
#define STEP(result, name, parameters, where, operation, arguments) \
  result name parameters {                                          \
    char full[LONGEST];                                             \
    if (!(where)) return REAL(name) arguments;                      \
    pthread_mutex_lock(&turn);                                      \
    point(operation, full);                                         \
    result value = REAL(name) arguments;                            \
    pthread_mutex_unlock(&turn);                                    \
    return value;                                                   \
  }

#define HERE(path) counts(AT_FDCWD, path, full)
#define EITHER(a, b) (counts(AT_FDCWD, a, full) || counts(AT_FDCWD, b, full))
STEP(int, rename, (const char *a, const char *b), EITHER(a, b), "rename", (a, b))
STEP(int, renameat, (int d, const char *a, int e, const char *b),
     counts(d, a, full) || counts(e, b, full), "rename", (d, a, e, b))
STEP(int, link, (const char *a, const char *b), EITHER(a, b), "link", (a, b))
STEP(int, linkat, (int d, const char *a, int e, const char *b, int f),
     counts(d, a, full) || counts(e, b, full), "link", (d, a, e, b, f))
STEP(int, symlink, (const char *a, const char *b), HERE(b), "symlink", (a, b))
STEP(int, unlink, (const char *a), HERE(a), "unlink", (a))
STEP(int, unlinkat, (int d, const char *a, int f), counts(d, a, full), "unlink", (d, a, f))
STEP(int, remove, (const char *a), HERE(a), "remove", (a))
STEP(int, rmdir, (const char *a), HERE(a), "rmdir", (a))
STEP(int, mkdir, (const char *a, mode_t m), HERE(a), "mkdir", (a, m))
STEP(int, mkdirat, (int d, const char *a, mode_t m), counts(d, a, full), "mkdir", (d, a, m))
STEP(int, truncate, (const char *a, off_t n), HERE(a), "truncate", (a, n))
STEP(int, ftruncate, (int file, off_t n), file_counts(file, full), "truncate", (file, n))
STEP(int, ftruncate64, (int file, off64_t n), file_counts(file, full), "truncate", (file, n))
STEP(int, fclose, (FILE *file), file_counts(fileno(file), full), "close", (file))
STEP(int, fflush, (FILE *file), file && file_counts(fileno(file), full), "flush", (file))
STEP(ssize_t, writev, (int file, const struct iovec *v, int n), file_counts(file, full), "write",
     (file, v, n))

#define MAKES(flags) ((flags) & (O_CREAT | O_TRUNC))
#define OPEN(name)                                                  \
  int name(const char *path, int flags, ...) {                      \
    char full[LONGEST];                                             \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    mode_t mode = va_arg(more, mode_t);                             \
    va_end(more);                                                   \
    if (!MAKES(flags) || !HERE(path)) return REAL(name)(path, flags, mode); \
    pthread_mutex_lock(&turn);                                      \
    point("open", full);                                            \
    int file = REAL(name)(path, flags, mode);                       \
    pthread_mutex_unlock(&turn);                                    \
    return file;                                                    \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                \
  int name(int dir, const char *path, int flags, ...) {             \
    char full[LONGEST];                                             \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    mode_t mode = va_arg(more, mode_t);                             \
    va_end(more);                                                   \
    if (!MAKES(flags) || !counts(dir, path, full)) return REAL(name)(dir, path, flags, mode); \
    pthread_mutex_lock(&turn);                                      \
    point("open", full);                                            \
    int file = REAL(name)(dir, path, flags, mode);                  \
    pthread_mutex_unlock(&turn);                                    \
    return file;                                                    \
  }
OPENAT(openat)
OPENAT(openat64)

#define CHANGES(mode) (strpbrk(mode, "wa+") != NULL)
STEP(FILE *, fopen, (const char *a, const char *m), CHANGES(m) && HERE(a), "open", (a, m))
STEP(FILE *, fopen64, (const char *a, const char *m), CHANGES(m) && HERE(a), "open", (a, m))

/* Writes have a point before them and one in their midst. */
ssize_t write(int file, const void *bytes, size_t count) {
  char full[LONGEST];
  if (!file_counts(file, full)) return REAL(write)(file, bytes, count);
  pthread_mutex_lock(&turn);
  point("write", full);
  ssize_t half = count / 2, done = half ? REAL(write)(file, bytes, half) : 0;
  if (done > 0) point("half of write", full);
  if (done == half) {
    ssize_t rest = REAL(write)(file, (const char *)bytes + done, count - done);
    done = rest < 0 ? (done ? done : rest) : done + rest;
  }
  pthread_mutex_unlock(&turn);
  return done;
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file) {
  char full[LONGEST];
  if (!file_counts(fileno(file), full)) return REAL(fwrite)(bytes, size, count, file);
  pthread_mutex_lock(&turn);
  point("write", full);
  size_t half = count / 2, done = REAL(fwrite)(bytes, size, half, file);
  if (done) {
    REAL(fflush)(file);
    point("half of write", full);
  }
  if (done == half) done += REAL(fwrite)((const char *)bytes + done * size, size, count - done, file);
  pthread_mutex_unlock(&turn);
  return done;
}
