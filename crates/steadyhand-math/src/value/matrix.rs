//! Matrices of any number of dimensions, stored flat, row by row.

use super::Value;
use super::env::Env;
use crate::error::{MathError, Result};

#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    pub(crate) kind: MatrixKind,
    pub(crate) size: Vec<usize>,
    pub(crate) cells: Vec<Value>,
}

/// mathjs tells three kinds apart; here they differ in name and in how they print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatrixKind {
    Array,
    Dense,
    Sparse,
}

impl MatrixKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Array => "Array",
            Self::Dense => "DenseMatrix",
            Self::Sparse => "SparseMatrix",
        }
    }

    /// The kind of what two matrices give together.
    pub(crate) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Dense, _) | (_, Self::Dense) => Self::Dense,
            (Self::Sparse, Self::Sparse) => Self::Sparse,
            (Self::Array, Self::Array) => Self::Array,
            _ => Self::Dense,
        }
    }
}

impl Matrix {
    pub(crate) fn vector(cells: Vec<Value>) -> Self {
        Self {
            kind: MatrixKind::Dense,
            size: vec![cells.len()],
            cells,
        }
    }

    pub(crate) fn array(cells: Vec<Value>) -> Self {
        Self {
            kind: MatrixKind::Array,
            ..Self::vector(cells)
        }
    }

    pub(crate) fn grid(rows: usize, columns: usize, cells: Vec<Value>) -> Self {
        Self {
            kind: MatrixKind::Dense,
            size: vec![rows, columns],
            cells,
        }
    }

    pub(crate) fn numbers(kind: MatrixKind, size: Vec<usize>, cells: &[f64]) -> Self {
        Self {
            kind,
            size,
            cells: cells.iter().map(|x| Value::Num(*x)).collect(),
        }
    }

    pub(crate) fn of_kind(self, kind: MatrixKind) -> Self {
        Self { kind, ..self }
    }

    /// Of this size, every cell the same; paid for.
    pub(crate) fn filled(
        env: &mut Env,
        kind: MatrixKind,
        size: Vec<usize>,
        cell: &Value,
    ) -> Result<Self> {
        let count = cell_count(&size);
        env.purse.pay_cells(count)?;
        Ok(Self {
            kind,
            size,
            cells: vec![cell.clone(); count],
        })
    }

    /// Puts rows, which may be matrices themselves, on top of each other.
    pub(crate) fn stack(env: &mut Env, kind: MatrixKind, items: Vec<Value>) -> Result<Self> {
        let nested = items.iter().any(|item| matches!(item, Value::Matrix(_)));
        env.purse.pay_cells(items.len())?;
        if !nested {
            return Ok(Self {
                kind,
                size: vec![items.len()],
                cells: items,
            });
        }
        let mut inner: Option<Vec<usize>> = None;
        let mut cells = Vec::new();
        for item in &items {
            let (size, own) = match item {
                Value::Matrix(matrix) => (matrix.size.as_slice(), matrix.cells.as_slice()),
                other => (&[] as &[usize], std::slice::from_ref(other)),
            };
            let expected = inner.get_or_insert_with(|| size.to_vec());
            if expected != size {
                if kind == MatrixKind::Array {
                    return Ok(Self {
                        kind,
                        size: vec![items.len()],
                        cells: items,
                    });
                }
                let (found, wanted) = (dimension_text(size), dimension_text(expected));
                return Err(MathError::dimensions(format!(
                    "Dimension mismatch ({found} != {wanted})"
                )));
            }
            env.purse
                .pay_cells(cells.len() + own.len())
                .or_else(|error| {
                    if own.len() > 64 {
                        Err(error)
                    } else {
                        env.purse.pay(1)
                    }
                })?;
            cells.extend_from_slice(own);
        }
        let mut size = vec![items.len()];
        size.extend(inner.unwrap_or_default());
        Ok(Self { kind, size, cells })
    }

    pub(crate) fn rows(&self) -> usize {
        self.size.first().copied().unwrap_or(0)
    }

    pub(crate) fn columns(&self) -> usize {
        self.size.get(1).copied().unwrap_or(1)
    }

    pub(crate) fn is_square(&self) -> bool {
        self.size.len() == 2 && self.size[0] == self.size[1]
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> &Value {
        &self.cells[row * self.columns() + column]
    }

    /// The parts along the first dimension: numbers of a vector, rows of a matrix.
    pub(crate) fn items(&self) -> Vec<Value> {
        if self.size.len() <= 1 {
            return self.cells.clone();
        }
        let inner = self.size[1..].to_vec();
        let length = cell_count(&inner).max(1);
        let kind = self.kind;
        let part = |cells: &[Value]| {
            Value::matrix(Self {
                kind,
                size: inner.clone(),
                cells: cells.to_vec(),
            })
        };
        if self.cells.is_empty() {
            return (0..self.size[0]).map(|_| part(&[])).collect();
        }
        self.cells.chunks(length).map(part).collect()
    }

    pub(crate) fn size_text(&self) -> String {
        dimension_text(&self.size)
    }

    pub(crate) fn transposed(&self) -> Result<Self> {
        match self.size.len() {
            0 | 1 => Ok(self.clone()),
            2 => {
                let (rows, columns) = (self.size[0], self.size[1]);
                if columns == 0 {
                    return Err(MathError::dimensions(format!(
                        "Cannot transpose a 2D matrix with no columns (size: {})",
                        self.size_text()
                    )));
                }
                let cells = (0..columns)
                    .flat_map(|c| (0..rows).map(move |r| (r, c)))
                    .map(|(r, c)| self.at(r, c).clone())
                    .collect();
                Ok(Self {
                    kind: self.kind,
                    size: vec![columns, rows],
                    cells,
                })
            }
            _ => Err(MathError::dimensions(format!(
                "Matrix must be a vector or two dimensional (size: {})",
                self.size_text()
            ))),
        }
    }
}

pub(crate) fn cell_count(size: &[usize]) -> usize {
    size.iter()
        .fold(1usize, |product, length| product.saturating_mul(*length))
}

pub(crate) fn dimension_text(size: &[usize]) -> String {
    let parts: Vec<String> = size.iter().map(ToString::to_string).collect();
    format!("[{}]", parts.join(", "))
}

/// The size two matrices have together when each is stretched along its dimensions of length one.
pub(crate) fn broadcast_size(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let length = a.len().max(b.len());
    (0..length)
        .map(|i| {
            let of = |size: &[usize]| {
                (i + size.len())
                    .checked_sub(length)
                    .map_or(1, |at| size[at])
            };
            match (of(a), of(b)) {
                (x, y) if x == y => Ok(x),
                (1, y) => Ok(y),
                (x, 1) => Ok(x),
                (x, y) => {
                    let (wide, narrow) = if x > y { (x, y) } else { (y, x) };
                    let _ = (wide, narrow);
                    Err(MathError::dimensions(format!(
                        "shape mismatch: {} and {} cannot be combined",
                        dimension_text(a),
                        dimension_text(b)
                    )))
                }
            }
        })
        .collect()
}

/// Which cell of a matrix of `size` stands at flat position `at` of the stretched `whole`.
pub(crate) fn broadcast_index(at: usize, whole: &[usize], size: &[usize]) -> usize {
    let (mut at, mut index, mut stride) = (at, 0, 1);
    for i in (0..whole.len()).rev() {
        let position = at % whole[i];
        at /= whole[i];
        if let Some(own) = (i + size.len()).checked_sub(whole.len()) {
            if size[own] != 1 {
                index += position * stride;
            }
            stride *= size[own];
        }
    }
    index
}
