/* Saves a file some calls below main, in other threads, in a handler, and more. Tests look for the lines that have a word
   in capitals behind them. */
#include "subject.h"
#include <dlfcn.h>

#define ON_ITS_OWN __attribute__((noinline, noclone))
/* What comes after a call keeps it from being the last of its function, which would leave no frame. */
#define AND_ON __asm__ volatile("" ::: "memory")

#ifdef LIBRARY
void save_in_library(void) {
    OK(mkdir("by-library", 0755)); /* IN-LIBRARY */
}
#else
static int syncs = 1;

static inline __attribute__((always_inline)) void put_text(int fd) {
    OK(write(fd, "text", 4)); /* WRITES */
    AND_ON;
}

ON_ITS_OWN static void save_state(const char *name) {
    int fd = OK(open("s.tmp", O_WRONLY | O_CREAT | O_TRUNC, 0644)); /* CREATES */
    put_text(fd); /* CALLS-INLINED */
    if (syncs) OK(fsync(fd)); /* SYNCS */
    OK(close(fd));
    OK(rename("s.tmp", name)); /* RENAMES */
    AND_ON;
}

ON_ITS_OWN static void job(const char *name) {
    save_state(name); /* CALLS-SAVE */
    AND_ON;
}

ON_ITS_OWN static void in_place(const char *name) {
    int fd = OK(open(name, O_WRONLY | O_TRUNC)); /* CUTS */
    OK(write(fd, "text", 4)); /* WRITES-IN-PLACE */
    OK(close(fd));
    AND_ON;
}

static void *first(void *none) {
    OK(mkdir("first", 0755)); /* FIRST */
    return none;
}

static void *second(void *none) {
    OK(mkdir("second", 0755)); /* SECOND */
    return none;
}

static void handler(int number) {
    (void)number;
    OK(mkdir("by-handler", 0755)); /* HANDLES */
    AND_ON;
}

ON_ITS_OWN static void interrupt_itself(void) {
    signal(SIGUSR1, handler);
    OK(kill(getpid(), SIGUSR1)); /* INTERRUPTS */
    AND_ON;
}

static void last_handler(int number) {
    (void)number;
    mkdir("trapped", 0755); /* HANDLES-TRAP */
    _exit(0);
}

/* Its first instruction is the one that is interrupted. */
ON_ITS_OWN static void trap(void) {
    __builtin_trap(); /* TRAPS */
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "save";
    if (!strcmp(what, "unsynced")) {
        syncs = 0;
        what = "save";
    }
    if (!strcmp(what, "save")) {
        job("s.json"); /* CALLS-JOB */
    } else if (!strcmp(what, "in-place")) {
        in_place("s.json");
    } else if (!strcmp(what, "threads")) {
        pthread_t threads[2];
        pthread_create(&threads[0], NULL, first, NULL);
        pthread_create(&threads[1], NULL, second, NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else if (!strcmp(what, "signal")) {
        interrupt_itself();
    } else if (!strcmp(what, "trap")) {
        signal(SIGILL, last_handler);
        signal(SIGTRAP, last_handler);
        trap(); /* CALLS-TRAP */
    } else if (!strcmp(what, "exec")) {
        OK(mkdir("before", 0755)); /* BEFORE-EXEC */
        OK(execl("/proc/self/exe", argv[0], "after-exec", NULL));
    } else if (!strcmp(what, "after-exec")) {
        OK(mkdir("after", 0755)); /* AFTER-EXEC */
    } else if (!strcmp(what, "vfork")) {
        pid_t child = OK(vfork());
        if (!child) {
            mkdir("by-child", 0755); /* BY-CHILD */
            _exit(0);
        }
        OK(waitpid(child, NULL, 0));
        OK(mkdir("by-parent", 0755)); /* BY-PARENT */
    } else if (!strcmp(what, "deleted")) {
        OK(unlink("calls")); /* DELETES */
        OK(mkdir("afterwards", 0755)); /* AFTER-DELETION */
#ifndef STATIC
    } else if (!strcmp(what, "library")) {
        OK(mkdir("early", 0755)); /* EARLY */
        void *library = dlopen("./libcalls.so", RTLD_NOW);
        void (*save)(void) = library ? (void (*)(void))dlsym(library, "save_in_library") : NULL;
        if (!save) exit(98);
        save(); /* CALLS-LIBRARY */
#endif
    } else {
        exit(97);
    }
    return 0;
}
#endif
