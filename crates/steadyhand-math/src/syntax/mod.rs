//! From text to tree: the words and the grammar.

mod lexer;
mod operand;
mod parser;
mod read;
