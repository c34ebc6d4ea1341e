/* A parent and two children write one after another, then at the same time, on descriptors that they share. */
#include "subject.h"

int main(int argc, char **argv) {
    int fd = OK(open("shared", O_WRONLY | O_CREAT | O_APPEND, 0644));
    for (int child = 0; child < 2; child++) {
        if (OK(fork()) == 0) {
            char name[16];
            sprintf(name, "own%d", child);
            for (int turn = 0; turn < 20; turn++) {
                put(name, "child");
                OK(write(fd, "a line of a child\n", 18));
            }
            _exit(0);
        }
    }
    for (int turn = 0; turn < 20; turn++) OK(write(fd, "parent\n", 7));
    while (wait(NULL) > 0) {}
    return 0;
}
