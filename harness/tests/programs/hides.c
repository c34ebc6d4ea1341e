/* Makes itself unreadable for all but root, writes, and signals its parent by a descriptor that nobody may look at. */
#include "subject.h"
#include <sys/prctl.h>

int main(int argc, char **argv) {
    OK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    put("hidden", "x");
    int parent = OK(syscall(SYS_pidfd_open, getppid(), 0));
    return syscall(SYS_pidfd_send_signal, parent, SIGWINCH, NULL, 0) != -1 || errno != EPERM;
}
