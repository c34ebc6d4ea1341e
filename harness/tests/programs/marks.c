/* Announces marks by all forms of access; looks for other files too. */
#include "subject.h"

int main(int argc, char **argv) {
    access("/crashlab/mark/one", R_OK);
    access("/etc/passwd", R_OK);
    syscall(SYS_faccessat, AT_FDCWD, "/crashlab/mark/two", R_OK);
    put("between", "x");
    syscall(SYS_faccessat2, AT_FDCWD, "/crashlab/mark/three", R_OK, AT_EACCESS);
    access("crashlab/mark/relative", R_OK);
    return 0;
}
