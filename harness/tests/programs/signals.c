/* Handlers, ignored signals, interrupted calls, a stop and its end. */
#include "subject.h"

static void handler(int number) {
    int fd = open("handled", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (number == SIGUSR1) OK(write(fd, "usr1\n", 5));
    close(fd);
}

int main(int argc, char **argv) {
    sigset_t mask;
    OK(sigprocmask(SIG_BLOCK, NULL, &mask));
    for (int i = 1; i < 32; i++)
        if (sigismember(&mask, i) || signal(i, SIG_DFL) == SIG_IGN) return 1; /* inherited from the lab */
    signal(SIGUSR1, handler);
    signal(SIGUSR2, SIG_IGN);
    OK(raise(SIGUSR1));
    OK(raise(SIGUSR2));
    pid_t child = OK(fork());
    if (child == 0) {
        OK(raise(SIGSTOP));
        put("after-stop", "went on");
        _exit(0);
    }
    int status;
    OK(waitpid(child, &status, WUNTRACED));
    if (!WIFSTOPPED(status)) return 2;
    put("while-stopped", "x");
    OK(kill(child, SIGCONT));
    OK(waitpid(child, &status, 0));
    struct itimerval soon = {{0, 2000}, {0, 2000}};
    signal(SIGALRM, handler);
    OK(setitimer(ITIMER_REAL, &soon, NULL));
    for (int i = 0; i < 200; i++) put("interrupted", "again and again");
    soon = (struct itimerval){0};
    OK(setitimer(ITIMER_REAL, &soon, NULL));
    raise(SIGKILL);
    return 0;
}
