//! Judging, on recordings written by hand: each rule has a good and a bad example.

mod judge {
    mod build;
    mod crash;
    mod others;
    mod versions;
}
