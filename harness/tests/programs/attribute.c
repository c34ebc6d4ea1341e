/* A tool for the tests: sets or removes an extended attribute, or prints all of a file, links not followed. */
#include "subject.h"

int main(int argc, char **argv) {
    if (argc == 4) return lsetxattr(argv[1], argv[2], argv[3], strlen(argv[3]), 0) != 0;
    if (argc == 3) return lremovexattr(argv[1], argv[2]) != 0;
    char names[4096], value[4096];
    ssize_t len = llistxattr(argv[1], names, sizeof names);
    for (char *name = names; name < names + len; name += strlen(name) + 1) {
        if (strncmp(name, "user.", 5)) continue;
        ssize_t size = OK(lgetxattr(argv[1], name, value, sizeof value));
        printf("%s=%.*s\n", name, (int)size, value);
    }
    return 0;
}
