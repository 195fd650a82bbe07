//! Cuts an expression into tokens, one at a time, because a quote means text or transpose depending on where it stands.

use crate::error::{MathError, Result};
use crate::names::is_letter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    End,
    Newline,
    Number,
    Symbol,
    Comma,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    DoubleQuote,
    SingleQuote,
    Semicolon,
    Plus,
    Minus,
    Times,
    DotTimes,
    Slash,
    DotSlash,
    Percent,
    Caret,
    DotCaret,
    Tilde,
    Bang,
    Ampersand,
    Pipe,
    CaretPipe,
    Assign,
    Colon,
    Question,
    OptionalDot,
    Nullish,
    Equal,
    Unequal,
    Smaller,
    Larger,
    SmallerEq,
    LargerEq,
    ShiftLeft,
    ShiftRight,
    ShiftRightLogical,
    Dot,
    Mod,
    To,
    In,
    And,
    Xor,
    Or,
    Not,
}

impl Token {
    /// `mod`, `to`, … are operators where an operator fits and names where a value is expected.
    pub(crate) fn is_named(self) -> bool {
        matches!(
            self,
            Self::Mod | Self::To | Self::In | Self::And | Self::Xor | Self::Or | Self::Not
        )
    }

    pub(crate) fn is_name(self) -> bool {
        self == Self::Symbol || self.is_named()
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    pub(crate) source: &'a str,
    /// Where the next token begins to be looked for.
    pub(crate) at: usize,
    pub(crate) token: Token,
    pub(crate) token_start: usize,
    /// Inside brackets a newline is only a space.
    pub(crate) nesting: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            token: Token::End,
            token_start: 0,
            nesting: 0,
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        &self.source[self.token_start..self.at]
    }

    /// A syntax error at the current token; positions count characters from 1.
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> MathError {
        MathError::syntax(message, self.source[..self.token_start].chars().count() + 1)
    }

    fn byte(&self, offset: usize) -> u8 {
        self.source
            .as_bytes()
            .get(self.at + offset)
            .copied()
            .unwrap_or(0)
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        self.skip_blanks();
        self.token_start = self.at;
        let (token, length) = match self.byte(0) {
            0 if self.at >= self.source.len() => (Token::End, 0),
            b'\n' => (Token::Newline, 1),
            b'0'..=b'9' => return self.number(),
            b'.' if self.byte(1).is_ascii_digit() => return self.number(),
            byte => match self.delimiter(byte) {
                Some(found) => found,
                None => return self.name(),
            },
        };
        self.at += length;
        self.token = token;
        Ok(())
    }

    fn skip_blanks(&mut self) {
        loop {
            if self.byte(0) == b'#' {
                let rest = &self.source[self.at..];
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            match self.byte(0) {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' if self.nesting > 0 => self.at += 1,
                0xC2 if self.byte(1) == 0xA0 => self.at += 2,
                _ => return,
            }
        }
    }

    fn delimiter(&self, first: u8) -> Option<(Token, usize)> {
        use Token::*;
        let (second, third) = (self.byte(1), self.byte(2));
        Some(match (first, second) {
            (b'>', b'>') if third == b'>' => (ShiftRightLogical, 3),
            (b'>', b'>') => (ShiftRight, 2),
            (b'<', b'<') => (ShiftLeft, 2),
            (b'<', b'=') => (SmallerEq, 2),
            (b'>', b'=') => (LargerEq, 2),
            (b'=', b'=') => (Equal, 2),
            (b'!', b'=') => (Unequal, 2),
            (b'?', b'?') => (Nullish, 2),
            // `a ?.3 : .7` is a conditional with small numbers, not a chain.
            (b'?', b'.') if !third.is_ascii_digit() => (OptionalDot, 2),
            (b'.', b'*') => (DotTimes, 2),
            (b'.', b'/') => (DotSlash, 2),
            (b'.', b'^') => (DotCaret, 2),
            (b'^', b'|') => (CaretPipe, 2),
            (b'.', _) => (Dot, 1),
            (b',', _) => (Comma, 1),
            (b'(', _) => (OpenParen, 1),
            (b')', _) => (CloseParen, 1),
            (b'[', _) => (OpenBracket, 1),
            (b']', _) => (CloseBracket, 1),
            (b'{', _) => (OpenBrace, 1),
            (b'}', _) => (CloseBrace, 1),
            (b'"', _) => (DoubleQuote, 1),
            (b'\'', _) => (SingleQuote, 1),
            (b';', _) => (Semicolon, 1),
            (b'+', _) => (Plus, 1),
            (b'-', _) => (Minus, 1),
            (b'*', _) => (Times, 1),
            (b'/', _) => (Slash, 1),
            (b'%', _) => (Percent, 1),
            (b'^', _) => (Caret, 1),
            (b'~', _) => (Tilde, 1),
            (b'!', _) => (Bang, 1),
            (b'&', _) => (Ampersand, 1),
            (b'|', _) => (Pipe, 1),
            (b'=', _) => (Assign, 1),
            (b':', _) => (Colon, 1),
            (b'?', _) => (Question, 1),
            (b'<', _) => (Smaller, 1),
            (b'>', _) => (Larger, 1),
            _ => return None,
        })
    }

    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    /// `2.` is a number, but the dot of `2.*a`, `2./a` and `2.^a` belongs to the operator.
    fn at_decimal_mark(&self, offset: usize) -> bool {
        self.byte(offset) == b'.' && !matches!(self.byte(offset + 1), b'/' | b'*' | b'^')
    }

    fn number(&mut self) -> Result<()> {
        self.token = Token::Number;
        if self.byte(0) == b'0' && matches!(self.byte(1), b'b' | b'o' | b'x') {
            self.at += 2;
            self.letters_and_digits();
            if self.byte(0) == b'.' {
                self.at += 1;
                self.letters_and_digits();
            }
            return Ok(());
        }
        self.digits();
        if self.at_decimal_mark(0) {
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            if self.byte(1).is_ascii_digit() || matches!(self.byte(1), b'+' | b'-') {
                self.at += 1;
                if matches!(self.byte(0), b'+' | b'-') {
                    self.at += 1;
                }
                if !self.byte(0).is_ascii_digit() {
                    return Err(self.digit_expected());
                }
                self.digits();
                if self.at_decimal_mark(0) {
                    return Err(self.digit_expected());
                }
            } else if self.at_decimal_mark(1) {
                self.at += 1;
                return Err(self.digit_expected());
            }
        }
        Ok(())
    }

    fn digit_expected(&self) -> MathError {
        let found = self.source[self.at..]
            .chars()
            .next()
            .map(String::from)
            .unwrap_or_default();
        self.error(format_args!("Digit expected, got \"{found}\""))
    }

    fn letters_and_digits(&mut self) {
        while let Some(c) = self.source[self.at..].chars().next() {
            if !is_letter(c) && !c.is_ascii_digit() {
                return;
            }
            self.at += c.len_utf8();
        }
    }

    fn name(&mut self) -> Result<()> {
        self.letters_and_digits();
        if self.at == self.token_start {
            let rest = &self.source[self.at..];
            return Err(self.error(format_args!("Syntax error in part \"{rest}\"")));
        }
        self.token = match self.text() {
            "mod" => Token::Mod,
            "to" => Token::To,
            "in" => Token::In,
            "and" => Token::And,
            "xor" => Token::Xor,
            "or" => Token::Or,
            "not" => Token::Not,
            _ => Token::Symbol,
        };
        Ok(())
    }
}
