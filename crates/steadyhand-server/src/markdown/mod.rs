//! What models write is Markdown: styled for a terminal as it comes, or made into words that can be spoken.

mod speech;
mod terminal;

pub use speech::spoken;
pub use terminal::Stream;
