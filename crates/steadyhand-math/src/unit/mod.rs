//! Units by name: what they measure, their prefixes, and those that an expression creates.

pub(crate) mod constants;
pub(crate) mod prefix;
mod registry;
mod table;

use std::sync::Arc;

use self::prefix::Prefix;
use self::registry::Definition;
pub(crate) use self::registry::Registry;

/// The nine of nature, and room for those an expression creates.
pub(crate) const DIMENSIONS: usize = 16;
pub(crate) type Dimensions = [f64; DIMENSIONS];

/// One factor of a unit: `km^2`
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) unit: Arc<Definition>,
    pub(crate) prefix: Prefix,
    pub(crate) power: f64,
}

pub(crate) fn same_dimensions(a: &Dimensions, b: &Dimensions) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12)
}
