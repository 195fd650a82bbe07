//! The `#[tool]` attribute: an async function becomes a tool, and stays a function.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Attribute, Error, Expr, ItemFn, Lit, LitStr, Meta, parse_macro_input};

/// Makes a tool of an async function: its name is the tool's name, its doc comment the description,
/// its last parameter the arguments. The function itself stays as it is; `name::tool()` is the tool.
///
/// `#[tool(name = "other-name")]` gives the tool another name than the function.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut name: Option<LitStr> = None;
    let options = syn::meta::parser(|option| {
        if !option.path.is_ident("name") {
            return Err(option.error("the only option is `name = \"…\"`; set policies on the tool: `f::tool().timeout(…)`"));
        }
        name = Some(option.value()?.parse()?);
        Ok(())
    });
    parse_macro_input!(attribute with options);
    let function = parse_macro_input!(item as ItemFn);
    match expand(&function, name) {
        Ok(tokens) => tokens.into(),
        Err(error) => {
            let error = error.to_compile_error();
            quote!(#function #error).into()
        }
    }
}

fn expand(function: &ItemFn, name: Option<LitStr>) -> syn::Result<proc_macro2::TokenStream> {
    let signature = &function.sig;
    let ident = &signature.ident;
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(
            signature.fn_token,
            "a tool is an `async fn`; for code that blocks its thread use `Tool::blocking`",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "a tool cannot be generic: the model sees one schema",
        ));
    }
    let description = description(&function.attrs);
    if description.is_empty() {
        return Err(Error::new_spanned(
            ident,
            "a tool needs a doc comment (`/// What it does`): models choose a tool by its description",
        ));
    }
    let name = name.unwrap_or_else(|| LitStr::new(&ident.to_string(), ident.span()));
    let visibility = &function.vis;
    // A struct with braces lives beside the types, the function beside the values: both keep the name.
    Ok(quote! {
        #function

        #[allow(non_camel_case_types, missing_docs)]
        #visibility struct #ident {}

        #[allow(missing_docs)]
        impl #ident {
            /// The function as a tool.
            #visibility fn tool() -> ::steadyhand::Tool {
                ::steadyhand::Tool::function(#name, #description, #ident)
            }
        }
    })
}

fn description(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else {
            return None;
        };
        if !meta.path.is_ident("doc") {
            return None;
        }
        let Expr::Lit(text) = &meta.value else {
            return None;
        };
        let Lit::Str(text) = &text.lit else {
            return None;
        };
        Some(text.value().trim().to_owned())
    });
    lines.collect::<Vec<String>>().join("\n").trim().to_owned()
}
