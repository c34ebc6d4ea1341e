/* Makes the work folder its root, which the lab cannot follow. Exit code 77 where that is not allowed. */
#include "subject.h"
#include <sched.h>

int main(int argc, char **argv) {
    if (chroot(".") != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot(".") != 0)) return 77;
    put("/below", "x");
    return 0;
}
