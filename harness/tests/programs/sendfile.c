/* sendfile between files. */
#include "subject.h"

int main(int argc, char **argv) {
    put("from", "the quick brown fox jumps over the lazy dog");
    int from = OK(open("from", O_RDONLY)), to = OK(open("to", O_WRONLY | O_CREAT, 0644));
    OK(sendfile(to, from, NULL, 10));
    off_t at = 20;
    OK(sendfile(to, from, &at, 1000));
    OK(sendfile(to, from, NULL, 5));
    return 0;
}
