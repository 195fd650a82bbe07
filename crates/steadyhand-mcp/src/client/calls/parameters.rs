//! Names of parameters on their way to an MCP server: mapped as configured, mended by its own schema.
//!
//! The decision (SPEC D5, V13). Models write `device_name`; servers in TypeScript mostly want
//! `deviceName`, servers in Python mostly want `device_name`. Turning every name to camelCase, as was
//! first asked for, breaks every Python server, and turning none leaves the others with calls that
//! are refused for a missing `deviceName`. So the server's own schema decides:
//!
//! - a name it declares is right as it stands;
//! - a name it does not declare becomes camelCase where that form is declared;
//! - a name of which it declares neither form becomes camelCase at the top level only: deeper down,
//!   names it knows nothing of are more often data (headers, labels, columns) than parameters;
//! - what is configured for a tool is no guess, and always applies. The check is by the schema, so a
//!   mapping away from a name the schema declares waits until the check is over.
//!
//! A test calls a real camelCase server without any of this, to show that it is needed.

mod shape;
mod shown;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use shape::{Node, NodeId, Shape};
pub use shown::Changes;

/// Arguments are not walked deeper than this; nothing the engine accepts is.
const DEPTH_MAX: usize = 128;

/// When names are turned to camelCase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CamelCase {
    /// Where the schema does not declare them: see this module's beginning.
    #[default]
    Auto,
    /// Also names that the schema declares: for servers whose schema is not what they read.
    Always,
    /// Never; only configured mappings apply.
    Off,
}

/// A name that was changed, or would have been.
#[derive(Debug, Clone, PartialEq)]
pub struct Renamed {
    /// As the caller wrote it.
    pub from: String,
    /// As the server wants it.
    pub to: String,
    /// JSON Pointer of the object it stands in.
    pub at: String,
    /// The new name was there already, so both were left as they came.
    pub left: bool,
    /// Its value as a log may show it.
    value: String,
}

/// How the parameters of one tool are called; made once per tool.
#[derive(Debug, Clone)]
pub struct ParameterNames {
    before: BTreeMap<String, String>,
    after: BTreeMap<String, String>,
    /// What mappings lead to: names the server is known to want, whatever they look like.
    targets: HashSet<String>,
    shape: Shape,
    mode: CamelCase,
}

/// Mappings that ship with the program: what the tool is called on its server, from there to here.
pub fn shipped_mapping(tool: &str) -> Option<BTreeMap<String, String>> {
    let pairs: &[(&str, &str)] = match tool {
        "control_zwave_device" => &[("device_name", "deviceName"), ("command", "action")],
        _ => return None,
    };
    let owned = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
    Some(pairs.iter().map(owned).collect())
}

impl ParameterNames {
    /// The names of a tool by its schema, and by what is configured for it.
    pub fn new(schema: &Value, mapping: &BTreeMap<String, String>, mode: CamelCase) -> Self {
        let shape = Shape::of(schema);
        let changes = mapping.iter().filter(|(from, to)| from != to);
        let (after, before) = changes
            .map(|(from, to)| (from.clone(), to.clone()))
            .partition(|(from, _)| shape.root().declares(from));
        ParameterNames {
            before,
            after,
            targets: mapping.values().cloned().collect(),
            shape,
            mode,
        }
    }

    /// What is to be done before the arguments are checked by the schema. Allocates nothing where the
    /// schema declares every name.
    pub fn before_check(&self, args: &mut Value) -> Vec<Renamed> {
        let mut walk = Walk::default();
        self.mend(
            self.shape.root_id(),
            args,
            &At::Top,
            &mut walk,
            Pass::Before,
        );
        walk.renamed
    }

    /// Whether [`after_check`](Self::after_check) could change anything.
    pub fn changes_after_check(&self) -> bool {
        self.mode == CamelCase::Always || !self.after.is_empty()
    }

    /// What is to be done when the check is over: names the schema declares and the server does not want.
    pub fn after_check(&self, args: &mut Value) -> Vec<Renamed> {
        let mut walk = Walk::default();
        match self.mode {
            CamelCase::Always => {
                self.mend(self.shape.root_id(), args, &At::Top, &mut walk, Pass::After);
            }
            CamelCase::Auto | CamelCase::Off if self.after.is_empty() => {}
            CamelCase::Auto | CamelCase::Off => {
                if let Value::Object(fields) = args {
                    rename(fields, &At::Top, &mut walk, |name| {
                        self.after.get(name).cloned()
                    });
                }
            }
        }
        walk.renamed
    }

    fn mend(&self, id: NodeId, value: &mut Value, at: &At<'_>, walk: &mut Walk, pass: Pass) {
        if walk.depth >= DEPTH_MAX {
            return;
        }
        let node = self.shape.node(id);
        walk.depth += 1;
        match (value, pass) {
            // The schema knows what is inside by the names it declares: so inside comes second when
            // names become those, and first when they cease to be.
            (Value::Object(fields), Pass::Before) => {
                if walk.has_time_for(fields, node) {
                    rename(fields, at, walk, |name| self.new_name(name, node, at, pass));
                }
                self.mend_inside(node, fields, at, walk, pass);
            }
            (Value::Object(fields), Pass::After) => {
                self.mend_inside(node, fields, at, walk, pass);
                if walk.has_time_for(fields, node) {
                    rename(fields, at, walk, |name| self.new_name(name, node, at, pass));
                }
            }
            (Value::Array(items), _) => {
                if let Some(inner) = node.items() {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.mend(inner, item, &At::Item(at, index), walk, pass);
                    }
                }
            }
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {}
        }
        walk.depth -= 1;
    }

    fn mend_inside(
        &self,
        node: &Node,
        fields: &mut Map<String, Value>,
        at: &At<'_>,
        walk: &mut Walk,
        pass: Pass,
    ) {
        if self.mode == CamelCase::Off || !node.leads_further() {
            return;
        }
        for (name, field) in fields {
            if let Some(inner) = node.inner(name) {
                self.mend(inner, field, &At::Field(at, name), walk, pass);
            }
        }
    }

    fn new_name(&self, name: &str, node: &Node, at: &At<'_>, pass: Pass) -> Option<String> {
        let is_top = matches!(at, At::Top);
        if is_top {
            let mapping = match pass {
                Pass::Before => &self.before,
                Pass::After => &self.after,
            };
            if let Some(to) = mapping.get(name) {
                return Some(to.clone());
            }
            if self.targets.contains(name) {
                return None;
            }
        }
        if self.mode == CamelCase::Off || !name.contains('_') {
            return None;
        }
        let is_declared = node.declares(name);
        match pass {
            Pass::Before if is_declared => None,
            Pass::Before => {
                camel_case(name).filter(|camel| node.declares(camel) || (is_top && node.is_fixed()))
            }
            Pass::After if is_declared || is_top => camel_case(name),
            Pass::After => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Before,
    After,
}

#[derive(Default)]
struct Walk {
    renamed: Vec<Renamed>,
    depth: usize,
    names: usize,
}

impl Walk {
    /// Whether the names of an object can still be looked at; arguments with more of them are passed on as they are.
    fn has_time_for(&mut self, fields: &Map<String, Value>, node: &Node) -> bool {
        let each = if node.has_patterns() {
            NAMES_PER_PATTERN
        } else {
            1
        };
        self.names = self.names.saturating_add(fields.len() * each);
        self.names <= NAMES_READ_MAX
    }
}

/// So many names of arguments are looked at in one call; one that is compared with patterns counts for many.
pub(crate) const NAMES_READ_MAX: usize = 20_000;
const NAMES_PER_PATTERN: usize = 40;
/// So many changes of names are reported, each with so much of the way to it.
pub(crate) const RENAMED_MAX: usize = 5_000;
const PLACE_BYTES_MAX: usize = 1_000;

/// Where in the arguments we are, without a text for it until one is needed.
enum At<'a> {
    Top,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl At<'_> {
    fn pointer(&self) -> String {
        match self {
            At::Top => String::new(),
            At::Field(parent, name) => {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                format!("{}/{escaped}", parent.pointer())
            }
            At::Item(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }
}

/// Gives the fields of one object their new names, all at once and each in its place.
fn rename(
    fields: &mut Map<String, Value>,
    at: &At<'_>,
    walk: &mut Walk,
    new_name: impl Fn(&str) -> Option<String>,
) {
    let mut plan: Vec<(usize, String)> = Vec::new();
    for (index, name) in fields.keys().enumerate() {
        if let Some(to) = new_name(name)
            && to != *name
        {
            plan.push((index, to));
        }
    }
    if plan.is_empty() {
        return;
    }
    let leaves = what_must_stay(fields, &plan);
    let mut plan = plan.into_iter().zip(leaves).peekable();
    let mut pointer = at.pointer();
    pointer.truncate(pointer.floor_char_boundary(PLACE_BYTES_MAX));
    let named = std::mem::take(fields).into_iter().enumerate();
    *fields = named
        .map(|(index, (from, value))| {
            let Some(((_, to), left)) = plan.next_if(|((place, _), _)| *place == index) else {
                return (from, value);
            };
            let kept = if left { from.clone() } else { to.clone() };
            if walk.renamed.len() < RENAMED_MAX {
                walk.renamed.push(Renamed {
                    value: shown::value(&from, &to, &value),
                    from,
                    to,
                    at: pointer.clone(),
                    left,
                });
            }
            (kept, value)
        })
        .collect();
}

/// Which of the planned changes would overwrite another argument. Two that swap their names do not.
fn what_must_stay(fields: &Map<String, Value>, plan: &[(usize, String)]) -> Vec<bool> {
    let mut stays = vec![false; plan.len()];
    loop {
        let moving: HashSet<usize> = plan
            .iter()
            .zip(&stays)
            .filter(|(_, stays)| !**stays)
            .map(|((index, _), _)| *index)
            .collect();
        let mut taken: HashSet<&str> = fields
            .keys()
            .enumerate()
            .filter(|(index, _)| !moving.contains(index))
            .map(|(_, name)| name.as_str())
            .collect();
        let before = moving.len();
        for ((_, to), stays) in plan.iter().zip(&mut stays) {
            *stays = *stays || !taken.insert(to);
        }
        // One that stays may be in the way of another.
        if stays.iter().filter(|stays| !**stays).count() == before {
            return stays;
        }
    }
}

/// `new_parameter_name` as `newParameterName`; none for a name that is not written that way: without
/// an underscore before a letter or digit, with one at its beginning (`_meta`) or two together
/// (`__x`, `price__lt`), or all in capitals (`API_KEY`).
pub(crate) fn camel_case(name: &str) -> Option<String> {
    if !name.contains('_') || name.starts_with('_') || name.contains("__") {
        return None;
    }
    if !name.contains(char::is_lowercase) {
        return None;
    }
    let mut camel = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('_', Some(next)) if next.is_alphanumeric() => {
                camel.extend(next.to_uppercase());
                rest.next();
            }
            _ => camel.push(c),
        }
    }
    (camel != name).then_some(camel)
}
