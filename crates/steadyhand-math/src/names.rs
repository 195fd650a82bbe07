//! The letters that names of variables, functions and units are made of.

pub(crate) fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c, '_' | '$' | '\u{C0}'..='\u{2AF}' | '\u{370}'..='\u{3FF}' | '\u{2100}'..='\u{214F}')
        || ('\u{1D400}'..='\u{1D7FF}').contains(&c)
}
