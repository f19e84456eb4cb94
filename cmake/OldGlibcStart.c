/* The start of a program on glibc 2.28: `main` and constructors. From 2.34 on __libc_start_main calls the constructors
 * itself where it is given no function that does, and the start-up code of such a glibc gives it none. */
typedef void start_function(int, char **, char **);
typedef int main_function(int, char **, char **);

extern start_function *__init_array_start[] __attribute__((visibility("hidden")));
extern start_function *__init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);

extern int old_start(main_function *, int, char **, start_function *, void (*)(void), void (*)(void), void *);
__asm__(".symver old_start,__libc_start_main@GLIBC_2.2.5,remove");

static void call_constructors(int argc, char **argv, char **environment) {
  _init();
  for (start_function **function = __init_array_start; function != __init_array_end; ++function)
    (*function)(argc, argv, environment);
}

__attribute__((visibility("hidden"))) int __libc_start_main(main_function *main, int argc, char **argv,
                                                            start_function *init, void (*fini)(void),
                                                            void (*loader_fini)(void), void *stack_end) {
  return old_start(main, argc, argv, init ? init : call_constructors, fini, loader_fini, stack_end);
}
