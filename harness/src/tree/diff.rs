//! What is different between two trees, for people.
/// One difference.
#[derive(Debug)]
pub struct Difference;
/// All differences.
pub fn difference(_a: &super::Tree, _b: &super::Tree) -> Vec<Difference> {
    todo!()
}
