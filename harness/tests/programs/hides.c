/* Makes itself unreadable for all but root, and writes. */
#include "subject.h"
#include <sys/prctl.h>

int main(int argc, char **argv) {
    OK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    put("hidden", "x");
    return 0;
}
