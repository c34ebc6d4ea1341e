/* Prints argv[1] bytes, or forks without end, or sleeps, stops, vforks or writes for ever. */
#include "subject.h"

int main(int argc, char **argv) {
    if (!strcmp(argv[1], "forks")) {
        for (;;) fork();
    }
    if (!strcmp(argv[1], "sleep")) {
        put("before", "x");
        for (;;) pause();
    }
    if (!strcmp(argv[1], "stopped")) {
        put("before", "x");
        for (;;) raise(SIGSTOP);
    }
    if (!strcmp(argv[1], "vfork")) {
        put("before", "x");
        if (vfork() == 0) for (;;) pause();
    }
    if (!strcmp(argv[1], "writes")) {
        for (;;) put("without-end", "x");
    }
    for (long left = atol(argv[1]); left > 0; left -= 1000) {
        char line[1000];
        memset(line, 'o', sizeof line);
        OK(write(1, line, sizeof line));
    }
    return 0;
}
