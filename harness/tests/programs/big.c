/* One write of 300,000 bytes, one of a vector, one copy. */
#include "subject.h"

int main(int argc, char **argv) {
    static char text[300000];
    for (int i = 0; i < (int)sizeof text; i++) text[i] = 'a' + i % 26;
    int fd = OK(open("big", O_RDWR | O_CREAT, 0644));
    OK(write(fd, text, sizeof text));
    struct iovec parts[3] = {{text, 5000}, {text, 7000}, {text, 9000}};
    OK(pwritev(fd, parts, 3, 10));
    int to = OK(open("copy", O_WRONLY | O_CREAT, 0644));
    off_t from = 0;
    OK(copy_file_range(fd, &from, to, NULL, 100000, 0));
    return 0;
}
