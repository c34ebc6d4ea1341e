/* Copies inside the kernel, with and without positions of their own. */
#include "subject.h"

int main(int argc, char **argv) {
    char text[10000];
    for (int i = 0; i < (int)sizeof text; i++) text[i] = 'a' + i % 26;
    int from = OK(open("from", O_RDWR | O_CREAT, 0644)), to = OK(open("to", O_RDWR | O_CREAT, 0644));
    OK(write(from, text, sizeof text));
    OK(lseek(from, 100, SEEK_SET));
    OK(copy_file_range(from, NULL, to, NULL, 5000, 0));
    off_t in = 3, out = 7000;
    OK(copy_file_range(from, &in, to, &out, 20000, 0)); /* more than there is */
    OK(copy_file_range(from, NULL, to, NULL, 10, 0));
    if (ioctl(OK(open("clone", O_WRONLY | O_CREAT, 0644)), 0x40049409, from) != 0) put("no-clone", "");
    return 0;
}
