//! Input that means harm: it gets a clear error, within its budget, and the next expression is answered as ever.

use proptest::prelude::*;
use steadyhand_math::{ErrorKind, Limits, Session, evaluate};

/// A small budget keeps thousands of cases quick; what holds for it holds for a larger one.
fn frugal() -> Session {
    Session::with_limits(Limits {
        steps: 20_000,
        matrix_cells: 2_000,
        string_bytes: 20_000,
        big_digits: 500,
        ..Limits::default()
    })
}

fn check_survives(expression: &str) {
    let mut session = frugal();
    if let Ok(answer) = session.evaluate(expression) {
        assert!(
            answer.to_string().len() <= 21_000,
            "{expression:?} wrote more than it may"
        );
        let _ = answer.to_json();
    }
    assert_eq!(
        session
            .evaluate("1 + 1")
            .expect("a session goes on")
            .to_json(),
        2,
        "after {expression:?}"
    );
}

fn check_refused(expression: &str, because: &str) {
    let error = evaluate(expression)
        .map(|answer| answer.to_string())
        .expect_err(expression);
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(
        error.to_string().contains(because),
        "{expression:.80}: {error}"
    );
}

#[test]
fn f11_what_would_take_too_much_is_refused_and_says_why() {
    check_refused(
        "zeros(1e9)",
        "Matrix too large: 1000000000 cells, at most 100000 are allowed",
    );
    check_refused("1:1e300", "Matrix too large");
    check_refused("a = []; a[100000, 100000] = 1", "Matrix too large");
    check_refused("setPowerset(1:60)", "Matrix too large");
    // A matrix without cells has rows all the same, and each of them is written.
    for empty in [
        "zeros(1e15, 0)",
        "ones(1e15, false)",
        "size(zeros([1e15, 0]))",
        "zeros(100000, 100000, 0)",
        "resize([], [1e12, 0])",
        "reshape([], [1e12, 0])",
        "transpose(zeros(0, 1e12))",
        "column(zeros(1e9, 0), 1)",
        "row(zeros(0, 1e12), 1)",
        "matrixFromFunction([1e9, 0], f(i) = 1)",
        "zeros(1000, 1, 0) + zeros(1, 1000, 0)",
        "map([1], f(x) = zeros(1e15, 0))",
    ] {
        check_refused(empty, "Matrix too large");
    }
    check_refused(
        "bignumber(1000000)!",
        "Expression too expensive: it needs more than 1000000 steps",
    );
    check_refused(
        "map(1:100000, f(x) = map(1:100000, g(y) = x * y))",
        "too expensive",
    );
    check_refused("zeros(300, 300) * zeros(300, 300)", "too expensive");
    check_refused("det(ones(200, 200))", "too expensive");
    check_refused(
        "bigint(9) ^ bigint(9) ^ bigint(9)",
        "Number too large: about",
    );
    check_refused("fraction(1, 3) ^ 1000000", "Number too large");
    check_refused("leftShift(bigint(1), bigint(1000000000))", "Shift too far");
    check_refused(
        "resize(\"a\", [1000000000], \"b\")",
        "Text too long: 1000000000 bytes",
    );
    check_refused(
        "format(bignumber(\"1e900000000\"), {notation: \"fixed\"})",
        "too large to be written out",
    );
    check_refused("f(x) = f(x + 1); f(1)", "nested too deeply");
    check_refused(
        "config({precision: 1e9})",
        "precision must be between 1 and 1000",
    );
}

#[test]
fn f11_a_matrix_without_cells_does_no_harm() {
    for expression in [
        "resize([1], [1, 0, 0, 2])",
        "a = [1]; a[[], 2] = 3",
        "det([[]])",
        "inv([[]])",
        "sum([[]])",
        "transpose([[]])",
    ] {
        check_survives(expression);
    }
}

#[test]
fn f11_costly_numbers_are_paid_for_one_by_one() {
    for expression in [
        "map(1:2000, f(x) = bin(1e-300 / x))",
        "map(1:2000, f(x) = hex(bignumber(\"1e-399\")))",
        "map(1:2000, f(x) = log(fraction(99999999977, 99999999947), fraction(99999999943, 99999999907)))",
        "map(1:2000, f(x) = log(bignumber(1) + bignumber(\"1e-60\")))",
        "map(1:2000, f(x) = log(bignumber(\"1.0000000000000000000000000000000000000000000000000000000000000000000000000000000001\")))",
        "map(1:2000, f(x) = expm1(bignumber(\"1e-900000\")))",
        "map(1:2000, f(x) = sin(bignumber(\"1e-70\")))",
        "map(1:2000, f(x) = atan2(bignumber(x), 3))",
        "map(1:2000, f(x) = stirlingS2(bignumber(400), 200))",
        "map(1:2000, f(x) = fraction(2^60, 3)^fraction(1, 997))",
        "map(1:2000, f(x) = eigs([[x, 2, 3], [4, 5, 6], [7, 8, 10]]).values[1])",
        "eigs(random([40, 40]))",
        "eigs([[1e300, 1e-300, 1e-300], [1e300, 1, 1], [1, 1e-300, 1e300]])",
        "eigs([[0, 1e308, 1e308], [1e-320, 0, 1], [1, 1e-308, 0]])",
        "lsolveAll(zeros(40, 40), zeros(40))",
        "a = concat(\"9\", \"9\"); b(x) = concat(x, x); bigint(1) + b(b(b(b(b(b(b(b(b(b(a))))))))))",
        "mode(map(1:2000, f(x) = bignumber(1) / x))",
        "leftShift(bigint(1), bigint(\"99999999999999999999\"))",
        "rightArithShift(bigint(1), bigint(\"-99999999999999999999\"))",
        "permutations(1e300, 1e299)",
        "combinations(bignumber(\"1e300\"), bignumber(\"5e299\"))",
        "print(\"$1.1.1.1.1.1\", [[[[[1]]]]])",
        "median(1:2000)",
        "zeta(2 + 299i)",
        "range(bigint(0), bigint(\"99999999999999999999\"))",
        "range(fraction(0), fraction(1), fraction(1, 100000000))",
    ] {
        check_survives(expression);
        // Within the default limits too, which are wider.
        let _ = evaluate(expression).map(|answer| answer.to_json());
    }
}

#[test]
fn f11_numbers_that_overflow_are_infinite_as_in_mathjs() {
    assert_eq!(evaluate("9^9^9^9").expect("a number").to_json(), "Infinity");
    assert_eq!(
        evaluate("1000000!").expect("a number").to_json(),
        "Infinity"
    );
    assert_eq!(evaluate("-1/0").expect("a number").to_json(), "-Infinity");
    assert_eq!(evaluate("0/0").expect("a number").to_json(), "NaN");
}

#[test]
fn f11_nesting_of_every_kind_stops_before_the_stack_does() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{a: ", "}"),
        ("sqrt(", ")"),
        ("-", ""),
        ("not ", ""),
        ("2^", ""),
        ("1 ? 1 : ", ""),
        ("1 ? ", ""),
        ("x = ", ""),
        ("f(x) = ", ""),
        ("1 % (", ")"),
        ("[1, 2][", "]"),
        ("\"a\" ", ""),
    ] {
        for depth in [10, 100, 127, 128, 129, 1000, 3000] {
            check_survives(&format!("{}1{}", open.repeat(depth), close.repeat(depth)));
        }
    }
    check_refused(&"(".repeat(5_000), "nested too deeply: at most 128 levels");
    check_refused(
        &"(".repeat(100_000),
        "Expression too long: 100000 bytes, at most 16384",
    );
}

#[test]
fn f11_long_chains_need_no_deep_stack() {
    assert_eq!(
        evaluate(&format!("{}1", "1 + ".repeat(1_900)))
            .expect("a sum")
            .to_json(),
        1_901
    );
    for link in [
        "1 + ", "2 ", "a.b", "1!", "x[1]", "1 < ", "1 and ", "1 ?? ", "1 to ", "1 : ", "'", ";",
        "\n", "1, ", "a = 1; ",
    ] {
        for count in [100, 1_999, 2_001, 4_000] {
            check_survives(&link.repeat(count));
            check_survives(&format!("parse(\"{}1\")", link.repeat(count)));
            check_survives(&format!("leafCount(\"{}1\")", link.repeat(count)));
            check_survives(&format!("filter([1], {}1)", link.repeat(count)));
            check_survives(&format!(
                "resolve(parse(\"{}x\"), {{x: parse(\"{}x\")}})",
                link.repeat(count / 3),
                link.repeat(count / 3)
            ));
        }
    }
}

#[test]
fn f11_values_that_contain_themselves_again_and_again_stay_finite() {
    let mut session = Session::new();
    session.evaluate("o = {a: 1}").expect("an object");
    let nested = (0..200).find_map(|_| session.evaluate("o = {a: o, b: o}").err());
    assert_eq!(nested.map(|error| error.kind()), Some(ErrorKind::Limit));
    for step in [
        "f(x) = x; g = f",
        "w(h) = (k(x) = h(x) + 1); g = w(g)",
        "r = evaluate(\"1; 2\"); r = [r, r]",
    ] {
        for _ in 0..200 {
            let _ = session.evaluate(step);
        }
    }
    assert_eq!(session.evaluate("2 * 3").expect("it goes on").to_json(), 6);
}

/// Words of the language in any order make expressions that look right longer than noise does.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "1",
        "0",
        "2.5",
        "1e308",
        "-1",
        "0x1f",
        "pi",
        "i",
        "x",
        "end",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ":",
        "?",
        "\n",
        " ",
        "+",
        "-",
        "*",
        "/",
        "^",
        ".^",
        ".*",
        "./",
        "%",
        "!",
        "'",
        "\"",
        "=",
        "==",
        "<",
        ">",
        "&",
        "|",
        "^|",
        "~",
        "<<",
        ">>>",
        "??",
        "?.",
        ".",
        "mod",
        "to",
        "in",
        "and",
        "or",
        "not",
        "xor",
        "kg",
        "m",
        "degC",
        "f(x) = ",
        "f(",
        "a = ",
        "a[1] = ",
        "a.b = ",
        "\"text\"",
        "true",
        "null",
        "NaN",
        "Infinity",
        "sqrt(",
        "map(",
        "filter(",
        "zeros(",
        "ones(",
        "range(",
        "bignumber(",
        "fraction(",
        "bigint(",
        "format(",
        "resize(",
        "reshape(",
        "concat(",
        "det(",
        "inv(",
        "eigs(",
        "expm(",
        "sum(",
        "std(",
        "sort(",
        "factorial(",
        "combinations(",
        "gamma(",
        "unit(",
        "createUnit(",
        "evaluate(",
        "parse(",
        "compile(",
        "setPowerset(",
        "kron(",
        "diag(",
        "subset(",
        "index(",
        "quantileSeq(",
        "round(",
        "nthRoot(",
        "fft(",
        "solveODE(",
        "polynomialRoot(",
        "lusolve(",
        "qr(",
        "lup(",
        "schur(",
        "pinv(",
        "norm(",
        "distance(",
        "intersect(",
        "print(",
        "toBest(",
        "splitUnit(",
        "freqz(",
        "zpk2tf(",
        "isPrime(",
        "xgcd(",
        "bellNumbers(",
        "stirlingS2(",
        "bernoulli(",
        "random(",
        "pickRandom(",
        "partitionSelect(",
        "mapSlices(",
        "diff(",
        "cumsum(",
        "mode(",
        "rotate(",
        "hex(",
        "typed(",
        "config(",
        "simplify(",
        "{n: 1, d: 0}",
        "[1, 2; 3, 4]",
        "1:3",
    ]);
    prop::collection::vec(word, 1..24).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f11_words_of_the_language_in_any_order_do_no_harm(expression in words()) {
        check_survives(&expression);
    }

    #[test]
    fn f11_any_text_at_all_does_no_harm(expression in "\\PC{0,60}") {
        check_survives(&expression);
    }

    #[test]
    fn f11_functions_take_any_two_values(
        name in prop::sample::select(NAMES.to_vec()),
        a in prop::sample::select(VALUES.to_vec()),
        b in prop::sample::select(VALUES.to_vec()),
        c in prop::sample::select(VALUES.to_vec()),
        count in 0..4usize,
    ) {
        let arguments = [a, b, c][..count.min(3)].join(", ");
        check_survives(&format!("{name}({arguments})"));
    }
}

/// Values at the edges of their kinds.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2.5",
    "1e308",
    "-1e-308",
    "NaN",
    "Infinity",
    "-Infinity",
    "9007199254740993",
    "i",
    "2 - 3i",
    "complex(NaN, Infinity)",
    "true",
    "null",
    "undefined",
    "\"\"",
    "\"text\"",
    "\"1e400\"",
    "bignumber(0)",
    "bignumber(\"1e9000000000000000\")",
    "bignumber(\"-1e-400\")",
    "bignumber(NaN)",
    "fraction(1, 3)",
    "fraction(-7)",
    "bigint(0)",
    "bigint(-5)",
    "bigint(10)^bigint(400)",
    "5 kg",
    "cm",
    "-40 degC",
    "bignumber(2) m",
    "[]",
    "[[]]",
    "[1]",
    "[1, 2, 3]",
    "[1, 2; 3, 4]",
    "[0, 0; 0, 0]",
    "[1, i; NaN, 0]",
    "zeros(2, 3, 4)",
    "sparse([1, 0; 0, 2])",
    "[\"a\", \"b\"]",
    "[true, false]",
    "1:9",
    "{}",
    "{a: 1, re: 2, im: 3, n: 1, d: 0}",
    "sin",
    "f(x) = x",
    "f(x, y) = x - y",
    "parse(\"x + 1\")",
    "[fraction(1, 2), bignumber(3)]",
    "[5 cm, 2 m]",
    "index(1, 2)",
    "\"asc\"",
    "\"sparse\"",
    "[-1]",
    "[1e9]",
    "size([1, 2])",
];

const NAMES: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "acot",
    "acoth",
    "acsc",
    "acsch",
    "add",
    "and",
    "arg",
    "asec",
    "asech",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bellNumbers",
    "bernoulli",
    "bigint",
    "bignumber",
    "bin",
    "bitAnd",
    "bitNot",
    "bitOr",
    "bitXor",
    "boolean",
    "catalan",
    "cbrt",
    "ceil",
    "clone",
    "column",
    "combinations",
    "combinationsWithRep",
    "compare",
    "compareNatural",
    "compareText",
    "compile",
    "complex",
    "composition",
    "concat",
    "config",
    "conj",
    "corr",
    "cos",
    "cosh",
    "cot",
    "coth",
    "count",
    "createUnit",
    "cross",
    "csc",
    "csch",
    "ctranspose",
    "cube",
    "cumsum",
    "deepEqual",
    "den",
    "derivative",
    "det",
    "diag",
    "diff",
    "distance",
    "divide",
    "dot",
    "dotDivide",
    "dotMultiply",
    "dotPow",
    "eigs",
    "equal",
    "equalText",
    "erf",
    "evaluate",
    "exp",
    "expm",
    "expm1",
    "factorial",
    "fft",
    "filter",
    "fix",
    "flatten",
    "floor",
    "forEach",
    "format",
    "fraction",
    "freqz",
    "gamma",
    "gcd",
    "getMatrixDataType",
    "hasNumericValue",
    "help",
    "hex",
    "hypot",
    "identity",
    "ifft",
    "im",
    "index",
    "intersect",
    "inv",
    "invmod",
    "isBounded",
    "isFinite",
    "isInteger",
    "isNaN",
    "isNegative",
    "isNumeric",
    "isPositive",
    "isPrime",
    "isZero",
    "kldivergence",
    "kron",
    "larger",
    "largerEq",
    "lcm",
    "leafCount",
    "leftShift",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "lsolve",
    "lsolveAll",
    "lup",
    "lusolve",
    "lyap",
    "mad",
    "map",
    "mapSlices",
    "matrix",
    "matrixFromColumns",
    "matrixFromFunction",
    "matrixFromRows",
    "max",
    "mean",
    "median",
    "min",
    "mod",
    "mode",
    "multinomial",
    "multiply",
    "norm",
    "not",
    "nthRoot",
    "nthRoots",
    "nullish",
    "num",
    "number",
    "numeric",
    "oct",
    "ones",
    "or",
    "parse",
    "parser",
    "partitionSelect",
    "permutations",
    "pickRandom",
    "pinv",
    "polynomialRoot",
    "pow",
    "print",
    "prod",
    "qr",
    "quantileSeq",
    "random",
    "randomInt",
    "range",
    "rationalize",
    "re",
    "reshape",
    "resize",
    "resolve",
    "rightArithShift",
    "rightLogShift",
    "rotate",
    "rotationMatrix",
    "round",
    "row",
    "schur",
    "sec",
    "sech",
    "setCartesian",
    "setDifference",
    "setDistinct",
    "setIntersect",
    "setIsSubset",
    "setMultiplicity",
    "setPowerset",
    "setSize",
    "setSymDifference",
    "setUnion",
    "sign",
    "simplify",
    "sin",
    "sinh",
    "size",
    "slu",
    "smaller",
    "smallerEq",
    "solveODE",
    "sort",
    "sparse",
    "splitUnit",
    "sqrt",
    "sqrtm",
    "square",
    "squeeze",
    "std",
    "stirlingS2",
    "string",
    "subset",
    "subtract",
    "sum",
    "sylvester",
    "tan",
    "tanh",
    "to",
    "toBest",
    "toSI",
    "trace",
    "transpose",
    "typeOf",
    "typed",
    "unaryMinus",
    "unaryPlus",
    "unequal",
    "unit",
    "usolve",
    "usolveAll",
    "variance",
    "xgcd",
    "xor",
    "zeros",
    "zeta",
    "zpk2tf",
];
