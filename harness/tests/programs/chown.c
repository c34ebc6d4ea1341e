/* Owners, which only root may give away; all others set what they have. */
#include "subject.h"

int main(int argc, char **argv) {
    uid_t uid = geteuid() ? geteuid() : 12;
    gid_t gid = geteuid() ? getegid() : 34;
    put("a", "a");
    OK(chmod("a", 06755));
    OK(symlink("a", "l"));
    OK(mkdir("d", 0755));
    OK(chown("a", uid, -1));
    OK(lchown("l", uid, gid));
    int fd = OK(open("a", O_RDONLY));
    OK(fchown(fd, -1, gid));
    OK(fchownat(AT_FDCWD, "d", uid, gid, 0));
    OK(fchownat(fd, "", uid, gid, AT_EMPTY_PATH));
    return 0;
}
