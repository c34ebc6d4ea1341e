//! Judging, on recordings written by hand: each rule has a good and a bad example.

mod judge {
    mod build;
    mod controls;
    mod crash;
    mod images;
    mod journals;
    mod others;
    mod survivors;
    mod versions;
}
