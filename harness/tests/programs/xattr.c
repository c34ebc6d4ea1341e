/* Extended attributes, set, changed and removed, by path and by descriptor. */
#include "subject.h"

int main(int argc, char **argv) {
    put("a", "a");
    if (setxattr("a", "user.one", "1", 1, 0) != 0) return errno == EOPNOTSUPP ? 0 : 1;
    int fd = OK(open("a", O_RDONLY));
    OK(fsetxattr(fd, "user.two", "second", 6, XATTR_CREATE));
    OK(lsetxattr("a", "user.two", "changed", 7, XATTR_REPLACE));
    OK(setxattr("a", "user.empty", "", 0, 0));
    OK(mkdir("d", 0755));
    OK(setxattr("d", "user.of-a-folder", "f", 1, 0));
    OK(removexattr("a", "user.one"));
    if (removexattr("a", "user.one") != -1) return 1;
    return 0;
}
