/* Rings are answered "not implemented", so that run times fall back to calls that can be seen. */
#include "subject.h"

int main(int argc, char **argv) {
    char parameters[120] = {0};
    if (syscall(SYS_io_uring_setup, 4, parameters) != -1 || errno != ENOSYS) return 1;
    unsigned long context = 0;
    if (syscall(SYS_io_setup, 4, &context) != -1 || errno != ENOSYS) return 2;
    put("fallen-back", "plain");
    return 0;
}
