/* A vforked child executes this program again; meanwhile the parent is suspended. */
#include "subject.h"

int main(int argc, char **argv) {
    if (argc > 1) {
        put("child", argv[1]);
        return 0;
    }
    put("before", "x");
    pid_t child = OK(vfork());
    if (child == 0) {
        execl("/proc/self/exe", "vfork", "by the child", NULL);
        _exit(1);
    }
    put("after", "y");
    int status;
    OK(waitpid(child, &status, 0));
    return status;
}
