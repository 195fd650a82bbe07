//! The units that are known: names, prefixes they take, what they measure, how much of the base unit they are.

use super::prefix::PrefixSet::{
    self, BinaryLong, BinaryShort, Btu, Cubic, Long, None, Short, ShortLong, Squared,
};

/// One unit under all its names.
pub(super) struct Row {
    pub(super) names: &'static str,
    pub(super) prefixes: PrefixSet,
    /// A key of `BASES`.
    pub(super) base: &'static str,
    pub(super) value: f64,
    /// Where its zero lies, in its own degrees, for temperatures.
    pub(super) offset: f64,
}

const fn row(names: &'static str, prefixes: PrefixSet, base: &'static str, value: f64) -> Row {
    Row {
        names,
        prefixes,
        base,
        value,
        offset: 0.0,
    }
}

/// What can be measured: powers of mass, length, time, current, temperature, luminous intensity, amount, angle, bit.
/// A quantity is written in the first that fits.
pub(super) const BASES: &[(&str, [i8; 9])] = &[
    ("NONE", [0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ("LENGTH", [0, 1, 0, 0, 0, 0, 0, 0, 0]),
    ("MASS", [1, 0, 0, 0, 0, 0, 0, 0, 0]),
    ("TIME", [0, 0, 1, 0, 0, 0, 0, 0, 0]),
    ("CURRENT", [0, 0, 0, 1, 0, 0, 0, 0, 0]),
    ("TEMPERATURE", [0, 0, 0, 0, 1, 0, 0, 0, 0]),
    ("LUMINOUS_INTENSITY", [0, 0, 0, 0, 0, 1, 0, 0, 0]),
    ("AMOUNT_OF_SUBSTANCE", [0, 0, 0, 0, 0, 0, 1, 0, 0]),
    ("ANGLE", [0, 0, 0, 0, 0, 0, 0, 1, 0]),
    ("BIT", [0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ("FORCE", [1, 1, -2, 0, 0, 0, 0, 0, 0]),
    ("ENERGY", [1, 2, -2, 0, 0, 0, 0, 0, 0]),
    ("POWER", [1, 2, -3, 0, 0, 0, 0, 0, 0]),
    ("PRESSURE", [1, -1, -2, 0, 0, 0, 0, 0, 0]),
    ("ELECTRIC_CHARGE", [0, 0, 1, 1, 0, 0, 0, 0, 0]),
    ("ELECTRIC_CAPACITANCE", [-1, -2, 4, 2, 0, 0, 0, 0, 0]),
    ("ELECTRIC_POTENTIAL", [1, 2, -3, -1, 0, 0, 0, 0, 0]),
    ("ELECTRIC_RESISTANCE", [1, 2, -3, -2, 0, 0, 0, 0, 0]),
    ("ELECTRIC_INDUCTANCE", [1, 2, -2, -2, 0, 0, 0, 0, 0]),
    ("ELECTRIC_CONDUCTANCE", [-1, -2, 3, 2, 0, 0, 0, 0, 0]),
    ("MAGNETIC_FLUX", [1, 2, -2, -1, 0, 0, 0, 0, 0]),
    ("MAGNETIC_FLUX_DENSITY", [1, 0, -2, -1, 0, 0, 0, 0, 0]),
    ("FREQUENCY", [0, 0, -1, 0, 0, 0, 0, 0, 0]),
    // These two are written as powers of a length until a unit of their own was named.
    ("SURFACE", [0, 2, 0, 0, 0, 0, 0, 0, 0]),
    ("VOLUME", [0, 3, 0, 0, 0, 0, 0, 0, 0]),
];

/// The unit a quantity is written in when the expression has named none.
pub(super) const DEFAULTS: &[(&str, &str)] = &[
    ("LENGTH", "m"),
    ("MASS", "kg"),
    ("TIME", "s"),
    ("CURRENT", "A"),
    ("TEMPERATURE", "K"),
    ("LUMINOUS_INTENSITY", "cd"),
    ("AMOUNT_OF_SUBSTANCE", "mol"),
    ("ANGLE", "rad"),
    ("BIT", "bits"),
    ("FORCE", "N"),
    ("ENERGY", "J"),
    ("POWER", "W"),
    ("PRESSURE", "Pa"),
    ("ELECTRIC_CHARGE", "C"),
    ("ELECTRIC_CAPACITANCE", "F"),
    ("ELECTRIC_POTENTIAL", "V"),
    ("ELECTRIC_RESISTANCE", "ohm"),
    ("ELECTRIC_INDUCTANCE", "H"),
    ("ELECTRIC_CONDUCTANCE", "S"),
    ("MAGNETIC_FLUX", "Wb"),
    ("MAGNETIC_FLUX_DENSITY", "T"),
    ("FREQUENCY", "Hz"),
];

#[rustfmt::skip]
pub(super) const UNITS: &[Row] = &[
    // length
    row("meter meters", Long, "LENGTH", 1.0),
    row("inch in inches", None, "LENGTH", 0.0254),
    row("foot ft feet", None, "LENGTH", 0.3048),
    row("yard yd yards", None, "LENGTH", 0.9144),
    row("mile mi miles", None, "LENGTH", 1609.344),
    row("link li links", None, "LENGTH", 0.201168),
    row("rod rods", None, "LENGTH", 5.0292),
    row("chain ch chains", None, "LENGTH", 20.1168),
    row("angstrom angstroms", None, "LENGTH", 1e-10),
    row("m", Short, "LENGTH", 1.0),
    row("rd", None, "LENGTH", 5.02921),
    row("mil", None, "LENGTH", 0.0000254),
    // surface
    row("m2", Squared, "SURFACE", 1.0),
    row("sqin", None, "SURFACE", 0.00064516),
    row("sqft sqfeet", None, "SURFACE", 0.09290304),
    row("sqyd sqyard", None, "SURFACE", 0.83612736),
    row("sqmi sqmile sqmiles", None, "SURFACE", 2589988.110336),
    row("sqrd", None, "SURFACE", 25.29295),
    row("sqch", None, "SURFACE", 404.6873),
    row("sqmil", None, "SURFACE", 6.4516e-10),
    row("acre acres", None, "SURFACE", 4046.86),
    row("hectare hectares", None, "SURFACE", 10000.0),
    // volume
    row("m3", Cubic, "VOLUME", 1.0),
    row("L l lt", Short, "VOLUME", 0.001),
    row("litre litres liter liters", Long, "VOLUME", 0.001),
    row("cuin", None, "VOLUME", 0.000016387064),
    row("cuft", None, "VOLUME", 0.028316846592),
    row("cuyd", None, "VOLUME", 0.764554857984),
    row("teaspoon teaspoons", None, "VOLUME", 0.000005),
    row("tablespoon tablespoons", None, "VOLUME", 0.000015),
    row("drop gtt gtts", None, "VOLUME", 5e-8),
    row("minim minims", None, "VOLUME", 6.1611519921875e-8),
    row("fluiddram fldr fluiddrams", None, "VOLUME", 0.0000036966911953125),
    row("fluidounce floz fluidounces", None, "VOLUME", 0.0000295735295625),
    row("gill gi gills", None, "VOLUME", 0.00011829411825),
    row("cc", None, "VOLUME", 0.000001),
    row("cup cp cups", None, "VOLUME", 0.0002365882365),
    row("pint pt pints", None, "VOLUME", 0.000473176473),
    row("quart qt quarts", None, "VOLUME", 0.000946352946),
    row("gallon gal gallons", None, "VOLUME", 0.003785411784),
    row("beerbarrel bbl beerbarrels", None, "VOLUME", 0.117347765304),
    row("oilbarrel obl oilbarrels", None, "VOLUME", 0.158987294928),
    row("hogshead hogsheads", None, "VOLUME", 0.238480942392),
    // mass
    row("g", Short, "MASS", 0.001),
    row("gram grams", Long, "MASS", 0.001),
    row("ton tons", Short, "MASS", 907.18474),
    row("t", Short, "MASS", 1000.0),
    row("tonne tonnes", Long, "MASS", 1000.0),
    row("grain gr grains", None, "MASS", 0.00006479891),
    row("dram dr drams", None, "MASS", 0.0017718451953125),
    row("ounce oz ounces", None, "MASS", 0.028349523125),
    row("poundmass lbm poundmasses lb lbs", None, "MASS", 0.45359237),
    row("hundredweight cwt hundredweights", None, "MASS", 45.359237),
    row("stick sticks", None, "MASS", 0.115),
    row("stone", None, "MASS", 6.35029318),
    // time
    row("s", Short, "TIME", 1.0),
    row("min minute minutes mins", None, "TIME", 60.0),
    row("h hour hours hr hrs", None, "TIME", 3600.0),
    row("second sec seconds secs", Long, "TIME", 1.0),
    row("day days", None, "TIME", 86400.0),
    row("week weeks", None, "TIME", 604800.0),
    row("month months", None, "TIME", 2629800.0),
    row("year years", None, "TIME", 31557600.0),
    row("decade decades", None, "TIME", 315576000.0),
    row("century centuries", None, "TIME", 3155760000.0),
    row("millennium millennia", None, "TIME", 31557600000.0),
    // frequency
    row("hertz", Long, "FREQUENCY", 1.0),
    row("Hz", Short, "FREQUENCY", 1.0),
    // angle
    row("rad", Short, "ANGLE", 1.0),
    row("radian radians", Long, "ANGLE", 1.0),
    row("deg", Short, "ANGLE", 0.017453292519943295),
    row("degree degrees", Long, "ANGLE", 0.017453292519943295),
    row("grad", Short, "ANGLE", 0.015707963267948967),
    row("gradian gradians", Long, "ANGLE", 0.015707963267948967),
    row("cycle cycles", None, "ANGLE", std::f64::consts::TAU),
    row("arcsec arcsecond arcseconds", None, "ANGLE", 0.00000484813681109536),
    row("arcmin arcminute arcminutes", None, "ANGLE", 0.0002908882086657216),
    // current
    row("A", Short, "CURRENT", 1.0),
    row("ampere amperes amps amp", Long, "CURRENT", 1.0),
    // temperature
    row("K", Short, "TEMPERATURE", 1.0),
    Row { offset: 273.15, ..row("degC", Short, "TEMPERATURE", 1.0) },
    Row { offset: 459.67, ..row("degF", Short, "TEMPERATURE", 5.0 / 9.0) },
    row("degR", Short, "TEMPERATURE", 5.0 / 9.0),
    row("kelvin", Long, "TEMPERATURE", 1.0),
    Row { offset: 273.15, ..row("celsius", Long, "TEMPERATURE", 1.0) },
    Row { offset: 459.67, ..row("fahrenheit", Long, "TEMPERATURE", 5.0 / 9.0) },
    row("rankine", Long, "TEMPERATURE", 5.0 / 9.0),
    // amount of substance
    row("mol", Short, "AMOUNT_OF_SUBSTANCE", 1.0),
    row("mole moles", Long, "AMOUNT_OF_SUBSTANCE", 1.0),
    // luminous intensity
    row("cd", Short, "LUMINOUS_INTENSITY", 1.0),
    row("candela", Long, "LUMINOUS_INTENSITY", 1.0),
    // force
    row("N", Short, "FORCE", 1.0),
    row("newton", Long, "FORCE", 1.0),
    row("dyn", Short, "FORCE", 0.00001),
    row("dyne", Long, "FORCE", 0.00001),
    row("lbf poundforce", None, "FORCE", 4.4482216152605),
    row("kip kips", Long, "FORCE", 4448.2216),
    row("kilogramforce kgf", None, "FORCE", 9.80665),
    // energy
    row("J", Short, "ENERGY", 1.0),
    row("joule joules", Long, "ENERGY", 1.0),
    row("erg", ShortLong, "ENERGY", 1e-7),
    row("Wh", Short, "ENERGY", 3600.0),
    row("BTU BTUs", Btu, "ENERGY", 1055.05585262),
    row("eV", Short, "ENERGY", 1.602176565e-19),
    row("electronvolt electronvolts", Long, "ENERGY", 1.602176565e-19),
    // power
    row("W VAR VA", Short, "POWER", 1.0),
    row("watt watts", Long, "POWER", 1.0),
    row("hp", None, "POWER", 745.6998715386),
    // pressure
    row("Pa", Short, "PRESSURE", 1.0),
    row("psi", None, "PRESSURE", 6894.75729276459),
    row("atm", None, "PRESSURE", 101325.0),
    row("bar", ShortLong, "PRESSURE", 100000.0),
    row("torr mmHg mmhg", None, "PRESSURE", 133.322),
    row("mmH2O mmh2o", None, "PRESSURE", 9.80665),
    row("cmH2O cmh2o", None, "PRESSURE", 98.0665),
    // electric charge
    row("coulomb coulombs", Long, "ELECTRIC_CHARGE", 1.0),
    row("C", Short, "ELECTRIC_CHARGE", 1.0),
    row("Ah", Short, "ELECTRIC_CHARGE", 3600.0),
    // electric capacitance
    row("farad farads", Long, "ELECTRIC_CAPACITANCE", 1.0),
    row("F", Short, "ELECTRIC_CAPACITANCE", 1.0),
    // electric potential
    row("volt volts", Long, "ELECTRIC_POTENTIAL", 1.0),
    row("V", Short, "ELECTRIC_POTENTIAL", 1.0),
    // electric resistance
    row("ohm ohms", ShortLong, "ELECTRIC_RESISTANCE", 1.0),
    // electric inductance
    row("henry", Long, "ELECTRIC_INDUCTANCE", 1.0),
    row("H", Short, "ELECTRIC_INDUCTANCE", 1.0),
    // electric conductance
    row("siemens", Long, "ELECTRIC_CONDUCTANCE", 1.0),
    row("S", Short, "ELECTRIC_CONDUCTANCE", 1.0),
    // magnetic flux
    row("weber webers", Long, "MAGNETIC_FLUX", 1.0),
    row("Wb", Short, "MAGNETIC_FLUX", 1.0),
    // magnetic flux density
    row("tesla teslas", Long, "MAGNETIC_FLUX_DENSITY", 1.0),
    row("T", Short, "MAGNETIC_FLUX_DENSITY", 1.0),
    // bit
    row("b", BinaryShort, "BIT", 1.0),
    row("bits bit", BinaryLong, "BIT", 1.0),
    row("B", BinaryShort, "BIT", 8.0),
    row("bytes byte", BinaryLong, "BIT", 8.0),
];
