/* Relative paths after chdir and fchdir, with dots and doubled slashes in them. */
#include "subject.h"

int main(int argc, char **argv) {
    OK(mkdir("d", 0755));
    OK(mkdir("d/e", 0755));
    OK(chdir("d"));
    put("in-d", "1");
    put("../above", "2");
    put(".//e/../by-dots", "3");
    int e = OK(open("e", O_RDONLY | O_DIRECTORY));
    OK(fchdir(e));
    put("in-e", "4");
    OK(rename("../in-d", "./moved"));
    char *whole = getcwd(NULL, 0), path[4096];
    snprintf(path, sizeof path, "%s/absolute", whole);
    put(path, "5");
    OK(chmod("..", 0711));
    OK(chmod(".", 0701));
    return 0;
}
