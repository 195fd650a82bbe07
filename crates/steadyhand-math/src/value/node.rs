//! The tree of an expression.

use std::sync::Arc;

use super::Value;

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Constant(Value),
    Symbol(Arc<str>),
    Paren(Box<Node>),
    Unary(UnaryOp, Box<Node>),
    Binary(BinaryOp, Box<(Node, Node)>),
    /// `2 a`: a multiplication nobody wrote a sign for. It prints differently and binds tighter.
    Implicit(Box<(Node, Node)>),
    /// `a + 5 %`, which takes the percentage of `a`; `a` is kept once.
    Percentage(BinaryOp, Box<(Node, Node)>),
    /// `a < b <= c`
    Relational(Box<(Vec<BinaryOp>, Vec<Node>)>),
    Conditional(Box<(Node, Node, Node)>),
    Array(Vec<Node>),
    Object(Vec<(Arc<str>, Node)>),
    Range(Box<Range>),
    Access(Box<Access>),
    Call(Box<Call>),
    Assign(Box<(Arc<str>, Node)>),
    AssignInto(Box<(Access, Node)>),
    Define(Arc<Definition>),
    Block(Vec<Statement>),
}

#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) start: Node,
    pub(crate) step: Option<Node>,
    pub(crate) end: Node,
}

#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) object: Node,
    pub(crate) index: Index,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Index {
    Property(Arc<str>),
    Subset(Vec<Node>),
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) function: Node,
    pub(crate) arguments: Vec<Node>,
    pub(crate) optional: bool,
}

/// `name(parameters) = body`
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: Arc<str>,
    pub(crate) parameters: Vec<Arc<str>>,
    pub(crate) body: Node,
}

#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) node: Node,
    /// A statement that ends with `;` runs, but is not part of the answer.
    pub(crate) visible: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Minus,
    Plus,
    BitNot,
    Not,
    Factorial,
    Transpose,
}

impl UnaryOp {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Minus => "-",
            Self::Plus => "+",
            Self::BitNot => "~",
            Self::Not => "not",
            Self::Factorial => "!",
            Self::Transpose => "'",
        }
    }

    pub(crate) fn is_postfix(self) -> bool {
        matches!(self, Self::Factorial | Self::Transpose)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Or,
    Xor,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    Unequal,
    Smaller,
    Larger,
    SmallerEq,
    LargerEq,
    ShiftLeft,
    ShiftRight,
    ShiftRightLogical,
    To,
    Add,
    Subtract,
    Multiply,
    DotMultiply,
    Divide,
    DotDivide,
    Mod,
    Pow,
    DotPow,
    Nullish,
}

impl BinaryOp {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::Xor => "xor",
            Self::And => "and",
            Self::BitOr => "|",
            Self::BitXor => "^|",
            Self::BitAnd => "&",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Smaller => "<",
            Self::Larger => ">",
            Self::SmallerEq => "<=",
            Self::LargerEq => ">=",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::ShiftRightLogical => ">>>",
            Self::To => "to",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::DotMultiply => ".*",
            Self::Divide => "/",
            Self::DotDivide => "./",
            Self::Mod => "mod",
            Self::Pow => "^",
            Self::DotPow => ".^",
            Self::Nullish => "??",
        }
    }

    /// How tightly it binds; higher is tighter. Those of one level are read from left to right.
    pub(crate) fn level(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::Xor => 2,
            Self::And => 3,
            Self::BitOr => 4,
            Self::BitXor => 5,
            Self::BitAnd => 6,
            Self::Equal
            | Self::Unequal
            | Self::Smaller
            | Self::Larger
            | Self::SmallerEq
            | Self::LargerEq => 7,
            Self::ShiftLeft | Self::ShiftRight | Self::ShiftRightLogical => 8,
            Self::To => 9,
            Self::Add | Self::Subtract => 11,
            Self::Multiply | Self::DotMultiply | Self::Divide | Self::DotDivide | Self::Mod => 12,
            Self::Pow | Self::DotPow => 15,
            Self::Nullish => 16,
        }
    }
}

impl Node {
    /// What mathjs's `typeOf` calls it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Constant(_) => "ConstantNode",
            Self::Symbol(_) => "SymbolNode",
            Self::Paren(_) => "ParenthesisNode",
            Self::Unary(..) | Self::Binary(..) | Self::Implicit(_) | Self::Percentage(..) => {
                "OperatorNode"
            }
            Self::Relational(_) => "RelationalNode",
            Self::Conditional(_) => "ConditionalNode",
            Self::Array(_) => "ArrayNode",
            Self::Object(_) => "ObjectNode",
            Self::Range(_) => "RangeNode",
            Self::Access(_) => "AccessorNode",
            Self::Call(_) => "FunctionNode",
            Self::Assign(_) | Self::AssignInto(_) => "AssignmentNode",
            Self::Define(_) => "FunctionAssignmentNode",
            Self::Block(_) => "BlockNode",
        }
    }

    /// The parts that are expressions themselves.
    pub(crate) fn children<'a>(&'a self, into: &mut Vec<&'a Self>) {
        match self {
            Self::Constant(_) | Self::Symbol(_) => {}
            Self::Paren(inner) | Self::Unary(_, inner) => into.push(inner),
            Self::Binary(_, pair) | Self::Implicit(pair) | Self::Percentage(_, pair) => {
                into.extend([&pair.0, &pair.1]);
            }
            Self::Relational(chain) => into.extend(&chain.1),
            Self::Conditional(parts) => into.extend([&parts.0, &parts.1, &parts.2]),
            Self::Array(items) => into.extend(items),
            Self::Object(entries) => into.extend(entries.iter().map(|(_, node)| node)),
            Self::Range(range) => {
                into.extend(
                    [Some(&range.start), range.step.as_ref(), Some(&range.end)]
                        .into_iter()
                        .flatten(),
                );
            }
            Self::Access(access) => access.children(into),
            Self::Call(call) => {
                into.push(&call.function);
                into.extend(&call.arguments);
            }
            Self::Assign(pair) => into.push(&pair.1),
            Self::AssignInto(pair) => {
                pair.0.children(into);
                into.push(&pair.1);
            }
            Self::Define(definition) => into.push(&definition.body),
            Self::Block(statements) => {
                into.extend(statements.iter().map(|statement| &statement.node));
            }
        }
    }

    /// Whether it is safe to walk with the stack: long chains make trees that are not.
    pub(crate) fn is_shallow(&self) -> bool {
        const LEVELS_MAX: usize = 200;
        let (mut level, mut next) = (vec![self], Vec::new());
        for _ in 0..LEVELS_MAX {
            if level.is_empty() {
                return true;
            }
            level.iter().for_each(|node| node.children(&mut next));
            level = std::mem::take(&mut next);
        }
        false
    }
}

impl Access {
    fn children<'a>(&'a self, into: &mut Vec<&'a Node>) {
        into.push(&self.object);
        if let Index::Subset(parts) = &self.index {
            into.extend(parts);
        }
    }
}

/// The level of `start:step:end`, between conversions and sums.
pub(crate) const RANGE_LEVEL: u8 = 10;
pub(crate) const RELATIONAL_LEVEL: u8 = 7;
