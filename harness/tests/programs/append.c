/* O_APPEND, also where another writer has made the file longer, and with pwrite, which appends too. */
#include "subject.h"

int main(int argc, char **argv) {
    int one = OK(open("log", O_WRONLY | O_CREAT | O_APPEND, 0644));
    int two = OK(open("log", O_WRONLY | O_APPEND));
    int plain = OK(open("log", O_WRONLY));
    OK(write(one, "one\n", 4));
    OK(write(two, "two\n", 4));
    OK(pwrite(one, "three\n", 6, 0));
    OK(write(plain, "ONE", 3));
    OK(lseek(two, 0, SEEK_SET));
    OK(write(two, "four\n", 5));
    OK(fcntl(plain, F_SETFL, O_APPEND));
    OK(write(plain, "five\n", 5));
    int synced = OK(open("log", O_WRONLY | O_SYNC));
    OK(write(synced, "S", 1));
    synced = OK(open("log", O_WRONLY | O_DSYNC));
    OK(write(synced, "D", 1));
    return 0;
}
