/* Vectors, positions and the flags of pwritev2. */
#include "subject.h"

int main(int argc, char **argv) {
    int fd = OK(open("a", O_RDWR | O_CREAT, 0644));
    struct iovec parts[3] = {{"one ", 4}, {"", 0}, {"two ", 4}};
    OK(writev(fd, parts, 3));
    OK(pwritev(fd, parts, 3, 20));
    OK(writev(fd, parts, 1));
    OK(pwritev2(fd, parts, 3, 5, 0));
    OK(pwritev2(fd, parts, 1, -1, 0));
    OK(pwritev2(fd, parts, 3, 0, RWF_APPEND));
    OK(pwritev2(fd, parts, 1, 2, RWF_SYNC));
    OK(pwritev2(fd, parts, 1, 3, RWF_DSYNC));
    return 0;
}
