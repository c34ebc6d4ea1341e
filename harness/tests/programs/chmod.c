/* Modes of files and folders, by path, by descriptor and through links. */
#include "subject.h"

int main(int argc, char **argv) {
    umask(027);
    put("a", "a");
    OK(mkdir("d", 0777));
    OK(chmod("a", 0600));
    OK(symlink("a", "l"));
    OK(chmod("l", 0604));
    int fd = OK(open("a", O_RDONLY)), d = OK(open("d", O_RDONLY));
    OK(fchmod(fd, 04755));
    OK(fchmod(d, 01777));
    OK(fchmodat(AT_FDCWD, "d", 0711, 0));
    int none = OK(open("none", O_WRONLY | O_CREAT, 0));
    OK(write(none, "no permissions at all", 21));
    syscall(452, AT_FDCWD, "a", 0640, 0); /* fchmodat2 */
    return 0;
}
