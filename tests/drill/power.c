/* Preloaded into a process (LD_PRELOAD), this records in order what the process does to the files of one folder.

   POWER_FOLDER is the folder, as an absolute path; POWER_RECORD the file that the record is appended to. A lock is held
   from before each call until it is recorded, so that the order of the record is the order of the calls. The index of
   a WAL (-shm) is left out: it is shared memory, and SQLite makes it again. What cannot be recorded is noted as 'x'. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 65536
#define NEXT(name) ((__typeof__(&name))next(#name))
#define LOCKED pthread_mutex_lock(&lock)
#define DONE do { int was = errno; pthread_mutex_unlock(&lock); errno = was; } while (0)

struct head {
    uint32_t op;     /* o open, w write, t length, s flush, u unlink, r rename, d mkdir, x not recorded */
    uint32_t flags;  /* of o: 1 made by this call, 2 a folder */
    uint64_t file;   /* which opened file */
    uint64_t offset; /* of w; the length of t */
    uint64_t length; /* of the data that follow: bytes written, a name, or two names */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t tracked[MOST], opened;
static int record = -1;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

static void note(int op, int flags, uint64_t file, uint64_t offset, const void *data, uint64_t length) {
    int was = errno;
    struct head head = {op, flags, file, offset, length};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, length}};
    if (record < 0) {
        const char *path = getenv("POWER_RECORD");
        record = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    }
    if (record < 0 || syscall(SYS_writev, record, parts, 2) != (ssize_t)(sizeof head + length)) abort();
    errno = was;
}

/* The name within the folder, "" for the folder itself, or NULL for anything else. */
static const char *within(const char *path) {
    static const char *folder;
    size_t size, length;
    if (!folder && !(folder = getenv("POWER_FOLDER"))) return NULL;
    size = strlen(folder);
    if (!path || strncmp(path, folder, size) || (path[size] && path[size] != '/')) return NULL;
    path += size + (path[size] == '/');
    length = strlen(path);
    return length >= 4 && !strcmp(path + length - 4, "-shm") ? NULL : path;
}

static uint64_t known(int fd) { return fd >= 0 && fd < MOST ? tracked[fd] : 0; }

static int opening(int (*call)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    const char *name = within(path);
    struct stat seen;
    int made, fd;
    if (!name) return call(path, flags, mode);
    LOCKED;
    made = (flags & O_CREAT) && stat(path, &seen) && errno == ENOENT;
    fd = call(path, flags, mode);
    if (fd >= MOST) abort();
    if (fd >= 0) {
        int folder = !fstat(fd, &seen) && S_ISDIR(seen.st_mode);
        tracked[fd] = ((uint64_t)getpid() << 32) | ++opened;
        note('o', made | 2 * folder, tracked[fd], 0, name, strlen(name));
        if (flags & O_TRUNC) note('t', 0, tracked[fd], 0, NULL, 0);
    }
    DONE;
    return fd;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE(flags) return opening(NEXT(open), path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opening(NEXT(open64), path, flags, mode); }

int close(int fd) {
    int result;
    LOCKED;
    if (known(fd)) tracked[fd] = 0;
    result = NEXT(close)(fd);
    DONE;
    return result;
}

ssize_t write(int fd, const void *data, size_t length) {
    ssize_t result;
    if (!known(fd)) return NEXT(write)(fd, data, length);
    LOCKED;
    result = NEXT(write)(fd, data, length);
    if (result > 0) note('w', 0, known(fd), lseek(fd, 0, SEEK_CUR) - result, data, result);
    DONE;
    return result;
}

#define PWRITE(name, off) \
    ssize_t name(int fd, const void *data, size_t length, off offset) { \
        ssize_t result; \
        if (!known(fd)) return NEXT(name)(fd, data, length, offset); \
        LOCKED; \
        result = NEXT(name)(fd, data, length, offset); \
        if (result > 0) note('w', 0, known(fd), offset, data, result); \
        DONE; \
        return result; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define ONE(name, arguments, call, op, offset) \
    int name arguments { \
        int result; \
        if (!known(fd)) return NEXT(name) call; \
        LOCKED; \
        result = NEXT(name) call; \
        if (!result) note(op, 0, known(fd), offset, NULL, 0); \
        DONE; \
        return result; \
    }
ONE(ftruncate, (int fd, off_t length), (fd, length), 't', length)
ONE(ftruncate64, (int fd, off64_t length), (fd, length), 't', length)
ONE(fsync, (int fd), (fd), 's', 0)
ONE(fdatasync, (int fd), (fd), 's', 0)

#define NAMED(name, arguments, call, op) \
    int name arguments { \
        const char *inside = within(path); \
        int result; \
        if (!inside) return NEXT(name) call; \
        LOCKED; \
        result = NEXT(name) call; \
        if (!result) note(op, 0, 0, 0, inside, strlen(inside)); \
        DONE; \
        return result; \
    }
NAMED(unlink, (const char *path), (path), 'u')
NAMED(mkdir, (const char *path, mode_t mode), (path, mode), 'd')
NAMED(truncate, (const char *path, off_t length), (path, length), 'x')

int rename(const char *from, const char *to) {
    const char *old = within(from), *new = within(to);
    char both[8192];
    int result, length;
    if (!old && !new) return NEXT(rename)(from, to);
    LOCKED;
    result = NEXT(rename)(from, to);
    length = snprintf(both, sizeof both, "%s%c%s", old ? old : "?", 0, new ? new : "?");
    if (!result) note(old && new ? 'r' : 'x', 0, 0, 0, both, length);
    DONE;
    return result;
}

/* Ways to write that are not recorded: SQLite does not use them, and the drill refuses a record that has one. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (known(fd)) note('x', 0, known(fd), 0, "writev", 6);
    return NEXT(writev)(fd, parts, count);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    if (known(fd)) note('x', 0, known(fd), 0, "fallocate", 9);
    return NEXT(fallocate64)(fd, mode, offset, length);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    if (known(fd)) note('x', 0, known(fd), 0, "posix_fallocate", 15);
    return NEXT(posix_fallocate64)(fd, offset, length);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset) {
    if (known(fd) && (protection & PROT_WRITE) && (flags & MAP_SHARED)) note('x', 0, known(fd), 0, "mmap", 4);
    return NEXT(mmap64)(at, length, protection, flags, fd, offset);
}
