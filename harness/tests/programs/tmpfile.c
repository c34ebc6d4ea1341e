/* Files without a name; one of them gets one, by way of /proc, another stays nameless. */
#include "subject.h"

int main(int argc, char **argv) {
    OK(mkdir("d", 0755));
    int fd = OK(open("d", O_TMPFILE | O_RDWR, 0640));
    OK(write(fd, "without a name", 14));
    char path[64];
    sprintf(path, "/proc/self/fd/%d", fd);
    OK(linkat(AT_FDCWD, path, AT_FDCWD, "d/named", AT_SYMLINK_FOLLOW));
    OK(write(fd, ", then with", 11));
    OK(linkat(AT_FDCWD, "d/named", AT_FDCWD, "again", 0));
    int never = OK(open(".", O_TMPFILE | O_WRONLY, 0600));
    OK(write(never, "never named", 11));
    OK(close(never));
    put("next", "may get the same inode number");
    return 0;
}
