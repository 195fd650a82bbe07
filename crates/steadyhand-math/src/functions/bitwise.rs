//! Bit operators under their names.

use crate::ops::bits;
use crate::value::function::Builtin;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("bitAnd", 2..=2, |env, args| {
        bits::bit_and(env, &args[0], &args[1])
    }),
    Builtin::new("bitOr", 2..=2, |env, args| {
        bits::bit_or(env, &args[0], &args[1])
    }),
    Builtin::new("bitXor", 2..=2, |env, args| {
        bits::bit_xor(env, &args[0], &args[1])
    }),
    Builtin::new("bitNot", 1..=1, |env, args| bits::bit_not(env, &args[0])),
    Builtin::new("leftShift", 2..=2, |env, args| {
        bits::shift_left(env, &args[0], &args[1])
    }),
    Builtin::new("rightArithShift", 2..=2, |env, args| {
        bits::shift_right(env, &args[0], &args[1])
    }),
    Builtin::new("rightLogShift", 2..=2, |env, args| {
        bits::shift_right_logical(env, &args[0], &args[1])
    }),
];
