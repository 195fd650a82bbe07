//! Runs the tree of an expression.

use std::sync::Arc;

use crate::access;
use crate::convert::truthy;
use crate::error::{ErrorKind, MathError, Result};
use crate::functions::{self, Callable};
use crate::nesting;
use crate::ops::{arithmetic, bits, compare, logic, power};
use crate::refusals;
use crate::signatures;
use crate::value::env::Env;
use crate::value::function::{Builtin, Frame, Function, UserFunction};
use crate::value::matrix::{Matrix, MatrixKind};
use crate::value::node::{Access, BinaryOp, Call, Index, Node, Range, Statement, UnaryOp};
use crate::value::unit::Unit;
use crate::value::{Object, Value};

/// Variables one session may hold.
const VARIABLES_MAX: usize = 10_000;

impl Env {
    /// Reads and runs one text with a full purse.
    pub(crate) fn run(&mut self, expression: &str) -> Result<Value> {
        self.restart();
        let node = self.parse(expression)?;
        self.eval(&node)
    }

    pub(crate) fn eval(&mut self, node: &Node) -> Result<Value> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Symbol(name) => self.symbol(name),
            _ => {
                self.descend()?;
                let value = self.eval_compound(node)?;
                self.ascend();
                self.check_shape(&value)?;
                Ok(value)
            }
        }
    }

    /// A matrix without cells costs nothing to hold, but whoever writes it or takes it apart makes its empty rows: they
    /// are bounded like cells.
    fn check_shape(&self, value: &Value) -> Result<()> {
        match value {
            Value::Matrix(matrix) if matrix.cells.is_empty() => {
                let lengths = matrix.size.iter().map(|length| (*length).max(1));
                self.purse
                    .check_cells(lengths.fold(1, usize::saturating_mul))
            }
            _ => Ok(()),
        }
    }

    fn eval_compound(&mut self, node: &Node) -> Result<Value> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Symbol(name) => self.symbol(name),
            Node::Paren(inner) => self.eval(inner),
            Node::Unary(op, inner) => {
                let value = self.eval(inner)?;
                self.unary(*op, &value)
            }
            Node::Binary(..) | Node::Implicit(_) | Node::Percentage(..) => self.chain(node),
            Node::Relational(chain) => self.relational(&chain.0, &chain.1),
            Node::Conditional(parts) => {
                let condition = self.eval(&parts.0)?;
                let chosen = if self.condition(&condition)? {
                    &parts.1
                } else {
                    &parts.2
                };
                self.eval(chosen)
            }
            Node::Array(items) => self.array(items),
            Node::Object(entries) => self.object(entries),
            Node::Range(range) => self.range(range),
            Node::Access(access) => self.access(access),
            Node::Call(call) => self.call(call),
            Node::Assign(pair) => {
                let value = self.eval(&pair.1)?;
                self.store(&pair.0, value.clone())?;
                Ok(value)
            }
            Node::AssignInto(pair) => {
                let value = self.eval(&pair.1)?;
                self.assign_into(&pair.0, value.clone())?;
                Ok(value)
            }
            Node::Define(definition) => {
                let function = UserFunction {
                    definition: definition.clone(),
                    captured: self.frame.clone(),
                };
                let value = Value::Function(Function::User(Arc::new(function)));
                self.store(&definition.name, value.clone())?;
                Ok(value)
            }
            Node::Block(statements) => self.block(statements),
        }
    }

    pub(crate) fn store(&mut self, name: &Arc<str>, value: Value) -> Result<()> {
        nesting::check_nesting(self, &value)?;
        if self.variables.len() >= VARIABLES_MAX && !self.variables.contains_key(name) {
            return Err(MathError::limit(format!(
                "Too many variables: at most {VARIABLES_MAX} are allowed"
            )));
        }
        self.variables.insert(name.clone(), value);
        Ok(())
    }

    fn symbol(&mut self, name: &Arc<str>) -> Result<Value> {
        if let Some(value) = self.variable(name) {
            return Ok(value.clone());
        }
        if &**name == "end"
            && let Some(length) = self.ends.last()
        {
            return Ok(Value::Num(*length as f64));
        }
        if let Some(value) = functions::value(self, name)? {
            return Ok(value);
        }
        match Unit::named(self, name) {
            Some(unit) => Ok(Value::unit(unit)),
            None => Err(MathError::new(
                ErrorKind::UndefinedSymbol,
                format!("Undefined symbol {name}"),
            )),
        }
    }

    /// A chain of binary operators: `a + b - c …` leans left, so the stack need not grow with it.
    fn chain(&mut self, node: &Node) -> Result<Value> {
        let mut spine = Vec::new();
        let mut leftmost = node;
        while let Some(left) = left_operand(leftmost) {
            if spine.is_empty() && left_operand(left).is_none() {
                // The common case: one operator, two operands.
                let value = self.eval(left)?;
                return self.continue_chain(leftmost, value);
            }
            spine.push(leftmost);
            leftmost = left;
        }
        let mut value = self.eval(leftmost)?;
        self.purse.pay(spine.len() as u64)?;
        while let Some(link) = spine.pop() {
            value = self.continue_chain(link, value)?;
        }
        Ok(value)
    }

    fn continue_chain(&mut self, node: &Node, left: Value) -> Result<Value> {
        match node {
            Node::Binary(op, pair) => self.binary(*op, left, &pair.1),
            Node::Implicit(pair) => {
                let right = self.eval(&pair.1)?;
                arithmetic::multiply(self, &left, &right)
            }
            Node::Percentage(op, pair) => {
                let share = self.eval(&pair.1)?;
                let part = arithmetic::multiply(self, &left, &share)?;
                if *op == BinaryOp::Add {
                    arithmetic::add(self, &left, &part)
                } else {
                    arithmetic::subtract(self, &left, &part)
                }
            }
            _ => Ok(left),
        }
    }

    fn binary(&mut self, op: BinaryOp, left: Value, right: &Node) -> Result<Value> {
        // Some operators know their answer from the left side alone.
        let is_matrix = matches!(left, Value::Matrix(_));
        match op {
            BinaryOp::And if !is_matrix && !logic::side(self, "and", &left)? => {
                return Ok(Value::Bool(false));
            }
            BinaryOp::Or if !is_matrix && logic::side(self, "or", &left)? => {
                return Ok(Value::Bool(true));
            }
            BinaryOp::Nullish if !is_matrix && !left.is_nothing() => return Ok(left),
            _ => {}
        }
        let right = self.eval(right)?;
        self.apply(op, &left, &right)
    }

    pub(crate) fn apply(&mut self, op: BinaryOp, a: &Value, b: &Value) -> Result<Value> {
        match op {
            BinaryOp::Add => arithmetic::add(self, a, b),
            BinaryOp::Subtract => arithmetic::subtract(self, a, b),
            BinaryOp::Multiply => arithmetic::multiply(self, a, b),
            BinaryOp::Divide => arithmetic::divide(self, a, b),
            BinaryOp::DotMultiply => arithmetic::dot_multiply(self, a, b),
            BinaryOp::DotDivide => arithmetic::dot_divide(self, a, b),
            BinaryOp::Mod => arithmetic::modulo(self, a, b),
            BinaryOp::Pow => power::pow(self, a, b),
            BinaryOp::DotPow => power::dot_pow(self, a, b),
            BinaryOp::And => logic::and(self, a, b),
            BinaryOp::Or => logic::or(self, a, b),
            BinaryOp::Xor => logic::xor(self, a, b),
            BinaryOp::BitAnd => bits::bit_and(self, a, b),
            BinaryOp::BitOr => bits::bit_or(self, a, b),
            BinaryOp::BitXor => bits::bit_xor(self, a, b),
            BinaryOp::ShiftLeft => bits::shift_left(self, a, b),
            BinaryOp::ShiftRight => bits::shift_right(self, a, b),
            BinaryOp::ShiftRightLogical => bits::shift_right_logical(self, a, b),
            BinaryOp::Equal => compare::equal(self, a, b),
            BinaryOp::Unequal => compare::unequal(self, a, b),
            BinaryOp::Smaller => compare::smaller(self, a, b),
            BinaryOp::Larger => compare::larger(self, a, b),
            BinaryOp::SmallerEq => compare::smaller_eq(self, a, b),
            BinaryOp::LargerEq => compare::larger_eq(self, a, b),
            BinaryOp::To => functions::units::to(self, a, b),
            BinaryOp::Nullish => functions::logical::nullish(self, a, b),
        }
    }

    fn unary(&mut self, op: UnaryOp, value: &Value) -> Result<Value> {
        match op {
            UnaryOp::Minus => arithmetic::negate(self, value),
            UnaryOp::Plus => arithmetic::plus(self, value),
            UnaryOp::BitNot => bits::bit_not(self, value),
            UnaryOp::Not => logic::not(self, value),
            UnaryOp::Factorial => {
                functions::probability::factorial(self, std::slice::from_ref(value))
            }
            UnaryOp::Transpose => {
                functions::matrices::ctranspose(self, std::slice::from_ref(value))
            }
        }
    }

    fn relational(&mut self, operators: &[BinaryOp], operands: &[Node]) -> Result<Value> {
        let mut left = self.eval(&operands[0])?;
        for (op, operand) in operators.iter().zip(&operands[1..]) {
            let right = self.eval(operand)?;
            let holds = self.apply(*op, &left, &right)?;
            if !self.condition(&holds)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(crate) fn condition(&self, value: &Value) -> Result<bool> {
        match value {
            Value::Matrix(_)
            | Value::Object(_)
            | Value::Function(_)
            | Value::Node(_)
            | Value::Int(_)
            | Value::Frac(_)
            | Value::Results(_) => Err(MathError::arguments(format!(
                "Unsupported type of condition \"{}\"",
                value.type_name()
            ))),
            // A part that is no number is as good as none.
            Value::Complex(z) => Ok([z.re, z.im].iter().any(|x| *x != 0.0 && !x.is_nan())),
            // A text is true unless it is empty, however it reads as a number.
            Value::Text(text) => Ok(!text.is_empty()),
            other => truthy("conditional", other),
        }
    }

    fn array(&mut self, items: &[Node]) -> Result<Value> {
        let values: Result<Vec<Value>> = items.iter().map(|item| self.eval(item)).collect();
        Ok(Matrix::stack(self, MatrixKind::Dense, values?)?.into())
    }

    fn object(&mut self, entries: &[(Arc<str>, Node)]) -> Result<Value> {
        let mut object = Object::default();
        for (key, node) in entries {
            if access::is_reserved(key) {
                return Err(access::no_property(key));
            }
            let value = self.eval(node)?;
            object.entries.insert(key.clone(), value);
        }
        self.purse.pay_cells(entries.len())?;
        Ok(Value::object(object))
    }

    fn range(&mut self, range: &Range) -> Result<Value> {
        let start = self.eval(&range.start)?;
        let step = range
            .step
            .as_ref()
            .map(|step| self.eval(step))
            .transpose()?;
        let end = self.eval(&range.end)?;
        functions::range::from_to(self, &start, &end, step.as_ref())
    }

    fn access(&mut self, access: &Access) -> Result<Value> {
        let object = self.eval(&access.object)?;
        if access.optional && object.is_nothing() {
            return Ok(Value::Undefined);
        }
        match &access.index {
            Index::Property(name) => access::property(&object, name),
            Index::Subset(parts) => {
                let index = self.index(&object, parts)?;
                access::get(self, &object, &index)
            }
        }
    }

    /// The parts of an index, with `end` standing for the length of the dimension each part selects from.
    fn index(&mut self, object: &Value, parts: &[Node]) -> Result<Vec<Value>> {
        let lengths = access::lengths(object);
        let mut index = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            self.ends.push(lengths.get(at).copied().unwrap_or(0));
            let value = self.eval(part);
            self.ends.pop();
            index.push(value?);
        }
        Ok(index)
    }

    fn assign_into(&mut self, access: &Access, value: Value) -> Result<()> {
        self.descend()?;
        let object = self.eval(&access.object)?;
        let changed = match &access.index {
            Index::Property(name) => access::set_property(&object, name, value)?,
            Index::Subset(parts) => {
                let index = self.index(&object, parts)?;
                access::set(self, &object, &index, &value)?
            }
        };
        match &access.object {
            Node::Symbol(name) => self.store(name, changed)?,
            Node::Access(outer) => self.assign_into(outer, changed)?,
            _ => {
                return Err(MathError::value(
                    "Cannot assign into a value that has no name",
                ));
            }
        }
        self.ascend();
        Ok(())
    }

    fn block(&mut self, statements: &[Statement]) -> Result<Value> {
        let mut results = Vec::new();
        for statement in statements {
            let value = self.eval(&statement.node)?;
            if statement.visible {
                results.push(value);
            }
        }
        Ok(Value::Results(Arc::new(results)))
    }

    fn call(&mut self, call: &Call) -> Result<Value> {
        let function = match &call.function {
            Node::Symbol(name) => {
                if let Some(value) = self.variable(name) {
                    value.clone()
                } else {
                    match functions::find(name) {
                        Some(Callable::Builtin(builtin)) => {
                            return self.call_builtin_nodes(builtin, &call.arguments);
                        }
                        Some(Callable::Lazy(lazy)) => return lazy(self, &call.arguments),
                        None if call.optional => return Ok(Value::Undefined),
                        None => return Err(undefined_function(name)),
                    }
                }
            }
            Node::Access(access)
                if call.arguments.is_empty() || matches!(access.index, Index::Property(_)) =>
            {
                self.access(access)?
            }
            other => self.eval(other)?,
        };
        if call.optional && function.is_nothing() {
            return Ok(Value::Undefined);
        }
        let arguments: Result<Vec<Value>> = call
            .arguments
            .iter()
            .map(|argument| self.eval(argument))
            .collect();
        match &function {
            Value::Function(function) => self.call_function(function, &arguments?),
            // A matrix called like a function is indexed.
            Value::Matrix(_) | Value::Text(_) if !call.optional => {
                access::get(self, &function, &arguments?)
            }
            other => {
                let text =
                    crate::format::write_value(self, other, &crate::number::digits::Style::ANSWER)?;
                let name = crate::format::write_node(&call.function)?;
                Err(MathError::arguments(format!(
                    "'{name}' is not a function; its value is:\n  {text}"
                )))
            }
        }
    }

    /// One, two or three arguments, the usual numbers, stay on the stack.
    fn call_builtin_nodes(&mut self, builtin: &'static Builtin, nodes: &[Node]) -> Result<Value> {
        match nodes {
            [a] => {
                let arguments = [self.eval(a)?];
                self.call_builtin(builtin, &arguments)
            }
            [a, b] => {
                let arguments = [self.eval(a)?, self.eval(b)?];
                self.call_builtin(builtin, &arguments)
            }
            nodes => {
                let arguments: Result<Vec<Value>> =
                    nodes.iter().map(|node| self.eval(node)).collect();
                self.call_builtin(builtin, &arguments?)
            }
        }
    }

    fn call_builtin(&mut self, builtin: &'static Builtin, arguments: &[Value]) -> Result<Value> {
        let (count, least, most) = (
            arguments.len(),
            builtin.arguments_min,
            builtin.arguments_max,
        );
        if count < least {
            return Err(MathError::arguments(format!(
                "Too few arguments in function {} (expected: {least}, actual: {count})",
                builtin.name
            )));
        }
        if count > most {
            return Err(MathError::arguments(format!(
                "Too many arguments in function {} (expected: {most}, actual: {count})",
                builtin.name
            )));
        }
        self.purse.pay(1)?;
        // Numbers, the usual arguments, fit nearly everywhere; what does not take them says so itself.
        if !arguments.iter().all(|value| matches!(value, Value::Num(_))) {
            signatures::check(builtin.name, arguments)?;
        }
        let is_finite = |value: &Value| matches!(value, Value::Num(x) if x.is_finite());
        if !arguments.iter().all(is_finite) {
            refusals::check(builtin.name, arguments)?;
        }
        let value = (builtin.run)(self, arguments)?;
        self.check_shape(&value)?;
        Ok(value)
    }

    pub(crate) fn call_function(
        &mut self,
        function: &Function,
        arguments: &[Value],
    ) -> Result<Value> {
        match function {
            Function::Builtin(builtin) => self.call_builtin(builtin, arguments),
            Function::User(user) => self.call_user(user, arguments),
            Function::Typed(signatures) => functions::typed::dispatch(self, signatures, arguments),
            Function::Method(method) => {
                functions::expression::method(self, &method.0, &method.1, arguments)
            }
        }
    }

    fn call_user(&mut self, user: &UserFunction, arguments: &[Value]) -> Result<Value> {
        let definition = &user.definition;
        let (given, wanted) = (arguments.len(), definition.parameters.len());
        if given != wanted {
            let few = if given < wanted { "few" } else { "many" };
            return Err(MathError::arguments(format!(
                "Too {few} arguments in function {} (expected: {wanted}, actual: {given})",
                definition.name
            )));
        }
        self.descend()?;
        let values = definition
            .parameters
            .iter()
            .cloned()
            .zip(arguments.iter().cloned())
            .collect();
        let frame = Arc::new(Frame {
            values,
            outer: user.captured.clone(),
        });
        let outer = self.frame.replace(frame);
        let result = self.eval(&definition.body);
        self.frame = outer;
        self.ascend();
        result
    }
}

fn left_operand(node: &Node) -> Option<&Node> {
    match node {
        Node::Binary(_, pair) | Node::Implicit(pair) | Node::Percentage(_, pair) => Some(&pair.0),
        _ => None,
    }
}

/// Names other languages have for what is here under another.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ln", "log(x) is the natural logarithm"),
    ("arcsin", "use asin"),
    ("arccos", "use acos"),
    ("arctan", "use atan"),
    ("average", "use mean"),
    ("avg", "use mean"),
    ("var", "use variance"),
    ("stdev", "use std"),
    ("nCr", "use combinations"),
    ("nPr", "use permutations"),
    ("choose", "use combinations"),
    ("len", "use count or size"),
    ("length", "use count or size"),
    ("ceiling", "use ceil"),
    ("trunc", "use fix"),
    ("power", "use pow or ^"),
];

fn undefined_function(name: &str) -> MathError {
    let hint = ELSEWHERE.iter().find(|(other, _)| *other == name);
    let hint = hint.map_or(String::new(), |(_, hint)| format!("; {hint}"));
    MathError::new(
        ErrorKind::UndefinedFunction,
        format!("Undefined function {name}{hint}"),
    )
}
