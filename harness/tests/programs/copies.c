/* Takes the bytes of the file `given` by every call that copies inside the kernel, to another file, a pipe and stdout. */
#include "subject.h"

int main(int argc, char **argv) {
    int from = OK(open("given", O_RDONLY)), to = OK(open("to", O_WRONLY | O_CREAT, 0644)), pipes[2];
    off_t at;
    OK(pipe(pipes));
    at = 0, OK(sendfile(to, from, &at, 4));
    at = 0, OK(copy_file_range(from, &at, to, NULL, 4, 0));
    at = 0, OK(splice(from, &at, pipes[1], NULL, 4, 0));
    at = 0, OK(sendfile(1, from, &at, 4));
    OK(sendfile(to, from, NULL, 4));
    OK(splice(pipes[0], NULL, to, NULL, 4, 0)); /* out of a pipe: no file is read */
    return 0;
}
