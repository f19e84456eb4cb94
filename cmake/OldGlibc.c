/* What libtegula, the command and the Python module take from newer C libraries than glibc 2.28, bound away: each of
 * these files links this one (cmake/OldGlibc.cmake), so that it runs on glibc 2.28 although it is built with a newer
 * one and with static libraries of LLVM and GCC that were. test/capi/check_linkage.py reads what is left.
 *
 * - A function that only got a new version is the old version of it: both are in every later glibc. A jump forwards
 *   its arguments, whatever they are.
 * - A function that is new is written here.
 *
 * All is hidden: nobody else's calls end here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the old versions are those of x86-64"
#endif

#define OLD(name, version)                                                                         \
  __asm__(".pushsection .text." #name ",\"ax\",@progbits\n"                                        \
          ".globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name ":\n"           \
          "jmp *old_" #name "@GOTPCREL(%rip)\n"                                                    \
          ".size " #name ", .-" #name "\n"                                                         \
          ".symver old_" #name "," #name "@GLIBC_" version ",remove\n"                             \
          ".popsection\n")

/* 2.29: no wrapper that sets errno. The results are the same. */
OLD(exp, "2.2.5");
OLD(exp2, "2.2.5");
OLD(hypot, "2.2.5"); /* 2.35 */
OLD(log, "2.2.5");
OLD(log2, "2.2.5");
OLD(pow, "2.2.5");

/* 2.32 and 2.34: libpthread and libdl became part of libc. Of an older glibc both libraries are needed
 * (cmake/OldGlibc.cmake names them). */
OLD(dladdr, "2.2.5");
OLD(dlclose, "2.2.5");
OLD(dlerror, "2.2.5");
OLD(dlopen, "2.2.5");
OLD(dlsym, "2.2.5");
OLD(pthread_attr_setstacksize, "2.2.5");
OLD(pthread_attr_getstack, "2.2.5");
OLD(pthread_create, "2.2.5");
OLD(pthread_detach, "2.2.5");
OLD(pthread_getaffinity_np, "2.3.4");
OLD(pthread_getattr_np, "2.2.5");
OLD(pthread_getspecific, "2.2.5");
OLD(pthread_join, "2.2.5");
OLD(pthread_key_create, "2.2.5");
OLD(__pthread_key_create, "2.2.5");
OLD(pthread_key_delete, "2.2.5");
OLD(pthread_kill, "2.2.5");
OLD(pthread_mutex_trylock, "2.2.5");
OLD(pthread_once, "2.2.5");
OLD(pthread_rwlock_destroy, "2.2.5");
OLD(pthread_rwlock_init, "2.2.5");
OLD(pthread_rwlock_rdlock, "2.2.5");
OLD(pthread_rwlock_unlock, "2.2.5");
OLD(pthread_rwlock_wrlock, "2.2.5");
OLD(pthread_rwlockattr_destroy, "2.2.5");
OLD(pthread_rwlockattr_init, "2.2.5");
OLD(pthread_rwlockattr_setkind_np, "2.2.5");
OLD(pthread_setaffinity_np, "2.3.4");
OLD(pthread_setname_np, "2.12");
OLD(pthread_setspecific, "2.2.5");
OLD(pthread_sigmask, "2.2.5");
OLD(sem_destroy, "2.2.5");
OLD(sem_init, "2.2.5");
OLD(sem_post, "2.2.5");
OLD(sem_wait, "2.2.5");

#define HIDDEN __attribute__((visibility("hidden")))

/* 2.32: libstdc++ counts without atomics where it is set. (libtegula has one of its own: DebianAntlr.cpp.) */
HIDDEN __attribute__((weak)) char __libc_single_threaded = 0;

/* 2.33: functions of their own instead of __xstat. On x86-64 the kernel's structure is the library's, and stat64 is
 * stat. */
#define DESCRIBE(name, structure)                                                                  \
  HIDDEN int name(const char *restrict path, struct structure *restrict result) {                  \
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, result, 0);                                \
  }                                                                                                \
  HIDDEN int l##name(const char *restrict path, struct structure *restrict result) {               \
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);              \
  }                                                                                                \
  HIDDEN int f##name(int file, struct structure *result) {                                         \
    return (int)syscall(SYS_fstat, file, result);                                                  \
  }
DESCRIBE(stat, stat)
DESCRIBE(stat64, stat64)

/* 2.30. */
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* 2.33: wider counters than those of mallinfo, which wrap at 4 GiB. */
HIDDEN struct mallinfo2 mallinfo2(void) {
  extern struct old_counts {
    int counts[10];
  } old_mallinfo(void) __asm__("mallinfo");
  struct old_counts old = old_mallinfo();
  size_t counts[10];
  struct mallinfo2 result; /* the same ten fields, wider */
  _Static_assert(sizeof result == sizeof counts, "fields of struct mallinfo2");
  for (int i = 0; i < 10; ++i)
    counts[i] = (unsigned)old.counts[i];
  memcpy(&result, counts, sizeof result);
  return result;
}

/* 2.30: waits until a time of any clock, as libstdc++ waited before: a clock of the day that is set meanwhile ends
 * the wait earlier or later, and the caller looks at its own clock then. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until) {
  struct timespec now, today;
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
    return EINVAL;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &today);
  today.tv_sec += until->tv_sec - now.tv_sec;
  today.tv_nsec += until->tv_nsec - now.tv_nsec;
  today.tv_sec += today.tv_nsec < 0 ? -1 : today.tv_nsec >= 1000000000 ? 1 : 0;
  today.tv_nsec += today.tv_nsec < 0 ? 1000000000 : today.tv_nsec >= 1000000000 ? -1000000000 : 0;
  if (today.tv_sec < 0)
    return ETIMEDOUT;
  return pthread_cond_timedwait(condition, mutex, &today);
}

/* 2.36: what std::random_device asks for. */
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != sizeof value)
    if (errno != EINTR)
      abort();
  return value;
}

/* 2.35: where the tables are by which GCC's library unwinds the object with an address. */
struct search {
  uintptr_t address;
  struct dl_find_object *result;
};

static int find_object(struct dl_phdr_info *object, size_t bytes, void *data) {
  struct search *search = data;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  const void *tables = NULL;
  int is_inside = 0;
  (void)bytes;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    uintptr_t first = object->dlpi_addr + part->p_vaddr, last = first + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME)
      tables = (const void *)first;
    if (part->p_type != PT_LOAD)
      continue;
    begin = first < begin ? first : begin;
    end = last > end ? last : end;
    is_inside |= first <= search->address && search->address < last;
  }
  if (!is_inside)
    return 0;
  search->result->dlfo_flags = 0;
  search->result->dlfo_map_start = (void *)begin;
  search->result->dlfo_map_end = (void *)end;
  search->result->dlfo_link_map = NULL; /* the unwinder does not ask */
  search->result->dlfo_eh_frame = (void *)tables;
  return tables ? 1 : -1;
}

HIDDEN int _dl_find_object(void *address, struct dl_find_object *result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(find_object, &search) == 1 ? 0 : -1;
}
