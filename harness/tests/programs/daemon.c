/* Leaves a daemon behind (two forks, a session of its own) that would write for ever. */
#include "subject.h"

int main(int argc, char **argv) {
    int ends[2];
    OK(pipe(ends));
    if (OK(fork()) == 0) {
        OK(setsid());
        if (OK(fork()) != 0) _exit(0);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        put("heartbeat", "first");
        OK(write(ends[1], "r", 1));
        for (;;) put("heartbeat", "alive");
    }
    wait(NULL);
    char byte;
    OK(read(ends[0], &byte, 1));
    puts("left a daemon behind");
    return 0;
}
