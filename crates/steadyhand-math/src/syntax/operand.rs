//! Reads what stands between operators: numbers, names, texts, matrices, objects, and what is attached to them.

use std::sync::Arc;

use super::lexer::Token;
use super::parser::Parser;
use crate::error::Result;
use crate::value::Value;
use crate::value::node::{Access, Call, Index, Node, UnaryOp};

impl Parser<'_> {
    #[inline(always)]
    pub(super) fn postfix(&mut self) -> Result<Node> {
        let mut node = self.operand()?;
        loop {
            let op = match self.token() {
                Token::Bang => UnaryOp::Factorial,
                Token::SingleQuote => UnaryOp::Transpose,
                _ => return Ok(node),
            };
            self.link()?;
            self.advance()?;
            node = self.accessors(Node::Unary(op, Box::new(node)))?;
        }
    }

    fn operand(&mut self) -> Result<Node> {
        let node = match self.token() {
            token if token.is_name() => self.name()?,
            Token::DoubleQuote | Token::SingleQuote => Node::Constant(Value::text(&self.string()?)),
            Token::OpenBracket => self.matrix()?,
            Token::OpenBrace => self.object()?,
            Token::Number => {
                let value =
                    (self.read_number)(self.lexer.text()).map_err(|error| self.error(error))?;
                self.advance()?;
                return Ok(Node::Constant(value));
            }
            Token::OpenParen => {
                self.open()?;
                let inner = self.assignment()?;
                self.close(Token::CloseParen, "Parenthesis ) expected")?;
                Node::Paren(Box::new(inner))
            }
            Token::End => return Err(self.error("Unexpected end of expression")),
            _ => return Err(self.error("Value expected")),
        };
        self.accessors(node)
    }

    fn open(&mut self) -> Result<()> {
        self.lexer.nesting += 1;
        self.advance()
    }

    fn close(&mut self, token: Token, message: &str) -> Result<()> {
        if self.token() != token {
            return Err(self.error(message));
        }
        self.lexer.nesting -= 1;
        self.advance()
    }

    fn name(&mut self) -> Result<Node> {
        let name = self.lexer.text();
        let node = match name {
            "true" => Node::Constant(Value::Bool(true)),
            "false" => Node::Constant(Value::Bool(false)),
            "null" => Node::Constant(Value::Null),
            "undefined" => Node::Constant(Value::Undefined),
            "NaN" => Node::Constant(Value::Num(f64::NAN)),
            "Infinity" => Node::Constant(Value::Num(f64::INFINITY)),
            _ => Node::Symbol(name.into()),
        };
        self.advance()?;
        Ok(node)
    }

    fn list(&mut self, end: Token, message: &str) -> Result<Vec<Node>> {
        self.open()?;
        let mut items = Vec::new();
        if self.token() != end {
            items.push(self.assignment()?);
            while self.token() == Token::Comma {
                self.advance()?;
                items.push(self.assignment()?);
            }
        }
        self.close(end, message)?;
        Ok(items)
    }

    fn accessors(&mut self, mut node: Node) -> Result<Node> {
        loop {
            let optional = self.token() == Token::OptionalDot;
            if optional {
                self.advance()?;
            }
            node = match self.token() {
                Token::OpenParen
                    if optional || matches!(node, Node::Symbol(_) | Node::Access(_)) =>
                {
                    let arguments = self.list(Token::CloseParen, "Parenthesis ) expected")?;
                    Node::Call(Box::new(Call {
                        function: node,
                        arguments,
                        optional,
                    }))
                }
                Token::OpenBracket => {
                    let index =
                        Index::Subset(self.list(Token::CloseBracket, "Parenthesis ] expected")?);
                    Node::Access(Box::new(Access {
                        object: node,
                        index,
                        optional,
                    }))
                }
                token if optional || token == Token::Dot => {
                    if !optional {
                        self.advance()?;
                    }
                    if !self.token().is_name() {
                        let after = if optional { "optional chain" } else { "dot" };
                        return Err(
                            self.error(format_args!("Property name expected after {after}"))
                        );
                    }
                    let index = Index::Property(self.lexer.text().into());
                    self.advance()?;
                    Node::Access(Box::new(Access {
                        object: node,
                        index,
                        optional,
                    }))
                }
                _ => return Ok(node),
            };
            self.link()?;
        }
    }

    /// The text after an opening quote; the lexer stands right behind it.
    fn string(&mut self) -> Result<String> {
        let quote = if self.token() == Token::DoubleQuote {
            '"'
        } else {
            '\''
        };
        let mut text = String::new();
        loop {
            let rest = &self.lexer.source[self.lexer.at..];
            let Some(c) = rest.chars().next() else {
                self.lexer.token_start = self.lexer.at;
                return Err(self.error(format_args!("End of string {quote} expected")));
            };
            self.lexer.at += c.len_utf8();
            match c {
                _ if c == quote => break,
                '\\' => text.push(self.escape()?),
                _ => text.push(c),
            }
        }
        self.advance()?;
        Ok(text)
    }

    fn escape(&mut self) -> Result<char> {
        let rest = &self.lexer.source[self.lexer.at..];
        let c = rest.chars().next().unwrap_or_default();
        let (meant, length) = match c {
            '"' | '\'' | '\\' | '/' => (c, 1),
            'b' => ('\u{8}', 1),
            'f' => ('\u{c}', 1),
            'n' => ('\n', 1),
            'r' => ('\r', 1),
            't' => ('\t', 1),
            'u' => {
                let code = rest
                    .get(1..5)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                let Some(code) = code else {
                    return Err(self.error("Invalid unicode character \\u"));
                };
                // Characters beyond the first plane are written as two escapes.
                let next = rest
                    .get(5..11)
                    .and_then(|next| next.strip_prefix("\\u"))
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                match (char::from_u32(code), next) {
                    (Some(c), _) => (c, 5),
                    (None, Some(low @ 0xdc00..=0xdfff)) if code < 0xdc00 => {
                        let joined = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        (char::from_u32(joined).unwrap_or_default(), 11)
                    }
                    _ => {
                        return Err(self.error(format_args!(
                            "Half of a character: \\u{code:04x} needs the other half beside it"
                        )));
                    }
                }
            }
            _ => return Err(self.error(format_args!("Bad escape character \\{c}"))),
        };
        self.lexer.at += length;
        Ok(meant)
    }

    fn matrix(&mut self) -> Result<Node> {
        self.open()?;
        if self.token() == Token::CloseBracket {
            self.close(Token::CloseBracket, "")?;
            return Ok(Node::Array(Vec::new()));
        }
        let first = self.row()?;
        if self.token() != Token::Semicolon {
            self.close(Token::CloseBracket, "End of matrix ] expected")?;
            return Ok(Node::Array(first));
        }
        let columns = first.len();
        let mut rows = vec![Node::Array(first)];
        while self.token() == Token::Semicolon {
            self.advance()?;
            if self.token() == Token::CloseBracket {
                break;
            }
            let row = self.row()?;
            if row.len() != columns {
                return Err(self.error(format_args!(
                    "Column dimensions mismatch ({} !== {columns})",
                    row.len()
                )));
            }
            rows.push(Node::Array(row));
        }
        self.close(Token::CloseBracket, "End of matrix ] expected")?;
        Ok(Node::Array(rows))
    }

    fn row(&mut self) -> Result<Vec<Node>> {
        let mut items = vec![self.assignment()?];
        while self.token() == Token::Comma {
            self.advance()?;
            if !matches!(self.token(), Token::CloseBracket | Token::Semicolon) {
                items.push(self.assignment()?);
            }
        }
        Ok(items)
    }

    fn object(&mut self) -> Result<Node> {
        self.lexer.nesting += 1;
        let mut properties: Vec<(Arc<str>, Node)> = Vec::new();
        loop {
            self.advance()?;
            if self.token() != Token::CloseBrace {
                properties.push(self.property()?);
            }
            if self.token() != Token::Comma {
                break;
            }
        }
        self.close(
            Token::CloseBrace,
            "Comma , or bracket } expected after object value",
        )?;
        Ok(Node::Object(properties))
    }

    fn property(&mut self) -> Result<(Arc<str>, Node)> {
        let key: Arc<str> = match self.token() {
            Token::DoubleQuote | Token::SingleQuote => self.string()?.into(),
            token if token.is_name() => {
                let key = self.lexer.text().into();
                self.advance()?;
                key
            }
            _ => return Err(self.error("Symbol or string expected as object key")),
        };
        if self.token() != Token::Colon {
            return Err(self.error("Colon : expected after object key"));
        }
        self.advance()?;
        Ok((key, self.assignment()?))
    }
}
