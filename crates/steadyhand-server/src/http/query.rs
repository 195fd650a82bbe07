//! What stands behind the question mark of an address, read into types; what does not fit is told in our words.

use std::borrow::Cow;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::value::MapDeserializer;
use serde::de::{
    DeserializeOwned, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use url::form_urlencoded;

use super::status::{Refused, Why};
use steadyhand_config::words::nearest;

/// A value in a text is shown up to this length.
const SHOWN_BYTES_MAX: usize = 80;

/// The query of a request.
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asked<T>, Refused> {
        read(parts.uri.query().unwrap_or_default())
            .map(Asked)
            .map_err(|fault| {
                Refused::new(
                    Why::BadRequest,
                    format!("the query does not fit: {fault}"),
                    "GET /openapi.json says what this address takes",
                )
            })
    }
}

fn read<T: DeserializeOwned>(query: &str) -> Result<T, QueryFault> {
    let pairs = form_urlencoded::parse(query.as_bytes()).map(|(name, text)| {
        let value = QueryValue {
            name: name.clone(),
            text,
        };
        (name, value)
    });
    T::deserialize(MapDeserializer::new(pairs))
}

/// What is wrong with a query.
#[derive(Debug)]
struct QueryFault(String);

impl fmt::Display for QueryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueryFault {}

impl Error for QueryFault {
    fn custom<T: fmt::Display>(words: T) -> QueryFault {
        QueryFault(words.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> QueryFault {
        QueryFault("it has a value of another kind".to_owned())
    }

    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> QueryFault {
        QueryFault("it has a value that is not taken".to_owned())
    }

    fn unknown_variant(found: &str, choices: &'static [&'static str]) -> QueryFault {
        let (found, choices) = (shown(found), choices.join(", "));
        QueryFault(format!("{found}, and must be one of {choices}"))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> QueryFault {
        let name_shown = shown(name);
        let hint = match nearest(name, known.iter().copied()) {
            Some(meant) => format!(" (did you mean {meant}?)"),
            None if known.is_empty() => String::new(),
            None => format!(" (it takes {})", known.join(", ")),
        };
        QueryFault(format!("there is no parameter {name_shown}{hint}"))
    }

    fn missing_field(name: &'static str) -> QueryFault {
        QueryFault(format!("{name} is missing"))
    }

    fn duplicate_field(name: &'static str) -> QueryFault {
        QueryFault(format!("{name} is there twice"))
    }
}

/// One value, which knows its name.
struct QueryValue<'a> {
    name: Cow<'a, str>,
    text: Cow<'a, str>,
}

impl QueryValue<'_> {
    fn must_be(&self, wanted: &str) -> QueryFault {
        let (name, found) = (&self.name, shown(&self.text));
        QueryFault(format!("{name} is {found}, and must be {wanted}"))
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryFault> {
            match self.text.parse::<$type>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => {
                    let (lowest, highest) = (<$type>::MIN, <$type>::MAX);
                    Err(self.must_be(&format!("a whole number from {lowest} to {highest}")))
                }
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for QueryValue<'de> {
    type Error = QueryFault;

    whole_numbers! {
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryFault> {
        let name = self.name;
        let read = match self.text {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        };
        read.map_err(|QueryFault(fault)| QueryFault(format!("{name}: {fault}")))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryFault> {
        match &*self.text {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(self.must_be("true or false")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryFault> {
        match self.text.parse() {
            Ok(number) => visitor.visit_f64(number),
            Err(_) => Err(self.must_be("a number")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryFault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, QueryFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, QueryFault> {
        let name = self.name.clone();
        let read = visitor.visit_enum(self);
        read.map_err(|QueryFault(fault)| QueryFault(format!("{name} is {fault}")))
    }

    forward_to_deserialize_any! {
        i128 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for QueryValue<'de> {
    type Error = QueryFault;
    type Variant = Choice;

    fn variant_seed<S: serde::de::DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Choice), QueryFault> {
        Ok((seed.deserialize(self.text.into_deserializer())?, Choice))
    }
}

/// A choice has no value of its own.
struct Choice;

impl<'de> VariantAccess<'de> for Choice {
    type Error = QueryFault;

    fn unit_variant(self) -> Result<(), QueryFault> {
        Ok(())
    }

    fn newtype_variant_seed<S: serde::de::DeserializeSeed<'de>>(
        self,
        _: S,
    ) -> Result<S::Value, QueryFault> {
        Err(QueryFault::custom("it has a value of another kind"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, QueryFault> {
        Err(QueryFault::custom("it has a value of another kind"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, QueryFault> {
        Err(QueryFault::custom("it has a value of another kind"))
    }
}

impl<'de> IntoDeserializer<'de, QueryFault> for QueryValue<'de> {
    type Deserializer = QueryValue<'de>;

    fn into_deserializer(self) -> QueryValue<'de> {
        self
    }
}

fn shown(text: &str) -> String {
    format!("{:?}", steadyhand::cut::text(text, SHOWN_BYTES_MAX))
}
