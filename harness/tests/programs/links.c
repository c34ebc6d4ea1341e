/* Hard and symbolic links, also on the way to a file, absolute, dangling and in a circle. */
#include "subject.h"

int main(int argc, char **argv) {
    OK(mkdir("d", 0755));
    put("d/a", "a");
    OK(link("d/a", "hard"));
    OK(symlink("d", "way"));
    put("way/through", "through a link");
    OK(symlink("way/a", "to-a"));
    put("to-a", "written through two links");
    OK(symlink("not-yet", "dangling"));
    put("dangling", "made by following it");
    char absolute[4096];
    snprintf(absolute, sizeof absolute, "%s/d/by-absolute", getcwd(NULL, 0));
    OK(symlink(absolute, "abs"));
    put("abs", "made through an absolute link");
    OK(symlink("circle", "circle"));
    if (open("circle", O_WRONLY | O_CREAT, 0644) != -1) return 1;
    OK(linkat(AT_FDCWD, "to-a", AT_FDCWD, "link-to-link", 0));
    OK(linkat(AT_FDCWD, "to-a", AT_FDCWD, "link-to-file", AT_SYMLINK_FOLLOW));
    OK(rename("way", "moved-way"));
    OK(unlink("hard"));
    OK(unlink("to-a"));
    if (open("link-to-link", O_WRONLY | O_NOFOLLOW) != -1) return 1;
    return 0;
}
