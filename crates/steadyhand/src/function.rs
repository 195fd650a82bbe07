//! Functions as tools: an async function with a typed argument struct is all it takes.

use std::future::{Future, ready};
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use tokio::sync::Semaphore;

use crate::handler::{CallContext, Handler, Invocation};
use crate::output::Output;
use crate::state::{Need, State};
use crate::tool::Tool;
use crate::tool_error::{Category, ToolError};

/// Threads of one blocking tool that may be busy at once, those counted whose call has timed out:
/// as many as calls of one tool run at once by default.
const BLOCKING_THREADS_MAX: usize = 256;

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct NoArgs {}

impl Tool {
    /// An async function as a tool. Its last parameter is the argument struct; before it may stand
    /// [`CallContext`] and [`State`]. It gives back a `Result` of anything that is `Serialize`.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use steadyhand::{CallContext, Tool, ToolError};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Sum { a: i64, b: i64 }
    ///
    /// async fn sum(cx: CallContext, args: Sum) -> Result<i64, ToolError> {
    ///     cx.progress(1.0, Some(1.0), "added");
    ///     args.a.checked_add(args.b).ok_or_else(|| ToolError::answer("too large"))
    /// }
    ///
    /// let tool = Tool::function("sum", "Adds two numbers", sum);
    /// assert_eq!(tool.schema()["required"], serde_json::json!(["a", "b"]));
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// assert_eq!(sum(CallContext::for_test(), Sum { a: 1, b: 2 }).await.unwrap(), 3);
    /// # });
    /// ```
    pub fn function<M, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Tool
    where
        F: ToolFunction<M>,
        F::Args: JsonSchema,
        M: 'static,
    {
        Tool::with_schema(name, description, schema_of::<F::Args>(), function)
    }

    /// A function with a schema written by hand. Its last parameter is often a
    /// [`serde_json::Value`], or any type that can be read from what the schema allows.
    pub fn with_schema<M, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        function: F,
    ) -> Tool
    where
        F: ToolFunction<M>,
        M: 'static,
    {
        let handler = FunctionHandler {
            function,
            marker: PhantomData,
        };
        Tool::new(name, description, schema, Arc::new(handler)).needing(F::needs())
    }

    /// A function that blocks its thread: a computation, a driver without async. It runs on
    /// threads of its own. After a time-out such a thread runs on by itself until it is done, so
    /// the outcome says that it may have acted, and a few of them fill the tool up.
    pub fn blocking<A, R, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Tool
    where
        F: Fn(A) -> R + Send + Sync + 'static,
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: ToolReturn + Send + 'static,
    {
        let handler = BlockingHandler {
            function: Arc::new(function),
            threads: Arc::new(Semaphore::new(BLOCKING_THREADS_MAX)),
            marker: PhantomData,
        };
        Tool::new(name, description, schema_of::<A>(), Arc::new(handler))
    }
}

/// The schema of an argument struct: one document without references where that is possible, since
/// several model providers do not follow them.
fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.to_value()
}

/// A function that can be a tool: `async fn(CallContext?, State<T>?…, Args) -> Result<T, E>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool",
    label = "not the signature of a tool",
    note = "a tool is an `async fn(…, Args) -> Result<T, E>`: `Args` is last and implements \
            `serde::de::DeserializeOwned`, `T` implements `Serialize`, `E` is a `ToolError` or any \
            `std::error::Error`",
    note = "before `Args` may stand `CallContext` and `State<T>`, up to four of them"
)]
pub trait ToolFunction<M>: Send + Sync + 'static {
    /// What it works with.
    type Args: DeserializeOwned;

    /// The state it asks for.
    fn needs() -> Vec<Need>;

    /// Starts it for one attempt.
    fn start(&self, invocation: &Invocation<'_>) -> BoxFuture<'static, Result<Output, ToolError>>;
}

/// What may stand before the arguments in the signature of a tool's function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand before the arguments of a tool",
    note = "only `CallContext` and `State<T>` can; the argument struct comes last"
)]
pub trait FromInvocation: Sized + Send + 'static {
    /// Taken from the invocation, or why not.
    fn from_invocation(invocation: &Invocation<'_>) -> Result<Self, ToolError>;

    /// The state this is.
    fn need() -> Option<Need> {
        None
    }
}

impl FromInvocation for CallContext {
    fn from_invocation(invocation: &Invocation<'_>) -> Result<CallContext, ToolError> {
        Ok(invocation.context())
    }
}

impl<T: Clone + Send + Sync + 'static> FromInvocation for State<T> {
    fn from_invocation(invocation: &Invocation<'_>) -> Result<State<T>, ToolError> {
        // Checked when the tool was added, so this does not happen.
        let missing = || {
            let text = format!("no State<{}>", std::any::type_name::<T>());
            ToolError::answer(text).never_started()
        };
        invocation.states.get().map(State).ok_or_else(missing)
    }

    fn need() -> Option<Need> {
        Some(Need::of::<T>())
    }
}

/// What a tool's function may give back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a tool can give back",
    note = "give back `Result<T, E>` with `T: Serialize` and `E` a `ToolError` or any `std::error::Error`"
)]
pub trait ToolReturn {
    /// As the engine keeps it.
    fn into_result(self) -> Result<Output, ToolError>;
}

impl<T: IntoOutput, E: Into<ToolError>> ToolReturn for Result<T, E> {
    fn into_result(self) -> Result<Output, ToolError> {
        self.map_err(Into::into)?.into_output()
    }
}

/// A value that can be a tool's output: everything that is `Serialize`, and [`Output`] itself.
pub trait IntoOutput {
    /// As the engine keeps it.
    fn into_output(self) -> Result<Output, ToolError>;
}

impl<T: Serialize> IntoOutput for T {
    fn into_output(self) -> Result<Output, ToolError> {
        let value = serde_json::to_value(self).map_err(|error| {
            // It ran; only its answer cannot be told.
            ToolError::answer(format!("the tool's output is not JSON: {error}")).result_lost()
        })?;
        Ok(Output::json(value))
    }
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(self)
    }
}

struct FunctionHandler<M, F> {
    function: F,
    marker: PhantomData<fn(M)>,
}

impl<M, F: ToolFunction<M>> Handler for FunctionHandler<M, F> {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        self.function.start(invocation)
    }
}

struct BlockingHandler<A, F> {
    function: Arc<F>,
    threads: Arc<Semaphore>,
    marker: PhantomData<fn(A)>,
}

impl<A, R, F> Handler for BlockingHandler<A, F>
where
    F: Fn(A) -> R + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    R: ToolReturn + Send + 'static,
{
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let args = match read_args::<A>(invocation.args) {
            Ok(args) => args,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let Ok(thread) = Arc::clone(&self.threads).try_acquire_owned() else {
            let text = "all threads of this tool are busy, some with calls that have timed out";
            return Box::pin(ready(Err(ToolError::of(Category::Overloaded, text))));
        };
        let function = Arc::clone(&self.function);
        let running = tokio::task::spawn_blocking(move || {
            // Held by the thread, not by the call: a thread nobody waits for is still busy.
            let _thread = thread;
            function(args).into_result()
        });
        Box::pin(async move {
            match running.await {
                Ok(result) => result,
                Err(failed) => match failed.try_into_panic() {
                    Ok(payload) => std::panic::resume_unwind(payload),
                    Err(_) => Err(ToolError::new("the runtime is shutting down")
                        .effect(crate::Effect::Unknown)),
                },
            }
        })
    }
}

/// Reads the checked arguments into the function's own type.
fn read_args<A: DeserializeOwned>(args: &Value) -> Result<A, ToolError> {
    match A::deserialize(args) {
        Ok(read) => Ok(read),
        // JSON Schema calls 3.0 an integer, serde does not.
        Err(first) => A::deserialize(&whole_numbers_as_integers(args)).map_err(|_| {
            ToolError::of(Category::Validation, format!("Invalid parameters: {first}"))
        }),
    }
}

fn whole_numbers_as_integers(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float)
                if number.is_f64() && float.fract() == 0.0 && float.abs() < 2f64.powi(63) =>
            {
                Value::Number(Number::from(float as i64))
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole_numbers_as_integers).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), whole_numbers_as_integers(field)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn failed(error: ToolError) -> BoxFuture<'static, Result<Output, ToolError>> {
    Box::pin(ready(Err(error)))
}

macro_rules! tool_function {
    ($($part:ident),*) => {
        impl<Func, Fut, A, $($part),*> ToolFunction<($($part,)* A,)> for Func
        where
            Func: Fn($($part,)* A) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            Fut::Output: ToolReturn,
            A: DeserializeOwned + Send + 'static,
            $($part: FromInvocation,)*
        {
            type Args = A;

            fn needs() -> Vec<Need> {
                let needs: [Option<Need>; _] = [$($part::need()),*];
                needs.into_iter().flatten().collect()
            }

            fn start(&self, invocation: &Invocation<'_>) -> BoxFuture<'static, Result<Output, ToolError>> {
                let args = match read_args::<A>(invocation.args) {
                    Ok(args) => args,
                    Err(error) => return failed(error),
                };
                $(
                    #[allow(non_snake_case, reason = "the type's name serves as the variable's")]
                    let $part = match $part::from_invocation(invocation) {
                        Ok(part) => part,
                        Err(error) => return failed(error),
                    };
                )*
                let running = self($($part,)* args);
                Box::pin(async move { running.await.into_result() })
            }
        }
    };
}

tool_function!();
tool_function!(P1);
tool_function!(P1, P2);
tool_function!(P1, P2, P3);
tool_function!(P1, P2, P3, P4);
