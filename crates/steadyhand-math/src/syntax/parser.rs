//! Reads an expression into a tree: mathjs's grammar, by precedence climbing so that nesting costs few stack frames.

use std::sync::Arc;

use super::lexer::{Lexer, Token};
use crate::error::{MathError, Result};
use crate::limits::Limits;
use crate::value::Value;
use crate::value::node::{
    BinaryOp, Definition, Node, RANGE_LEVEL, RELATIONAL_LEVEL, Range, Statement, UnaryOp,
};

/// How literals become values: `config({number: "Fraction"})` changes it.
pub(crate) type ReadNumber<'a> = &'a dyn Fn(&str) -> Result<Value>;

/// All operators that stand in a row, together. It bounds the height of the tree beyond its nesting.
const LINKS_MAX: usize = 2000;

pub(crate) fn parse(source: &str, limits: &Limits, read_number: ReadNumber<'_>) -> Result<Node> {
    if source.len() > limits.input_bytes {
        return Err(MathError::limit(format!(
            "Expression too long: {} bytes, at most {} are allowed",
            source.len(),
            limits.input_bytes
        )));
    }
    let mut parser = Parser {
        lexer: Lexer::new(source),
        conditional: None,
        depth: 0,
        depth_max: limits.depth,
        links: 0,
        read_number,
    };
    parser.advance()?;
    let node = parser.block()?;
    match parser.lexer.token {
        Token::End => Ok(node),
        Token::Number | Token::Symbol => {
            Err(parser.error(format_args!("Unexpected part \"{}\"", parser.lexer.text())))
        }
        _ => Err(parser.error(format_args!("Unexpected operator {}", parser.lexer.text()))),
    }
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    /// The nesting of the conditional being read: on that level a colon ends its first branch and makes no range.
    conditional: Option<usize>,
    depth: usize,
    depth_max: usize,
    links: usize,
    pub(super) read_number: ReadNumber<'a>,
}

impl Parser<'_> {
    #[inline(always)]
    pub(super) fn token(&self) -> Token {
        self.lexer.token
    }

    pub(super) fn error(&self, message: impl std::fmt::Display) -> MathError {
        self.lexer.error(message)
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        self.lexer.advance()
    }

    /// After an operator the expression may go on in the next line.
    pub(super) fn advance_over_newlines(&mut self) -> Result<()> {
        self.advance()?;
        while self.token() == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > self.depth_max {
            return Err(MathError::limit(format!(
                "Expression nested too deeply: at most {} levels are allowed",
                self.depth_max
            )));
        }
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    #[inline(always)]
    pub(super) fn link(&mut self) -> Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(MathError::limit(format!(
                "Expression too long: at most {LINKS_MAX} operators are allowed"
            )));
        }
        Ok(())
    }

    fn block(&mut self) -> Result<Node> {
        let mut statements = Vec::new();
        let (mut separated, mut is_list) = (false, false);
        if !matches!(self.token(), Token::Newline | Token::Semicolon | Token::End) {
            // Nearly always there is one statement, and it needs no list.
            let node = self.assignment()?;
            if self.token() == Token::End {
                return Ok(node);
            }
            let visible = self.token() != Token::Semicolon;
            statements.push(Statement { node, visible });
        }
        loop {
            match self.token() {
                Token::Newline | Token::Semicolon => {
                    separated |= !statements.is_empty();
                    is_list = true;
                    self.advance()?;
                }
                Token::End => break,
                _ if statements.is_empty() || separated => {
                    let node = self.assignment()?;
                    let visible = self.token() != Token::Semicolon;
                    statements.push(Statement { node, visible });
                    separated = false;
                    if !matches!(self.token(), Token::Newline | Token::Semicolon | Token::End) {
                        break;
                    }
                }
                _ => break,
            }
        }
        Ok(match statements.len() {
            0 => Node::Constant(Value::Undefined),
            1 if !is_list => statements.remove(0).node,
            _ => Node::Block(statements),
        })
    }

    pub(super) fn assignment(&mut self) -> Result<Node> {
        self.deeper(|parser| {
            let left = parser.conditional()?;
            if parser.token() == Token::Assign {
                parser.assign_to(left)
            } else {
                Ok(left)
            }
        })
    }

    fn assign_to(&mut self, left: Node) -> Result<Node> {
        match left {
            Node::Symbol(name) => {
                self.advance_over_newlines()?;
                Ok(Node::Assign(Box::new((name, self.assignment()?))))
            }
            Node::Access(access) if access.optional => {
                Err(self.error("Cannot assign to optional chain"))
            }
            Node::Access(access) => {
                self.advance_over_newlines()?;
                Ok(Node::AssignInto(Box::new((*access, self.assignment()?))))
            }
            Node::Call(call) => {
                let Node::Symbol(name) = call.function else {
                    return Err(self.invalid_left_side());
                };
                let parameters = call.arguments.into_iter().map(|argument| match argument {
                    Node::Symbol(name) => Some(name),
                    _ => None,
                });
                let Some(parameters) = parameters.collect() else {
                    return Err(self.invalid_left_side());
                };
                self.advance_over_newlines()?;
                let body = self.assignment()?;
                Ok(Node::Define(Arc::new(Definition {
                    name,
                    parameters,
                    body,
                })))
            }
            _ => Err(self.invalid_left_side()),
        }
    }

    fn invalid_left_side(&self) -> MathError {
        self.error("Invalid left hand side of assignment operator =")
    }

    fn conditional(&mut self) -> Result<Node> {
        let mut node = self.binary(1)?;
        while self.token() == Token::Question {
            self.link()?;
            let outer = self.conditional.replace(self.lexer.nesting);
            self.advance_over_newlines()?;
            let yes = self.assignment()?;
            if self.token() != Token::Colon {
                return Err(self.error("False part of conditional expression expected"));
            }
            self.conditional = None;
            self.advance_over_newlines()?;
            let no = self.assignment()?;
            node = Node::Conditional(Box::new((node, yes, no)));
            self.conditional = outer;
        }
        Ok(node)
    }

    #[inline(always)]
    fn binary_operator(&self) -> Option<BinaryOp> {
        Some(match self.token() {
            Token::Or => BinaryOp::Or,
            Token::Xor => BinaryOp::Xor,
            Token::And => BinaryOp::And,
            Token::Pipe => BinaryOp::BitOr,
            Token::CaretPipe => BinaryOp::BitXor,
            Token::Ampersand => BinaryOp::BitAnd,
            Token::Equal => BinaryOp::Equal,
            Token::Unequal => BinaryOp::Unequal,
            Token::Smaller => BinaryOp::Smaller,
            Token::Larger => BinaryOp::Larger,
            Token::SmallerEq => BinaryOp::SmallerEq,
            Token::LargerEq => BinaryOp::LargerEq,
            Token::ShiftLeft => BinaryOp::ShiftLeft,
            Token::ShiftRight => BinaryOp::ShiftRight,
            Token::ShiftRightLogical => BinaryOp::ShiftRightLogical,
            Token::To | Token::In => BinaryOp::To,
            Token::Plus => BinaryOp::Add,
            Token::Minus => BinaryOp::Subtract,
            Token::Times => BinaryOp::Multiply,
            Token::DotTimes => BinaryOp::DotMultiply,
            Token::Slash => BinaryOp::Divide,
            Token::DotSlash => BinaryOp::DotDivide,
            Token::Percent | Token::Mod => BinaryOp::Mod,
            _ => return None,
        })
    }

    /// Everything from `or` down to products that binds at least as tightly as `level`.
    fn binary(&mut self, level: u8) -> Result<Node> {
        let mut left = if self.token() == Token::Colon && level <= RANGE_LEVEL {
            if self.conditional == Some(self.lexer.nesting) {
                return Err(
                    self.error("The true-expression of a conditional operator may not be empty")
                );
            }
            Node::Constant(Value::Num(1.0))
        } else {
            self.factor()?.0
        };
        // A level that was left cannot be entered again: `a:b + c` is `a:(b + c)`, never `(a:b) + c`.
        let mut ceiling = u8::MAX;
        loop {
            if self.token() == Token::Colon {
                let in_conditional = self.conditional == Some(self.lexer.nesting);
                if level > RANGE_LEVEL || ceiling <= RANGE_LEVEL || in_conditional {
                    return Ok(left);
                }
                left = self.range(left)?;
                ceiling = RANGE_LEVEL;
                continue;
            }
            let Some(op) = self.binary_operator() else {
                return Ok(left);
            };
            if op.level() < level || op.level() > ceiling {
                return Ok(left);
            }
            self.link()?;
            ceiling = op.level();
            left = self.continue_binary(left, op)?;
        }
    }

    fn continue_binary(&mut self, left: Node, op: BinaryOp) -> Result<Node> {
        let is_in = self.token() == Token::In;
        if op.level() == RELATIONAL_LEVEL {
            return self.relational(left);
        }
        self.advance_over_newlines()?;
        if is_in && self.ends_operand() {
            // `5 in` at the end of an operand: the unit inch.
            return Ok(Node::Implicit(Box::new((left, Node::Symbol("in".into())))));
        }
        if op.level() == BinaryOp::Add.level() {
            let (right, is_percentage) = self.product()?;
            if is_percentage {
                return Ok(Node::Percentage(op, Box::new((left, right))));
            }
            return Ok(Node::Binary(op, Box::new((left, right))));
        }
        let right = self.binary(op.level() + 1)?;
        Ok(Node::Binary(op, Box::new((left, right))))
    }

    fn ends_operand(&self) -> bool {
        matches!(
            self.token(),
            Token::End
                | Token::CloseParen
                | Token::CloseBracket
                | Token::CloseBrace
                | Token::Comma
                | Token::Semicolon
        )
    }

    fn relational(&mut self, first: Node) -> Result<Node> {
        let (mut operators, mut operands) = (Vec::new(), vec![first]);
        while let Some(op) = self
            .binary_operator()
            .filter(|op| op.level() == RELATIONAL_LEVEL)
        {
            self.advance_over_newlines()?;
            operators.push(op);
            operands.push(self.binary(RELATIONAL_LEVEL + 1)?);
        }
        if operators.len() > 1 {
            return Ok(Node::Relational(Box::new((operators, operands))));
        }
        let (right, left) = (operands.pop(), operands.pop());
        match (left, right) {
            (Some(left), Some(right)) => Ok(Node::Binary(operators[0], Box::new((left, right)))),
            _ => Err(self.error("Value expected")),
        }
    }

    fn range(&mut self, start: Node) -> Result<Node> {
        let mut parts = Vec::with_capacity(2);
        while self.token() == Token::Colon && parts.len() < 2 {
            self.advance_over_newlines()?;
            let implicit_end = matches!(
                self.token(),
                Token::CloseParen | Token::CloseBracket | Token::Comma | Token::End
            );
            parts.push(if implicit_end {
                Node::Symbol("end".into())
            } else {
                self.binary(RANGE_LEVEL + 1)?
            });
        }
        let end = parts.pop().ok_or_else(|| self.error("Value expected"))?;
        Ok(Node::Range(Box::new(Range {
            start,
            step: parts.pop(),
            end,
        })))
    }

    /// One operand of a sum, and whether it is a bare percentage.
    fn product(&mut self) -> Result<(Node, bool)> {
        let (first, is_percentage) = self.factor()?;
        let mut left = first;
        let mut alone = true;
        while let Some(op) = self
            .binary_operator()
            .filter(|op| op.level() == BinaryOp::Multiply.level())
        {
            self.link()?;
            self.advance_over_newlines()?;
            let right = self.factor()?.0;
            left = Node::Binary(op, Box::new((left, right)));
            alone = false;
        }
        Ok((left, is_percentage && alone))
    }

    /// Implicit multiplication: `2 a`, `3(4 + 1)`, `(1 + 2)(3 + 4)`.
    fn factor(&mut self) -> Result<(Node, bool)> {
        let (mut node, is_percentage) = self.number_over_number()?;
        let mut after_constant = matches!(node, Node::Constant(_));
        let mut after_operator = is_operator(&node);
        let mut alone = true;
        loop {
            let goes_on = match self.token() {
                Token::Symbol | Token::OpenParen => true,
                Token::In => is_plain_number(&node),
                Token::Number => !after_constant && !after_operator,
                _ => false,
            };
            if !goes_on {
                return Ok((node, is_percentage && alone));
            }
            self.link()?;
            let (right, _) = self.number_over_number()?;
            after_constant = matches!(right, Node::Constant(_));
            after_operator = is_operator(&right);
            node = Node::Implicit(Box::new((node, right)));
            alone = false;
        }
    }

    /// `1/2 a` is `(1/2) a`: a fraction of two numbers in front of a name stays together.
    #[inline(always)]
    fn number_over_number(&mut self) -> Result<(Node, bool)> {
        let (mut node, is_percentage) = self.percentage()?;
        let mut over_number = is_plain_number(&node);
        while self.token() == Token::Slash && over_number {
            let before = self.lexer;
            self.advance_over_newlines()?;
            if self.token() != Token::Number {
                self.lexer = before;
                break;
            }
            let at_number = self.lexer;
            self.advance_over_newlines()?;
            if !matches!(self.token(), Token::Symbol | Token::OpenParen | Token::In) {
                self.lexer = before;
                break;
            }
            self.lexer = at_number;
            self.link()?;
            let (right, _) = self.percentage()?;
            over_number = is_plain_number(&right);
            node = Node::Binary(BinaryOp::Divide, Box::new((node, right)));
        }
        Ok((node, is_percentage))
    }

    #[inline(always)]
    fn percentage(&mut self) -> Result<(Node, bool)> {
        let node = self.unary()?;
        if self.token() != Token::Percent {
            return Ok((node, false));
        }
        let before = self.lexer;
        self.advance_over_newlines()?;
        if self.starts_operand() {
            self.lexer = before;
            return Ok((node, false));
        }
        let hundred = Node::Constant(Value::Num(100.0));
        Ok((
            Node::Binary(BinaryOp::Divide, Box::new((node, hundred))),
            true,
        ))
    }

    fn starts_operand(&self) -> bool {
        self.token().is_name()
            || matches!(
                self.token(),
                Token::Number
                    | Token::OpenParen
                    | Token::OpenBracket
                    | Token::OpenBrace
                    | Token::DoubleQuote
                    | Token::SingleQuote
                    | Token::Plus
                    | Token::Minus
                    | Token::Tilde
            )
    }

    fn unary(&mut self) -> Result<Node> {
        let op = match self.token() {
            Token::Minus => UnaryOp::Minus,
            Token::Plus => UnaryOp::Plus,
            Token::Tilde => UnaryOp::BitNot,
            Token::Not => UnaryOp::Not,
            _ => return self.power(),
        };
        self.deeper(|parser| {
            parser.advance_over_newlines()?;
            Ok(Node::Unary(op, Box::new(parser.unary()?)))
        })
    }

    #[inline(always)]
    fn power(&mut self) -> Result<Node> {
        let base = self.nullish()?;
        let op = match self.token() {
            Token::Caret => BinaryOp::Pow,
            Token::DotCaret => BinaryOp::DotPow,
            _ => return Ok(base),
        };
        self.deeper(|parser| {
            parser.advance_over_newlines()?;
            Ok(Node::Binary(op, Box::new((base, parser.unary()?))))
        })
    }

    #[inline(always)]
    fn nullish(&mut self) -> Result<Node> {
        let mut node = self.postfix()?;
        while self.token() == Token::Nullish {
            self.link()?;
            self.advance_over_newlines()?;
            node = Node::Binary(BinaryOp::Nullish, Box::new((node, self.postfix()?)));
        }
        Ok(node)
    }
}

fn is_operator(node: &Node) -> bool {
    match node {
        Node::Unary(op, _) => *op != UnaryOp::Factorial,
        Node::Binary(..) | Node::Implicit(_) | Node::Percentage(..) => true,
        _ => false,
    }
}

/// A number, or one with a sign before it.
fn is_plain_number(node: &Node) -> bool {
    match node {
        Node::Constant(_) => true,
        Node::Unary(UnaryOp::Minus | UnaryOp::Plus, inner) => matches!(**inner, Node::Constant(_)),
        _ => false,
    }
}
