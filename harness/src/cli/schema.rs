//! `crashlab schema`.

use super::{Code, Output};
use crate::scenario::schema_text;

/// Prints the JSON Schema of scenario files.
pub(super) fn schema(output: &mut Output<'_>) -> Code {
    output.print(&schema_text());
    Code::Held
}
