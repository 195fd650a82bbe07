//! Values of the application that reach tools by the type in their signature.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;

/// A value of the application, in the signature of a tool's function. Never part of its schema.
///
/// ```
/// use steadyhand::{NoArgs, State, Tool, ToolError, ToolManager};
///
/// #[derive(Clone)]
/// struct Greeting(&'static str);
///
/// async fn greet(State(greeting): State<Greeting>, _: NoArgs) -> Result<String, ToolError> {
///     Ok(greeting.0.to_owned())
/// }
///
/// let tools = ToolManager::new().with_state(Greeting("hello"));
/// tools.add(Tool::function("greet", "Says hello", greet)).unwrap();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct State<T>(pub T);

/// One value per type.
#[derive(Clone, Default)]
pub(crate) struct States {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl States {
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let value = self.values.get(&TypeId::of::<T>())?;
        value.downcast_ref::<T>().cloned()
    }

    pub(crate) fn has(&self, need: &Need) -> bool {
        self.values.contains_key(&need.type_id)
    }
}

/// A type of state that a tool asks for: checked when the tool is added, not when it is called.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    type_id: TypeId,
    pub(crate) type_name: &'static str,
}

impl Need {
    pub(crate) fn of<T: 'static>() -> Need {
        Need {
            type_id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
        }
    }
}
