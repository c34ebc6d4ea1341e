/* Writes argv[1] MiB over the first MiB of the file `s`, one after another. */
#include "subject.h"

int main(int argc, char **argv) {
    static char bytes[1 << 20];
    int fd = OK(open("s", O_RDWR | O_CREAT, 0644));
    for (int left = atoi(argv[1]); left > 0; left--) {
        memset(bytes, 'a' + left % 26, sizeof bytes);
        if (pwrite(fd, bytes, sizeof bytes, 0) != sizeof bytes) return 1;
    }
    return 0;
}
