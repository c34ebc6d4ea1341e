/* Tries to signal its parent, its parent's group and everybody in every way; every call must be refused.
   The signal is one that does nothing by itself, so that a lab that lets it through harms nobody. */
#include "subject.h"
#include <sys/ptrace.h>

#define REFUSED(call)                                                                             \
    if ((call) != -1 || errno != EPERM) {                                                         \
        fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, strerror(errno));                   \
        failed = 1;                                                                               \
    }

int main(int argc, char **argv) {
    int failed = 0, parent = getppid(), signal = SIGWINCH;
    siginfo_t info = {0};
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    OK(kill(parent, 0));
    OK(kill(-1, 0));
    REFUSED(kill(parent, signal));
    REFUSED(kill(-getpgid(parent), signal));
    REFUSED(kill(-1, signal));
    REFUSED(syscall(SYS_tkill, parent, signal));
    REFUSED(syscall(SYS_tgkill, parent, parent, signal));
    REFUSED(syscall(SYS_rt_sigqueueinfo, parent, signal, &info));
    REFUSED(syscall(SYS_rt_tgsigqueueinfo, parent, parent, signal, &info));
    char path[40];
    snprintf(path, sizeof path, "/proc/%d", parent);
    int descriptors[] = {OK(syscall(SYS_pidfd_open, parent, 0)), OK(open(path, O_RDONLY | O_DIRECTORY))};
    for (int i = 0; i < 2; i++) REFUSED(syscall(SYS_pidfd_send_signal, descriptors[i], signal, NULL, 0));
    struct iovec piece = {&failed, sizeof failed};
    REFUSED(syscall(SYS_process_vm_writev, parent, &piece, 1, &piece, 1, 0));
    REFUSED(ptrace(PTRACE_SEIZE, parent, 0, 0));
    put("done", "");
    return failed;
}
