//! Which kinds of arguments each function takes, as mathjs declares them, and what is converted silently on the way in.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use crate::error::{MathError, Result};
use crate::value::matrix::MatrixKind;
use crate::value::{ObjectKind, Value};

/// The kinds of arguments, one letter each: n number, c complex, b big number, i big integer, f fraction, u unit, s text,
/// t boolean, 0 null, _ undefined, a array, m any matrix, d dense, p sparse, o object, F function, N node, x index, * anything.
/// Parameters are separated by spaces, signatures by `|`; `+` repeats a parameter.
const TABLE: &[(&str, &str)] = &[
    ("abs isNaN isZero sign unaryMinus", "ncbifuam"),
    (
        "acos acosh acot acoth acsc acsch asec asech asin asinh atan atanh cosh coth csch exp expm1 gamma lgamma sech sinh tanh zeta",
        "ncb",
    ),
    (
        "add subtract",
        "n n | c c | b b | i i | f f | u u | * adp | adp * | * * *+",
    ),
    (
        "addScalar subtractScalar",
        "n n | c c | b b | i i | f f | u u",
    ),
    ("apply mapSlices", "am nb F"),
    ("arg", "ncbam"),
    ("atan2", "nadp nadp | badp b | b adp"),
    ("bellNumbers catalan", "nb"),
    ("bernoulli", "nbif"),
    ("bigint", " | nbifst0am"),
    ("bignumber", " | nbifus0am"),
    ("bin hex oct", "nb | nb nb"),
    ("bitAnd bitOr bitXor", "n n | b b | i i | * adp | adp *"),
    ("bitNot isPrime", "nbiam"),
    ("boolean", " | nbst0am"),
    ("cbrt", "ncbu | c t"),
    (
        "ceil floor",
        "ncbifam | ncifadp n | cbifadp b | uam nb u | uam u | ncbf am",
    ),
    ("column row", "am n"),
    ("combinations combinationsWithRep invmod xgcd", "n n | b b"),
    (
        "compare largerEq smallerEq",
        "n n | t t | b b | i i | f f | c c | u u | * adp | adp *",
    ),
    ("complex", " | ncfs0amo | n n | b b"),
    ("composition stirlingS2", "nb nb"),
    ("concat", "nbsam+"),
    ("conj", "ncbfuam"),
    ("corr", "a a | m m"),
    ("cos cot csc sec sin sqrt tan", "ncbu"),
    ("count", "sam"),
    (
        "cross kldivergence kron lyap setCartesian setDifference setIntersect setIsSubset setSymDifference setUnion",
        "am am",
    ),
    ("cube square", "ncbifu"),
    ("cumsum max mean median min prod sum", "am | am nb | *+"),
    ("den num", "bfam"),
    ("det inv trace", "*"),
    ("diag", "am | am nbs | am nb s"),
    ("diff", "am | am nb"),
    ("distance", "a a a | o o o | a a | o o | a"),
    (
        "divide",
        "a * | * am | dp * | nu nu | cu c | bu b | i i | fu f | cbf u",
    ),
    ("divideScalar", "nu nu | cu c | bu b | i i | fu f | cbf u"),
    ("dot", "ad ad | p p"),
    (
        "dotDivide",
        "* adp | adp * | nu nu | cu c | bu b | i i | fu f | cbf u",
    ),
    (
        "dotMultiply",
        "* adp | adp * | n nu | c cu | b bu | i i | f fu | u ncbfu",
    ),
    ("dotPow", "* adp | adp * | nu n | c c | bu b | i i | f f"),
    ("eigs", "am | am nbo"),
    ("equal", "* * | t t | n n | b b | i i | f f | c c | u u"),
    ("equalScalar", "t t | n n | b b | i i | f f | c c | u u"),
    ("erf", "nam"),
    ("expm", "m"),
    ("factorial", "nbam"),
    (
        "fft getMatrixDataType ifft multinomial schur setDistinct setPowerset sqrtm",
        "am",
    ),
    (
        "fix",
        "ncbifam | ncb nbam | ifam nb | uam nb u | uam u | f am",
    ),
    ("flatten lup qr", "adp"),
    ("fraction", "nbifus0amo | n n | i i"),
    ("freqz", "a a | a a na | m m | m m nm"),
    (
        "gcd",
        "n n | b b | f f | * adp | adp * | nbfam nbfam nbfam+ | am",
    ),
    ("hypot", "nb+ | am"),
    ("identity", " | nbsam | nbam s | nb nb | nb nb s"),
    ("im re", "ncbfam"),
    ("intersect", "a a a | a a a a | m m m | m m m m"),
    ("isBounded", "ncbifu0_am"),
    ("isInteger", "nbifam"),
    ("isNegative isPositive", "nbifuam"),
    ("isNumeric", "ncbifust0_amN"),
    (
        "larger smaller",
        "n n | t t | bf bf | i i | c c | u u | * adp | adp *",
    ),
    (
        "lcm",
        "n n | b b | f f | * adp | adp * | nbfam nbfam nbfam+",
    ),
    (
        "leftShift rightArithShift",
        "nadp n | badp b | i i | nbadp adp",
    ),
    ("log", "ncbi | * *"),
    ("log10 log2", "ncbiam"),
    ("log1p", "ncbam | * *"),
    ("lsolve lsolveAll usolve usolveAll", "adp am"),
    ("lusolve", "adpo am | p am n n"),
    ("mad mode", "am | *+"),
    ("matrix", " | sam | sam s | am s s"),
    ("matrixFromColumns matrixFromRows", "am+"),
    (
        "matrixFromFunction",
        "am F s s | am F s | am F | am s F | am s s F",
    ),
    ("mod", "n n | b b | i i | f f | * adp | adp *"),
    (
        "multiply",
        "n nu | c cu | b bu | i i | f fu | u ncbfu | * a | am m | * * | * dp | * * *+",
    ),
    (
        "multiplyScalar",
        "n nu | c cu | b bu | i i | f fu | u ncbfu",
    ),
    ("norm", "ncbtam | am nbs"),
    ("not", "ncbiu0_am"),
    ("nthRoot", "ncbadp | ncadp n | b badp | nadp adp | adp b"),
    ("nthRoots", "c | c n"),
    ("number", " | nbifus0am | u us"),
    ("ones zeros", " | nbs+ | am | am s"),
    ("permutations", "nb | n n | b b"),
    ("polynomialRoot", "nc nc+"),
    ("pow", "nuam n | c c | buam b | i i | f f"),
    ("quantileSeq", "am nbam | am nbam nt | am nbam t n"),
    ("reshape", "am a"),
    ("rightLogShift", "nadp n | adp b | nbadp adp"),
    ("rotate", "am ncbu | am ncbu am"),
    ("rotationMatrix", " | ncbus | ncbu sam | ncbu am s"),
    (
        "round",
        "ncbifam | nc nbadp | bifadp b | ifadp n | uam nb u | uam u | bf adp",
    ),
    ("setMultiplicity", "ncbf am"),
    ("setSize", "am | am t"),
    ("size", "ncbust0am"),
    ("solveODE", "F a nbua o | F m nbum o | F a nbua | F m nbum"),
    ("sort", "am | am sF"),
    ("sparse", " | sam | am s"),
    ("splitUnit", "u a"),
    ("std variance", "am | am nbs | am nb s | *+"),
    ("sylvester", "am am am"),
    ("to", "u us | * ad | ad *"),
    ("toBest", "u | u sa | u sa o"),
    ("unaryPlus", "ncbifustam"),
    ("unit", "nbfusam | ncbf us"),
    ("and or xor", "n n | c c | i i | b b | u u | * adp | adp *"),
    ("zpk2tf", "a a n | a a | m m n | m m"),
];

/// One bit per kind of argument.
type Kinds = u32;

const LETTERS: &[u8] = b"ncbifust0_adpoFNx";
const ANY: Kinds = u32::MAX;
const MATRICES: Kinds = bit(b'a') | bit(b'd') | bit(b'p');

const fn bit(letter: u8) -> Kinds {
    let mut at = 0;
    while at < LETTERS.len() {
        if LETTERS[at] == letter {
            return 1 << at;
        }
        at += 1;
    }
    0
}

/// The silent conversions, the preferred ones first.
const CONVERSIONS: &[(u8, u8)] = &[
    (b'n', b'b'),
    (b'n', b'c'),
    (b'b', b'c'),
    (b'i', b'n'),
    (b'i', b'b'),
    (b'i', b'f'),
    (b'f', b'b'),
    (b'f', b'c'),
    (b'n', b'f'),
    (b's', b'n'),
    (b's', b'b'),
    (b's', b'i'),
    (b's', b'f'),
    (b's', b'c'),
    (b't', b'n'),
    (b't', b'b'),
    (b't', b'i'),
    (b't', b'f'),
    (b't', b's'),
];

/// What each two of the seven kinds of scalars become together.
type PairTable = [[Option<(u8, u8)>; 7]; 7];

#[derive(Debug)]
struct Parameter {
    kinds: Kinds,
    repeats: bool,
}

/// Everything one function can be called with.
#[derive(Debug)]
struct Signatures {
    alternatives: Vec<Vec<Parameter>>,
    /// The kinds two scalars are brought to, by the kinds they have.
    pairs: OnceLock<PairTable>,
}

static SIGNATURES: LazyLock<HashMap<&'static str, Signatures, foldhash::fast::RandomState>> =
    LazyLock::new(|| {
        let mut all = HashMap::default();
        for (names, text) in TABLE {
            for name in names.split(' ') {
                all.insert(name, Signatures::read(text));
            }
        }
        all
    });

impl Signatures {
    fn read(text: &str) -> Self {
        let parameter = |word: &str| {
            let letters = word.trim_end_matches('+');
            let kinds = letters.bytes().fold(0, |kinds, letter| {
                kinds
                    | match letter {
                        b'*' => ANY,
                        b'm' => MATRICES,
                        letter => bit(letter),
                    }
            });
            Parameter {
                // An array stands in for a matrix, and a matrix for an array.
                kinds: if letters.contains(['a', 'm']) {
                    kinds | MATRICES
                } else {
                    kinds
                },
                repeats: word.ends_with('+'),
            }
        };
        let alternatives = text
            .split('|')
            .map(|signature| signature.split_whitespace().map(parameter).collect())
            .collect();
        Self {
            alternatives,
            pairs: OnceLock::new(),
        }
    }
}

impl Signatures {
    /// Whether some signature takes two scalars.
    fn takes_pairs(&self) -> bool {
        let scalars = SCALARS.iter().fold(0, |kinds, letter| kinds | bit(*letter));
        self.alternatives.iter().any(|signature| {
            signature.len() == 2
                && signature
                    .iter()
                    .all(|one| one.kinds != ANY && one.kinds & scalars != 0)
        })
    }
}

fn letter_of(value: &Value) -> u8 {
    match value {
        Value::Num(_) => b'n',
        Value::Complex(_) => b'c',
        Value::Big(_) => b'b',
        Value::Int(_) => b'i',
        Value::Frac(_) => b'f',
        Value::Unit(_) => b'u',
        Value::Text(_) => b's',
        Value::Bool(_) => b't',
        Value::Null => b'0',
        Value::Undefined => b'_',
        Value::Matrix(matrix) => match matrix.kind {
            MatrixKind::Array => b'a',
            MatrixKind::Dense => b'd',
            MatrixKind::Sparse => b'p',
        },
        Value::Object(object) if object.kind == ObjectKind::Index => b'x',
        Value::Object(_) => b'o',
        Value::Function(_) => b'F',
        Value::Node(_) => b'N',
        Value::Results(_) => b'?',
    }
}

/// The kinds a value of this kind can stand for, itself included.
fn reachable(letter: u8) -> Kinds {
    CONVERSIONS
        .iter()
        .filter(|(from, _)| *from == letter)
        .fold(bit(letter), |kinds, (_, to)| kinds | bit(*to))
}

/// How far down the list of conversions this one stands; an exact match comes before all.
fn rank(from: u8, to: u8) -> usize {
    if from == to {
        return 0;
    }
    1 + CONVERSIONS
        .iter()
        .position(|conversion| *conversion == (from, to))
        .unwrap_or(CONVERSIONS.len())
}

/// Refuses arguments of the wrong kind or number before a function sees them.
pub(crate) fn check(function: &str, arguments: &[Value]) -> Result<()> {
    let Some(signatures) = SIGNATURES.get(function) else {
        return Ok(());
    };
    let letters: Vec<u8> = arguments.iter().map(letter_of).collect();
    // The longest prefix of the arguments that some signature takes, and what would be taken after it.
    let (mut furthest, mut expected, mut too_many) = (0, 0, false);
    for signature in &signatures.alternatives {
        let mut taken = 0;
        for letter in &letters {
            let Some(parameter) = parameter_at(signature, taken) else {
                break;
            };
            if parameter.kinds != ANY && reachable(*letter) & parameter.kinds == 0 {
                break;
            }
            taken += 1;
        }
        let least = signature.iter().filter(|one| !one.repeats).count()
            + usize::from(signature.last().is_some_and(|last| last.repeats));
        if taken == letters.len() && taken >= least {
            return Ok(());
        }
        let next = parameter_at(signature, taken);
        if taken > furthest {
            (furthest, expected, too_many) = (taken, 0, false);
        }
        if taken == furthest {
            expected |= next.map_or(0, |parameter| parameter.kinds);
            too_many |= next.is_none() && taken < letters.len();
        }
    }
    Err(mismatch(
        function, arguments, signatures, furthest, expected, too_many,
    ))
}

fn parameter_at(signature: &[Parameter], at: usize) -> Option<&Parameter> {
    signature
        .get(at)
        .or_else(|| signature.last().filter(|last| last.repeats))
}

fn mismatch(
    function: &str,
    arguments: &[Value],
    signatures: &Signatures,
    at: usize,
    expected: Kinds,
    too_many: bool,
) -> MathError {
    let takes_one = signatures
        .alternatives
        .iter()
        .any(|signature| signature.len() == 1);
    if let ([Value::Matrix(_)], true) = (arguments, takes_one) {
        return MathError::arguments(format!(
            "Function '{function}' doesn't apply to matrices. To call it elementwise on a matrix 'M', try 'map(M, {function})'."
        ));
    }
    let names = names_of(expected);
    match arguments.get(at) {
        None => MathError::arguments(format!(
            "Too few arguments in function {function} (expected: {names}, index: {at})"
        )),
        Some(_) if too_many && expected == 0 => MathError::arguments(format!(
            "Too many arguments in function {function} (expected: {at}, actual: {})",
            arguments.len()
        )),
        Some(value) => MathError::arguments(format!(
            "Unexpected type of argument in function {function} (expected: {names}, actual: {}, index: {at})",
            value.type_name()
        )),
    }
}

fn names_of(kinds: Kinds) -> String {
    const NAMES: [&str; 17] = [
        "number",
        "Complex",
        "BigNumber",
        "bigint",
        "Fraction",
        "Unit",
        "string",
        "boolean",
        "null",
        "undefined",
        "Array",
        "DenseMatrix",
        "SparseMatrix",
        "Object",
        "function",
        "Node",
        "Index",
    ];
    if kinds == ANY {
        return "any".into();
    }
    let names: Vec<&str> = (0..NAMES.len())
        .filter(|at| kinds & (1 << at) != 0)
        .map(|at| NAMES[at])
        .collect();
    names.join(" or ")
}

/// The kinds of scalars; each stands for itself in a pair.
const SCALARS: &[u8; 7] = b"ncbifst";

/// The kind of number a scalar becomes at this position of a function; `None` if it can become none.
pub(crate) fn scalar_target(function: &str, value: &Value, index: usize) -> Option<u8> {
    let letter = letter_of(value);
    let numbers = bit(b'n') | bit(b'c') | bit(b'b') | bit(b'i') | bit(b'f');
    let declared = SIGNATURES.get(function).map(|signatures| {
        signatures
            .alternatives
            .iter()
            .filter_map(|signature| parameter_at(signature, index))
            .filter(|parameter| parameter.kinds != ANY)
            .fold(0, |kinds, parameter| kinds | parameter.kinds)
    });
    let declared = match declared.unwrap_or(0) & numbers {
        0 => numbers,
        some => some,
    };
    SCALARS[..5]
        .iter()
        .copied()
        .filter(|target| declared & bit(*target) != 0 && reachable(letter) & bit(*target) != 0)
        .min_by_key(|target| rank(letter, *target))
}

/// The kinds two scalars become together; `None` if the function takes no such pair.
pub(crate) fn pair_targets(function: &str, a: &Value, b: &Value) -> Option<(u8, u8)> {
    let position = |value: &Value| {
        let letter = letter_of(value);
        SCALARS.iter().position(|scalar| *scalar == letter)
    };
    let (a, b) = (position(a)?, position(b)?);
    let signatures = SIGNATURES
        .get(function)
        .filter(|signatures| signatures.takes_pairs())
        .or_else(|| SIGNATURES.get("add"))?;
    signatures.pairs.get_or_init(|| {
        std::array::from_fn(|a| {
            std::array::from_fn(|b| best_pair(signatures, SCALARS[a], SCALARS[b]))
        })
    })[a][b]
}

fn best_pair(signatures: &Signatures, a: u8, b: u8) -> Option<(u8, u8)> {
    let mut best: Option<(u8, u8)> = None;
    for signature in &signatures.alternatives {
        let [first, second] = signature.as_slice() else {
            continue;
        };
        if first.kinds == ANY || second.kinds == ANY {
            continue;
        }
        for x in SCALARS {
            for y in SCALARS {
                let fits = first.kinds & reachable(a) & bit(*x) != 0
                    && second.kinds & reachable(b) & bit(*y) != 0;
                let pair = (*x, *y);
                if fits
                    && best.is_none_or(|best| compare_pairs((a, b), pair, best) == Ordering::Less)
                {
                    best = Some(pair);
                }
            }
        }
    }
    best
}

/// Fewer conversions are better; then those that stand earlier in the list, the first argument deciding last.
fn compare_pairs(from: (u8, u8), one: (u8, u8), other: (u8, u8)) -> Ordering {
    let ranks = |to: (u8, u8)| (rank(from.0, to.0), rank(from.1, to.1));
    let (one, other) = (ranks(one), ranks(other));
    let count = |ranks: (usize, usize)| usize::from(ranks.0 > 0) + usize::from(ranks.1 > 0);
    let weigh = |one: usize, other: usize| -> i64 {
        match (one, other) {
            (0, 0) => 0,
            (0, other) => -10 * other as i64,
            (one, 0) => 10 * one as i64,
            (one, other) => (one as i64 - other as i64).signum(),
        }
    };
    let (first, second) = (weigh(one.0, other.0), weigh(one.1, other.1));
    count(one)
        .cmp(&count(other))
        .then((first + second).cmp(&0))
        .then(first.cmp(&0))
}
