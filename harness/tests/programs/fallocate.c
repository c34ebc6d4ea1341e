/* The modes of fallocate that this file system has. */
#include "subject.h"

int main(int argc, char **argv) {
    char text[32768];
    memset(text, 'x', sizeof text);
    int fd = OK(open("a", O_RDWR | O_CREAT, 0644));
    OK(write(fd, text, sizeof text));
    int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
                   FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE};
    for (int i = 0; i < 6; i++)
        if (fallocate(fd, modes[i], 4096 * (i + 1), 4096) != 0 && errno != EOPNOTSUPP) return 1;
    OK(fallocate(fd, 0, 65536, 10));
    OK(pwrite(fd, "end", 3, 65540));
    return 0;
}
