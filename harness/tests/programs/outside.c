/* Moves and links a file across the border of the folder: gaps, and nothing else from outside. */
#include "subject.h"

int main(int argc, char **argv) {
    char out[4096];
    snprintf(out, sizeof out, "%s/file", argv[1]);
    put(out, "outside");
    put("inside", "inside");
    OK(rename("inside", out));
    OK(rename(out, "back"));
    int fd = OK(open("back", O_WRONLY));
    OK(write(fd, "INSIDE", 6));
    OK(link("back", out));
    OK(unlink(out));
    return 0;
}
