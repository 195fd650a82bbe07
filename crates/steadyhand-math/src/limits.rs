//! Bounds on what one expression may cost, and the purse it pays from.

use crate::error::{MathError, Result};

/// How much one expression may cost. Every bound has a default that answers in well under a second and 64 MB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the expression's text.
    pub input_bytes: usize,
    /// Nesting of the text, and of function calls while it runs.
    pub depth: usize,
    /// Elementary steps. Every cell, every 16 bytes of text and every few digits that are made cost a step too,
    /// so this bounds the memory of all intermediate values together.
    pub steps: u64,
    /// Cells of one matrix or range.
    pub matrix_cells: usize,
    /// Bytes of one text.
    pub string_bytes: usize,
    /// Decimal digits of one integer, fraction or big number.
    pub big_digits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: 16 * 1024,
            depth: 128,
            steps: 1_000_000,
            matrix_cells: 100_000,
            string_bytes: 1024 * 1024,
            big_digits: 10_000,
        }
    }
}

/// What is left to spend while one expression is evaluated.
#[derive(Debug)]
pub(crate) struct Purse {
    pub(crate) limits: Limits,
    pub(crate) steps_left: u64,
}

impl Purse {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            steps_left: limits.steps,
            limits,
        }
    }

    pub(crate) fn refill(&mut self) {
        self.steps_left = self.limits.steps;
    }

    #[inline]
    pub(crate) fn pay(&mut self, steps: u64) -> Result<()> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(self.broke()),
        }
    }

    #[cold]
    fn broke(&mut self) -> MathError {
        // Nothing may catch the error and go on spending.
        self.steps_left = 0;
        MathError::limit(format!(
            "Expression too expensive: it needs more than {} steps",
            self.limits.steps
        ))
    }

    pub(crate) fn pay_cells(&mut self, cells: usize) -> Result<()> {
        self.check_cells(cells)?;
        self.pay(cells as u64)
    }

    pub(crate) fn check_cells(&self, cells: usize) -> Result<()> {
        if cells > self.limits.matrix_cells {
            return Err(MathError::limit(format!(
                "Matrix too large: {cells} cells, at most {} are allowed",
                self.limits.matrix_cells
            )));
        }
        Ok(())
    }

    pub(crate) fn pay_text(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.limits.string_bytes {
            return Err(MathError::limit(format!(
                "Text too long: {bytes} bytes, at most {} are allowed",
                self.limits.string_bytes
            )));
        }
        self.pay(bytes as u64 / 16 + 1)
    }

    pub(crate) fn pay_digits(&mut self, digits: u64) -> Result<()> {
        if digits > self.limits.big_digits as u64 {
            return Err(MathError::limit(format!(
                "Number too large: about {digits} digits, at most {} are allowed",
                self.limits.big_digits
            )));
        }
        // Multiplying costs about the square of the length; a thousand digits squared are some ten thousand word products.
        self.pay(1 + digits / 16 + digits * digits / 4096)
    }
}
