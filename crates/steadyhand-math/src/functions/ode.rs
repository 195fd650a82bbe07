//! Ordinary differential equations, by Runge–Kutta methods that choose their own steps.

use crate::convert::{simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::linear::as_matrix;
use crate::value::env::Env;
use crate::value::function::{Builtin, Function};
use crate::value::matrix::Matrix;
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[Builtin::new("solveODE", 3..=4, solve_ode)];

/// A pair of methods of neighbouring order: their difference is the error.
struct Method {
    a: &'static [&'static [f64]],
    c: &'static [f64],
    b: &'static [f64],
    other: &'static [f64],
}

const BOGACKI_SHAMPINE: Method = Method {
    a: &[
        &[],
        &[1.0 / 2.0],
        &[0.0, 3.0 / 4.0],
        &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0],
    ],
    c: &[0.0, 1.0 / 2.0, 3.0 / 4.0, 1.0],
    b: &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0, 0.0],
    other: &[7.0 / 24.0, 1.0 / 4.0, 1.0 / 3.0, 1.0 / 8.0],
};

const DORMAND_PRINCE: Method = Method {
    a: &[
        &[],
        &[1.0 / 5.0],
        &[3.0 / 40.0, 9.0 / 40.0],
        &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
        &[
            19372.0 / 6561.0,
            -25360.0 / 2187.0,
            64448.0 / 6561.0,
            -212.0 / 729.0,
        ],
        &[
            9017.0 / 3168.0,
            -355.0 / 33.0,
            46732.0 / 5247.0,
            49.0 / 176.0,
            -5103.0 / 18656.0,
        ],
        &[
            35.0 / 384.0,
            0.0,
            500.0 / 1113.0,
            125.0 / 192.0,
            -2187.0 / 6784.0,
            11.0 / 84.0,
        ],
    ],
    c: &[0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0],
    b: &[
        35.0 / 384.0,
        0.0,
        500.0 / 1113.0,
        125.0 / 192.0,
        -2187.0 / 6784.0,
        11.0 / 84.0,
        0.0,
    ],
    other: &[
        5179.0 / 57600.0,
        0.0,
        7571.0 / 16695.0,
        393.0 / 640.0,
        -92097.0 / 339_200.0,
        187.0 / 2100.0,
        1.0 / 40.0,
    ],
};

struct Options {
    method: Method,
    tolerance: f64,
    first_step: Option<f64>,
    step_max: f64,
    step_min: f64,
    delta_min: f64,
    delta_max: f64,
    iterations_max: usize,
}

fn options(value: Option<&Value>) -> Result<Options> {
    let empty = Object::default();
    let object = match value {
        None => &empty,
        Some(Value::Object(object)) => object,
        Some(other) => return Err(wrong_type("solveODE", other, 3)),
    };
    let number = |key: &str, default: f64| object.get(key).map_or(default, to_f64);
    let method = match object.get("method") {
        None => DORMAND_PRINCE,
        Some(Value::Text(name)) => match name.to_uppercase().as_str() {
            "RK45" => DORMAND_PRINCE,
            "RK23" => BOGACKI_SHAMPINE,
            _ => {
                return Err(MathError::value(format!(
                    "Unavailable method \"{name}\". Available methods are \"RK23\" and \"RK45\""
                )));
            }
        },
        Some(other) => return Err(wrong_type("solveODE", other, 3)),
    };
    Ok(Options {
        method,
        tolerance: number("tol", 1e-4),
        first_step: object.get("firstStep").map(to_f64),
        step_max: number("maxStep", f64::INFINITY),
        step_min: number("minStep", 0.0),
        delta_min: number("minDelta", 0.2),
        delta_max: number("maxDelta", 5.0),
        iterations_max: number("maxIter", 10_000.0) as usize,
    })
}

fn solve_ode(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Function(function) = &args[0] else {
        return Err(wrong_type("solveODE", &args[0], 0));
    };
    let span = numbers(&args[1])?;
    let [start, end] = span.as_slice() else {
        return Err(MathError::value(
            "\"tspan\" must be an Array of two numeric values or two units [tStart, tEnd]",
        ));
    };
    let (initial, is_single) = match &args[2] {
        Value::Matrix(_) => (numbers(&args[2])?, false),
        scalar => (vec![to_f64(&simple("solveODE", scalar, 2)?)], true),
    };
    let (times, states) = integrate(
        env,
        function,
        *start,
        *end,
        initial,
        is_single,
        &options(args.get(3))?,
    )?;
    let kind = as_matrix("solveODE", &args[1])?.kind;
    let width = states.first().map_or(0, Vec::len);
    let size = if is_single {
        vec![states.len()]
    } else {
        vec![states.len(), width]
    };
    let flat: Vec<f64> = states.into_iter().flatten().collect();
    env.purse.pay_cells(flat.len())?;
    Ok(Value::object(Object::of([
        ("t", Matrix::numbers(kind, vec![times.len()], &times).into()),
        ("y", Matrix::numbers(kind, size, &flat).into()),
    ])))
}

fn numbers(value: &Value) -> Result<Vec<f64>> {
    as_matrix("solveODE", value)?
        .cells
        .iter()
        .map(|cell| simple("solveODE", cell, 1).map(|cell| to_f64(&cell)))
        .collect()
}

fn integrate(
    env: &mut Env,
    function: &Function,
    start: f64,
    end: f64,
    initial: Vec<f64>,
    is_single: bool,
    options: &Options,
) -> Result<(Vec<f64>, Vec<Vec<f64>>)> {
    let forwards = end > start;
    let mut step = options
        .first_step
        .map_or(end - start, |step| if forwards { step } else { -step });
    let (mut times, mut states) = (vec![start], vec![initial]);
    let (mut now, mut state) = (start, states[0].clone());
    let method = &options.method;
    let mut iterations = 0;
    while if forwards {
        now < end && !is_close(now, end)
    } else {
        now > end && !is_close(now, end)
    } {
        let overshoots = if forwards {
            now + step > end
        } else {
            now + step < end
        };
        if overshoots {
            step = end - now;
        }
        let mut slopes = vec![slope(env, function, now, &state, is_single)?];
        for (i, weights) in method.a.iter().enumerate().skip(1) {
            let at = combine(&state, &slopes, weights, step);
            slopes.push(slope(
                env,
                function,
                now + method.c[i] * step,
                &at,
                is_single,
            )?);
        }
        let difference: Vec<f64> = method
            .b
            .iter()
            .zip(method.other)
            .map(|(b, other)| b - other)
            .collect();
        let zero = vec![0.0; state.len()];
        let error = combine(&zero, &slopes, &difference, 1.0)
            .into_iter()
            .fold(0.0f64, |error, x| error.max(x.abs()));
        if error < options.tolerance && options.tolerance / error > 0.25 {
            state = combine(&state, &slopes, method.b, step);
            now += step;
            times.push(now);
            states.push(state.clone());
            env.purse
                .pay_cells(times.len().saturating_mul(state.len()))?;
        }
        let delta = (0.84 * (options.tolerance / error).powf(0.2))
            .clamp(options.delta_min, options.delta_max.max(options.delta_min));
        step *= delta;
        if step.abs() > options.step_max {
            step = options.step_max.copysign(step);
        } else if step.abs() < options.step_min {
            step = options.step_min.copysign(step);
        }
        iterations += 1;
        if iterations > options.iterations_max || !step.is_finite() || step == 0.0 {
            return Err(MathError::value(
                "Maximum number of iterations reached, try changing options",
            ));
        }
    }
    Ok((times, states))
}

fn is_close(a: f64, b: f64) -> bool {
    crate::ops::compare::nearly_equal(a, b, 1e-12, 1e-15)
}

fn combine(state: &[f64], slopes: &[Vec<f64>], weights: &[f64], step: f64) -> Vec<f64> {
    let mut result = state.to_vec();
    for (at, slot) in result.iter_mut().enumerate() {
        let sum: f64 = weights
            .iter()
            .zip(slopes)
            .map(|(weight, slope)| step * weight * slope[at])
            .sum();
        *slot += sum;
    }
    result
}

fn slope(
    env: &mut Env,
    function: &Function,
    time: f64,
    state: &[f64],
    is_single: bool,
) -> Result<Vec<f64>> {
    env.purse.pay(1)?;
    let cells: Vec<Value> = state.iter().map(|x| Value::Num(*x)).collect();
    let argument = if is_single {
        cells[0].clone()
    } else {
        Matrix::vector(cells).into()
    };
    let slope = match env.call_function(function, &[Value::Num(time), argument])? {
        Value::Matrix(matrix) => matrix
            .cells
            .iter()
            .map(|cell| simple("solveODE", cell, 0).map(|cell| to_f64(&cell)))
            .collect::<Result<Vec<f64>>>()?,
        scalar => vec![to_f64(&simple("solveODE", &scalar, 0)?)],
    };
    if slope.len() != state.len() {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch ({} != {})",
            slope.len(),
            state.len()
        )));
    }
    Ok(slope)
}
