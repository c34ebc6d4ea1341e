/* Takes a lock of the kind argv[1] by a blocking call, between two marks, and appends to a file under it. */
#include "subject.h"

static int mark(const char *name) {
    char path[64];
    sprintf(path, "/crashlab/mark/%s", name);
    access(path, R_OK);
    return 0;
}

int main(int argc, char **argv) {
    int fd = OK(open("lock", O_RDWR | O_CREAT, 0644));
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    OK(mark("before"));
    if (!strcmp(argv[1], "flock")) OK(flock(fd, LOCK_EX));
    if (!strcmp(argv[1], "posix")) OK(fcntl(fd, F_SETLKW, &whole));
    if (!strcmp(argv[1], "open")) OK(fcntl(fd, F_OFD_SETLKW, &whole));
    OK(mark("locked"));
    int log = OK(open("log", O_WRONLY | O_CREAT | O_APPEND, 0644));
    OK(write(log, argv[2], strlen(argv[2])));
    OK(close(fd));
    OK(mark("after"));
    return 0;
}
