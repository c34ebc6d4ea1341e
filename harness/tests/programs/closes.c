/* Writable descriptors that are closed one after another: only the last is an event. */
#include "subject.h"

static int mark(const char *name) {
    char path[64];
    sprintf(path, "/crashlab/mark/%s", name);
    access(path, R_OK);
    return 0;
}

int main(int argc, char **argv) {
    int fd = OK(open("a", O_WRONLY | O_CREAT, 0644));
    OK(mark("opened"));
    int reader = OK(open("a", O_RDONLY)), second = OK(open("a", O_WRONLY));
    OK(close(fd));
    OK(mark("first-closed"));
    OK(close(reader));
    pid_t child = OK(fork());
    if (child == 0) {
        while (getppid() != 1 && access("go", F_OK) != 0) {}
        _exit(0); /* closes the very last */
    }
    OK(close(second));
    OK(mark("second-closed"));
    put("go", "");
    OK(waitpid(child, NULL, 0));
    OK(mark("child-ended"));
    return 0;
}
