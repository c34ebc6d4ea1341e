//! The subjects share nothing; each stands alone in `src/bin`.
