/* Descriptors that are duplicated share their position. */
#include "subject.h"

int main(int argc, char **argv) {
    int fd = OK(open("a", O_WRONLY | O_CREAT, 0644));
    int second = OK(dup(fd));
    OK(write(fd, "one", 3));
    OK(write(second, "two", 3));
    OK(dup2(fd, 40));
    OK(close(fd));
    OK(write(40, "three", 5));
    int other = OK(open("b", O_WRONLY | O_CREAT, 0644));
    OK(dup3(other, second, O_CLOEXEC)); /* closes what `second` was */
    OK(write(second, "b", 1));
    OK(dup2(other, 40)); /* the last of `a` */
    access("/crashlab/mark/a-closed", R_OK);
    OK(fcntl(other, F_DUPFD_CLOEXEC, 50));
    OK(syscall(SYS_close_range, 3, 60, 0));
    access("/crashlab/mark/b-closed", R_OK);
    return 0;
}
