//! From text to tree: the words, the grammar, and the tree written out again.

pub(crate) mod lexer;
pub(crate) mod node;
mod operand;
pub(crate) mod parser;
pub(crate) mod print;
