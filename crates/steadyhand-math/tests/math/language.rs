//! What the language is: answers, their JSON, errors, sessions. mathjs itself is asked in `parity` and `generate`.

use serde_json::json;
use steadyhand_math::{ErrorKind, Session, evaluate};

fn check(expression: &str, expected: &str) {
    let answer = evaluate(expression).map(|answer| answer.to_string());
    assert_eq!(answer.as_deref(), Ok(expected), "{expression}");
}

fn check_error(expression: &str, kind: ErrorKind, expected: &str) {
    let error = evaluate(expression)
        .map(|answer| answer.to_string())
        .expect_err(expression);
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (kind, expected),
        "{expression}"
    );
}

#[test]
fn f11_two_and_two_is_four_and_json() {
    let json = |expression: &str| evaluate(expression).expect(expression).to_json();
    assert_eq!(json("2+2"), json!(4));
    assert_eq!(json("1/3"), json!(1.0 / 3.0));
    assert_eq!(json("2 < 3"), json!(true));
    assert_eq!(json("null"), json!(null));
    assert_eq!(json("\"text\""), json!("text"));
    assert_eq!(json("1/0"), json!("Infinity"));
    assert_eq!(json("5.4 cm to inch"), json!("2.125984251968504 inch"));
    assert_eq!(json("[1, 2; 3, 4]"), json!("[[1, 2], [3, 4]]"));
    assert_eq!(json("sqrt(-4)"), json!("2i"));
    assert_eq!(
        json("bignumber(1) / 3"),
        json!("0.3333333333333333333333333333333333333333333333333333333333333333")
    );
}

#[test]
fn f11_no_digit_of_an_answer_is_lost_on_the_way_out() {
    let json = |expression: &str| evaluate(expression).expect(expression).to_json();
    let big = "1.267650600228229401496703205376e+30";
    assert_eq!(json("bignumber(2)^100"), json!(big));
    assert_eq!(json("[bignumber(2)^100]"), json!(format!("[{big}]")));
    assert_eq!(
        json("bigint(2)^bigint(70)"),
        json!("1180591620717411303424")
    );
    assert_eq!(json("fraction(1, 3)"), json!("1/3"));
    assert_eq!(json("2^60"), json!(2f64.powi(60)));
    assert_eq!(
        json("[1/3, 2^60]"),
        json!("[0.3333333333333333, 1.152921504606847e+18]")
    );
    assert_eq!(json("sqrt(-2)"), json!("1.4142135623730951i"));
    assert_eq!(json("0/0"), json!("NaN"));
    assert_eq!(json("-1/0"), json!("-Infinity"));
    assert_eq!(json("9007199254740991"), json!(9_007_199_254_740_991_i64));
}

#[test]
fn f11_operators_bind_as_in_mathjs() {
    check("1 + 2 * 3", "7");
    check("-2^2", "-4");
    check("2^3^2", "512");
    check("2^-1", "0.5");
    check("1/2 pi", "1.5707963267948966");
    check("6 / 2(1 + 2)", "9");
    check("100 + 3%", "103");
    check("50% * 8", "4");
    check("8 % 3", "2");
    check("1 < 2 < 3", "true");
    check("true ? 1 : false ? 2 : 3", "1");
    check("2 == 2 and 3 == 3 or false", "true");
    check("1:3 + 2", "[1, 2, 3, 4, 5]");
    check("4!", "24");
    check("[1, 2; 3, 4]'", "[[1, 3], [2, 4]]");
    check("not false and false", "false");
}

#[test]
fn f11_units_convert_and_combine() {
    check("90 km/h to m/s", "25 m / s");
    check("20 degC to degF", "68 degF");
    check("32 degF to degC", "0 degC");
    check("3 cm + 2 inch", "8.08 cm");
    check("2 inch * 4 inch", "8 inch^2");
    check("5 N * 2 m", "10 J");
    check("100 km / (2 hours)", "50 km / hours");
    check("1 GB to MB", "1000 MB");
    check("sin(90 deg)", "1");
    check("10 in", "10 in");
    check("4 in to cm", "10.16 cm");
}

#[test]
fn f11_matrices_are_indexed_from_one() {
    check("[1, 2, 3; 4, 5, 6][2, 3]", "6");
    check("[1, 2, 3; 4, 5, 6][:, 2]", "[2, 5]");
    check("[1, 2, 3][end]", "3");
    check("a = [1, 2]; a[3] = 9; a", "[[1, 2, 9]]");
    check("inv([1, 2; 3, 4])", "[[-2, 1], [1.5, -0.5]]");
    check("map([1, 2, 3], f(x) = x^2)", "[1, 4, 9]");
    check("\"hello\"[2:4]", "\"ell\"");
    check("{a: {b: 7}}.a.b", "7");
}

#[test]
fn f11_big_numbers_and_fractions_are_exact() {
    check("fraction(1, 3) + fraction(1, 6)", "1/2");
    check(
        "bignumber(\"0.1\") + bignumber(\"0.2\") == bignumber(\"0.3\")",
        "true",
    );
    check(
        "format(sqrt(bignumber(2)), 40)",
        "\"1.41421356237309504880168872420969807857\"",
    );
    check(
        "format(exp(bignumber(1)), 40)",
        "\"2.718281828459045235360287471352662497757\"",
    );
    check("bigint(2) ^ bigint(100)", "1267650600228229401496703205376");
}

#[test]
fn f11_errors_name_the_symbol_the_place_and_the_units() {
    check_error("2 + x", ErrorKind::UndefinedSymbol, "Undefined symbol x");
    check_error(
        "foo(2)",
        ErrorKind::UndefinedFunction,
        "Undefined function foo",
    );
    check_error(
        "ln(2)",
        ErrorKind::UndefinedFunction,
        "Undefined function ln; log(x) is the natural logarithm",
    );
    check_error(
        "2 + ",
        ErrorKind::Syntax { char: 5 },
        "Unexpected end of expression (char 5)",
    );
    check_error(
        "2 + * 3",
        ErrorKind::Syntax { char: 5 },
        "Value expected (char 5)",
    );
    check_error(
        "(1 + 2",
        ErrorKind::Syntax { char: 7 },
        "Parenthesis ) expected (char 7)",
    );
    check_error(
        "3 kg + 2 m",
        ErrorKind::Units,
        "Units do not match ('3 kg' and '2 m')",
    );
    check_error(
        "2 kg to m",
        ErrorKind::Units,
        "Units do not match ('m' != '2 kg')",
    );
    check_error(
        "[1, 2][5]",
        ErrorKind::Dimensions,
        "Index out of range (5 > 2)",
    );
    check_error(
        "sqrt(1, 2)",
        ErrorKind::Arguments,
        "Too many arguments in function sqrt (expected: 1, actual: 2)",
    );
    check_error(
        "\"a\" + 1",
        ErrorKind::Value,
        "Cannot convert \"a\" to a number",
    );
    check_error(
        "derivative(\"x^2\", \"x\")",
        ErrorKind::Unsupported,
        "Function derivative is left out here: symbolic algebra is not supported, only numbers are computed",
    );
}

#[test]
fn f11_a_session_keeps_variables_functions_and_units() {
    let mut session = Session::new();
    let mut check = |expression: &str, expected: &str| {
        assert_eq!(
            session
                .evaluate(expression)
                .map(|answer| answer.to_string())
                .as_deref(),
            Ok(expected),
            "{expression}"
        );
    };
    check("width = 3 m", "3 m");
    check("area(w, h) = w * h", "area(w, h)");
    check("area(width, 2 m)", "6 m^2");
    check("createUnit(\"furlong\", \"220 yards\")", "furlong");
    check("1 mile to furlong", "8 furlong");
    check("x = 1; y = x + 1\ny * 10", "[2, 20]");
    check("fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)", "fib(n)");
    check("fib(15)", "610");
}

#[test]
fn f11_sessions_and_answers_can_move_between_threads() {
    fn moves<T: Send + Sync + 'static>(value: T) -> T {
        value
    }
    let answer = moves(moves(Session::new()).evaluate("[1, 2 m, f(x) = x]"));
    assert!(answer.is_ok());
}

#[test]
fn f11_random_numbers_stay_in_their_range() {
    let mut session = Session::new().seeded(7);
    let mut holds = |expression: &str| {
        assert_eq!(
            session.evaluate(expression).expect(expression).to_json(),
            json!(true),
            "{expression}"
        );
    };
    holds("std(random([500])) > 0.2");
    for expression in [
        "min(random([200], 10, 20)) >= 10",
        "max(random([200], 10, 20)) < 20",
        "max(randomInt([200], 1, 7)) <= 6",
        "min(randomInt([200], 1, 7)) >= 1",
        "setIsSubset(setDistinct(pickRandom([1, 3, 6], 50)), [1, 3, 6])",
        "size(pickRandom([1, 3, 6], 5))[1] == 5",
    ] {
        holds(expression);
    }
}
