/* splice from a pipe into files. */
#include "subject.h"

int main(int argc, char **argv) {
    int ends[2];
    OK(pipe(ends));
    OK(write(ends[1], "through a pipe and on", 21));
    int to = OK(open("to", O_WRONLY | O_CREAT, 0644));
    loff_t at = 100;
    OK(splice(ends[0], NULL, to, NULL, 7, 0));
    OK(splice(ends[0], NULL, to, &at, 5, 0));
    OK(splice(ends[0], NULL, to, NULL, 100, 0));
    return 0;
}
