/* Counts one further in the state, after something that a copy of it must not share with others, or must find as its own.
 * What it finds wrong it writes into the state. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <termios.h>
#include <time.h>

#include "subject.h"

static volatile int handled, begun;
static void handle(int signal) { handled = signal; }

/* A connection whose port stays in use for a while after both ends are closed. */
static int connects(void) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(7777), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listens = socket(AF_INET, SOCK_STREAM, 0), calls = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listens, (struct sockaddr *)&place, sizeof place) || listen(listens, 1)) return 0;
    if (connect(calls, (struct sockaddr *)&place, sizeof place)) return 0;
    close(accept(listens, NULL, NULL));
    return !close(calls);
}

static void *thread(void *none) { begun = 1; pause(); return none; }

int main(int argc, char **argv) {
    const char *mode = argv[1], *wrong = "";
    char number[32] = "", extra[8] = "";
    int outside = -1, *shared = NULL, pid = 0;
    struct itimerval timer = {{0, 0}, {1000, 0}};
    struct termios terminal;
    pthread_t other;
    signal(SIGUSR1, handle);
    if (!strcmp(mode, "position")) {
        outside = open(argv[2], O_RDONLY);
        if (read(outside, extra, 2) != 2) return 3;
    } else if (!strcmp(mode, "shared")) {
        shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    } else if (!strcmp(mode, "who")) {
        pid = getpid();
    } else if (!strcmp(mode, "remains")) {
        pid = getpid();
        execl("/nowhere/at/all", "all", NULL);
    } else if (!strcmp(mode, "timer")) {
        setitimer(ITIMER_REAL, &timer, NULL);
    } else if (!strcmp(mode, "thread")) {
        pthread_create(&other, NULL, thread, NULL);
        while (!begun) usleep(100);
    } else if (!strcmp(mode, "pipe")) {
        int ends[2];
        if (pipe(ends)) return 3;
        outside = ends[0];
        write(ends[1], "ab", 2);
    } else if (!strcmp(mode, "helper")) {
        outside = open("helper", O_RDONLY);
        if (outside >= 0) read(outside, extra, 7);
        if (outside >= 0) close(outside);
        outside = -1;
    }
    int state = open("s", O_RDONLY);
    if (state < 0 || read(state, number, 31) < 1) return 1;
    close(state);
    if (outside >= 0 && (read(outside, extra + 2, 2) != 2 || strcmp(extra[0] ? extra : "ab", extra[0] ? "abcd" : "ab")))
        wrong = " what others have read";
    if (shared && ++*shared != 1) wrong = " what others have written";
    if (getpgrp() != getpid() || getsid(0) != getpid()) wrong = " no session of its own";
    if (pid && (pid != getpid() || kill(pid, 0))) wrong = " another number";
    clockid_t clock;
    struct timespec used;
    if (pthread_getcpuclockid(pthread_self(), &clock) || clock_gettime(clock, &used)) wrong = " another thread's number";
    raise(SIGUSR1);
    if (handled != SIGUSR1) wrong = " a signal that went elsewhere";
    if (!strcmp(mode, "argument") && atoi(argv[2]) != getpid()) wrong = " not my number";
    if (!strcmp(mode, "timer") && (getitimer(ITIMER_REAL, &timer) || !timer.it_value.tv_sec)) wrong = " no timer";
    if (!strcmp(mode, "terminal")) {
        if (tcgetattr(1, &terminal) || terminal.c_lflag & ECHO) wrong = " a terminal that another has changed";
        terminal.c_lflag |= ECHO;
        tcsetattr(1, TCSANOW, &terminal);
    }
    if (!strcmp(mode, "flags")) {
        if (fcntl(1, F_GETFL) & O_NONBLOCK) wrong = " flags that another has changed";
        fcntl(1, F_SETFL, O_NONBLOCK | fcntl(1, F_GETFL));
    }
    if (!strcmp(mode, "child")) {
        int status, child = fork();
        if (!child) _exit(getppid() == getpid());
        if (waitpid(child, &status, 0) != child || status) wrong = " not its child";
    }
    if (!strcmp(mode, "helper")) {
        /* Not the state, and another thing in each moment. */
        char now[8] = "";
        int helper = open("helper", O_RDWR | O_CREAT, 0644);
        read(helper, now, 7);
        if (strcmp(now, extra)) wrong = " what was not there before";
        ftruncate(helper, 0);
        lseek(helper, 0, SEEK_SET);
        for (int i = 0; i < 6; i++) write(helper, "x", 1);
        close(helper);
    }
    if (!strcmp(mode, "socket") && !connects()) wrong = " a port that another has used";
    if (!strcmp(mode, "group")) kill(0, SIGUSR1);
    int next = open("t", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    char text[96];
    int length = snprintf(text, sizeof text, "%d%s\n", atoi(number) + 1, wrong);
    for (int i = 0; i < length; i++) write(next, text + i, 1);
    for (int i = 0; i < 12; i++) write(next, ".", 1);
    close(next);
    return rename("t", "s");
}
