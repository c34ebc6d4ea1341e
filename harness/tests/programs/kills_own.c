/* Signals its own processes in every way: all of it must be as without the lab. */
#include "subject.h"
#include <sched.h>

static int child(int group) {
    int pid = OK(fork());
    if (pid == 0) {
        signal(SIGTERM, SIG_DFL);
        if (group) setpgid(0, 0);
        for (;;) pause();
    }
    if (group) OK(setpgid(pid, pid));
    return pid;
}

static void ended_by(int signal, int pid) {
    int status;
    OK(waitpid(pid, &status, 0));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal) {
        fprintf(stderr, "status %x instead of signal %d\n", status, signal);
        exit(98);
    }
}

static void *sleeper(void *unused) {
    for (;;) pause();
    return unused;
}

static volatile int handled;

static void usr1(int signal) {
    put("handled", "x");
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}

int main(int argc, char **argv) {
    siginfo_t info = {0};
    info.si_code = SI_QUEUE;
    int pid = child(0);
    OK(kill(pid, 0));
    OK(kill(pid, SIGTERM));
    ended_by(SIGTERM, pid);
    if (kill(pid, SIGTERM) != -1 || errno != ESRCH) return 2; /* nobody has this number any more */
    pid = child(0);
    OK(syscall(SYS_tkill, pid, SIGTERM));
    ended_by(SIGTERM, pid);
    pid = child(0);
    OK(syscall(SYS_rt_sigqueueinfo, pid, SIGTERM, &info));
    ended_by(SIGTERM, pid);
    pid = child(0);
    int descriptor = OK(syscall(SYS_pidfd_open, pid, 0));
    OK(syscall(SYS_pidfd_send_signal, descriptor, SIGTERM, NULL, 0));
    siginfo_t end;
    OK(waitid(P_PID, pid, &end, WEXITED | WNOWAIT));
    OK(kill(pid, SIGTERM)); /* it has ended, and was not collected yet */
    ended_by(SIGTERM, pid);
    if (syscall(SYS_pidfd_send_signal, descriptor, SIGTERM, NULL, 0) != -1 || errno != ESRCH) return 3;

    int other = child(1);
    pid = child(0);
    signal(SIGTERM, SIG_IGN);
    OK(kill(0, SIGTERM));
    ended_by(SIGTERM, pid);
    OK(kill(-other, SIGVTALRM)); /* a SIGTERM that had come before would come first */
    ended_by(SIGVTALRM, other);
    if (kill(-other, SIGTERM) != -1 || errno != ESRCH) return 4;

    pthread_t thread;
    signal(SIGUSR1, usr1);
    OK(pthread_create(&thread, NULL, sleeper, NULL));
    OK(pthread_kill(thread, SIGUSR1));
    OK(raise(SIGUSR1));
    while (handled < 2) sched_yield(); /* nobody is in the middle of a write any more */
    OK(kill(getpid(), SIGKILL));
    return 5;
}
