/* Writes 1,000 bytes at a time to the file `log` without end, by the call that argv[1] names, or passes marks; or writes
   once, offering more than there is (`huge`). */
#include "subject.h"

int main(int argc, char **argv) {
    static char line[1000]; /* on the stack it can be so near to the end of all addresses that no length fits */
    memset(line, 'x', sizeof line);
    int fd = OK(open("log", O_RDWR | O_CREAT | O_APPEND, 0644));
    struct iovec pieces[2] = {{line, 400}, {line, 600}};
    if (!strcmp(argv[1], "huge")) {
        volatile size_t huge = SIZE_MAX / 2, most = 0x7ffff000;
        if (write(fd, line, huge) != -1 || errno != EFAULT) return 1;
        pieces[1].iov_len = huge / 2;
        if (writev(fd, pieces, 2) != -1 || errno != EFAULT) return 2;
        return write(fd, line, most) < 1000; /* takes what is mapped */
    }
    for (;;) {
        if (!strcmp(argv[1], "write")) OK(write(fd, line, sizeof line));
        if (!strcmp(argv[1], "writev")) OK(writev(fd, pieces, 2));
        if (!strcmp(argv[1], "marks")) access("/crashlab/mark/again", F_OK);
        if (!strcmp(argv[1], "copy")) {
            off_t at = 0;
            int copy = OK(open("copy", O_WRONLY | O_CREAT, 0644));
            if (lseek(fd, 0, SEEK_END) == 0) OK(write(fd, line, sizeof line));
            OK(sendfile(copy, fd, &at, 1000));
            OK(close(copy));
        }
    }
}
