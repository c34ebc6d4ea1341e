//! Judging, and what a disk can hold after a power cut, on recordings written by hand: each rule has a good and a bad
//! example.

mod judge {
    mod build;
    mod controls;
    mod crash;
    mod images;
    mod journals;
    mod others;
    mod power;
    mod power_details;
    mod survivors;
    mod versions;
}
