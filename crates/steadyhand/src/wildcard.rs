//! Patterns in which `*` stands for anything: `search_*`, `GET /pets/*`.

/// Whether a text fits a pattern. Nothing but `*` is special: paths are full of braces and brackets that
/// mean themselves.
pub fn wild(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
