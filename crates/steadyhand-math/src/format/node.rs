//! A tree written out as an expression again.

use std::fmt::{self, Display, Formatter, Write as _};

use super::{push_quoted, write_complex};
use crate::convert::to_f64;
use crate::number::digits::{Style, write_javascript, write_number};
use crate::value::Value;
use crate::value::node::{Index, Node};

impl Node {
    /// How tightly its own operator binds; names and calls bind tightest.
    fn level(&self) -> u8 {
        match self {
            Self::Assign(_) | Self::AssignInto(_) | Self::Define(_) | Self::Block(_) => 0,
            Self::Conditional(_) => 0,
            Self::Relational(_) => 7,
            Self::Range(_) => 10,
            Self::Binary(op, _) | Self::Percentage(op, _) => op.level(),
            Self::Implicit(_) => 13,
            Self::Unary(op, _) => {
                if op.is_postfix() {
                    17
                } else {
                    14
                }
            }
            _ => 20,
        }
    }
}

fn grouped(f: &mut Formatter<'_>, node: &Node, needs: bool) -> fmt::Result {
    if needs {
        write!(f, "({node})")
    } else {
        write!(f, "{node}")
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

fn same_operator(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Binary(a, _), Node::Binary(b, _)) => a == b,
        (Node::Implicit(_), Node::Implicit(_)) => true,
        _ => false,
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => constant(f, value),
            Self::Symbol(name) => f.write_str(name),
            Self::Paren(inner) => write!(f, "({inner})"),
            Self::Unary(op, inner) if op.is_postfix() => {
                grouped(f, inner, inner.level() < 17)?;
                f.write_str(op.symbol())
            }
            Self::Unary(op, inner) => {
                f.write_str(op.symbol())?;
                if op.symbol() == "not" {
                    f.write_char(' ')?;
                }
                grouped(f, inner, inner.level() < 14)
            }
            Self::Binary(op, pair) => {
                let symbol = format!(" {} ", op.symbol());
                spaced(f, self, &symbol, op.symbol(), pair)
            }
            Self::Percentage(op, pair) => {
                write!(f, "{} {} {} * {}", pair.0, op.symbol(), pair.0, pair.1)
            }
            Self::Implicit(pair) => spaced(f, self, " ", " ", pair),
            Self::Relational(chain) => {
                write!(f, "{}", chain.1[0])?;
                for (op, operand) in chain.0.iter().zip(&chain.1[1..]) {
                    write!(f, " {} {operand}", op.symbol())?;
                }
                Ok(())
            }
            Self::Conditional(parts) => {
                grouped(f, &parts.0, parts.0.level() == 0)?;
                write!(f, " ? {} : {}", parts.1, parts.2)
            }
            Self::Array(items) => {
                f.write_char('[')?;
                list(f, items)?;
                f.write_char(']')
            }
            Self::Object(entries) => {
                f.write_char('{')?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    let gap = if at > 0 { ", " } else { "" };
                    write!(f, "{gap}\"{key}\": {value}")?;
                }
                f.write_char('}')
            }
            Self::Range(range) => {
                grouped(f, &range.start, range.start.level() <= 10)?;
                if let Some(step) = &range.step {
                    f.write_char(':')?;
                    grouped(f, step, step.level() <= 10)?;
                }
                f.write_char(':')?;
                grouped(f, &range.end, range.end.level() <= 10)
            }
            Self::Access(access) => {
                write!(f, "{}", access.object)?;
                index(f, &access.index, access.optional)
            }
            Self::Call(call) => {
                write!(f, "{}(", call.function)?;
                list(f, &call.arguments)?;
                f.write_char(')')
            }
            Self::Assign(pair) => write!(f, "{} = {}", pair.0, pair.1),
            Self::AssignInto(pair) => {
                write!(f, "{}", pair.0.object)?;
                index(f, &pair.0.index, false)?;
                write!(f, " = {}", pair.1)
            }
            Self::Define(definition) => {
                write!(f, "{}(", definition.name)?;
                list(f, &definition.parameters)?;
                write!(f, ") = {}", definition.body)
            }
            Self::Block(statements) => {
                for (at, statement) in statements.iter().enumerate() {
                    let gap = if at > 0 { "\n" } else { "" };
                    let end = if statement.visible { "" } else { ";" };
                    write!(f, "{gap}{}{end}", statement.node)?;
                }
                Ok(())
            }
        }
    }
}

/// Two operands, with parentheses where the tree differs from how the text would be read.
fn spaced(
    f: &mut Formatter<'_>,
    node: &Node,
    between: &str,
    symbol: &str,
    pair: &(Node, Node),
) -> fmt::Result {
    let level = node.level();
    let is_power = level == 15;
    let associative = matches!(symbol, "+" | "*" | " ");
    let left_needs = if is_power {
        pair.0.level() <= level
    } else {
        pair.0.level() < level
    };
    let right_needs = if is_power {
        pair.1.level() < 14
    } else if associative {
        pair.1.level() < level || (pair.1.level() == level && !same_operator(node, &pair.1))
    } else {
        pair.1.level() <= level
    };
    grouped(f, &pair.0, left_needs)?;
    f.write_str(between)?;
    grouped(f, &pair.1, right_needs)
}

fn index(f: &mut Formatter<'_>, index: &Index, optional: bool) -> fmt::Result {
    if optional {
        f.write_str("?.")?;
    }
    match index {
        Index::Property(name) if optional => f.write_str(name),
        Index::Property(name) => write!(f, ".{name}"),
        Index::Subset(parts) => {
            f.write_char('[')?;
            list(f, parts)?;
            f.write_char(']')
        }
    }
}

fn constant(f: &mut Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Num(x) => f.write_str(&write_number(*x, &Style::EXACT)),
        Value::Text(text) => {
            let mut quoted = String::new();
            push_quoted(&mut quoted, text);
            f.write_str(&quoted)
        }
        Value::Bool(value) => write!(f, "{value}"),
        Value::Null => f.write_str("null"),
        Value::Complex(z) => f.write_str(&write_complex(*z, &Style::EXACT)),
        Value::Int(n) => write!(f, "{n}"),
        Value::Big(n) => f.write_str(&n.write(&Style::EXACT)),
        Value::Frac(n) => write!(f, "{}/{}", n.numerator, n.denominator),
        Value::Undefined => f.write_str("undefined"),
        other => f.write_str(&write_javascript(to_f64(other))),
    }
}
